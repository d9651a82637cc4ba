//! Whole records longer than the caller's limit, and the advice about them.

use std::io;

use crate::log::format::Format;
use crate::log::look::findings::Findings;
use crate::log::space::Space;
use crate::scan::{Scanned, Scanner, Stop};
use crate::storage::File;

/// Whether a whole record begins at a byte that is only longer than the caller's limit.
pub fn begins_beyond_limit<F: Format>(format: &F, space: &Space, at: u64) -> io::Result<bool> {
    let (file, end) = (&*space.file, space.end);
    let mut scanner = Scanner::of_frames(format.framing(), at, end);
    match scanner.next(file)? {
        Scanned::Stop { why, .. } => is_beyond_limit(format, file, at, &why, end),
        Scanned::Record { .. } | Scanned::End => Ok(false),
    }
}

/// Whether a walk stopped at `at` only because a whole record exceeds the caller's limit.
pub fn is_beyond_limit<F: Format>(
    format: &F,
    file: &dyn File,
    at: u64,
    why: &Stop,
    end: u64,
) -> io::Result<bool> {
    why.len_beyond_limit().map_or(Ok(false), |len| format.is_beyond_limit(file, at, len, end))
}

/// The advice about a record that only exceeds the caller's limit.
pub fn beyond_limit_advice<F: Format>() -> String {
    format!("; this {} is whole, so raise {}", F::NOUN, F::LIMIT)
}

impl Findings {
    /// Note the advice about a record that only exceeds the caller's limit.
    pub(super) fn note_beyond_limit<F: Format>(&mut self, beyond_limit: bool) {
        self.beyond_limit = beyond_limit;
        if let (true, Some(damage)) = (beyond_limit, &mut self.damage) {
            damage.reason.push_str(&beyond_limit_advice::<F>());
        }
    }
}
