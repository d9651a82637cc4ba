//! One epoch of a pier, open as a book.

use std::io;
use std::path::PathBuf;

use super::places::{Named, check_joint};
use crate::book::{Book, Options};
use crate::error::{Error, Result};
use crate::mode::Mode;
use crate::scan::Verdict;

/// On Linux and macOS.
const EMFILE: i32 = 24;
const MANY_FILES: &str = "each epoch takes up to two open files: raise the limit (ulimit -n), or \
                          drop epochs with retain";

/// An epoch with this handle's book: only a writer's last epoch is open for appending.
#[derive(Clone, Debug)]
pub struct OpenEpoch {
    pub number: u64,
    pub dir: PathBuf,
    pub book: Book,
}

/// The options for opening a part: the directory's name has the number, and each part has a layout.
pub fn of_part(options: &Options) -> Options {
    Options { epoch: None, layout: None, ..options.clone() }
}

/// Open epochs and add the books to `parts`, checking that the numbers fit. The last opens with
/// `mode`.
pub fn extend(
    options: &Options,
    parts: &mut Vec<OpenEpoch>,
    named: &[Named],
    mode: Mode,
) -> Result<()> {
    for (left, named) in (0..named.len()).rev().zip(named) {
        if let Some(before) = parts.last() {
            // If damage ends the epoch before, its last event is unknown: reading meets the damage.
            if before.book.recovery().verdict != Verdict::Corrupt {
                check_joint(before.number, before.book.last()?.saturating_add(1), named)?;
            }
        }
        let Named { number, dir } = named.clone();
        let mode = if left == 0 { mode } else { Mode::Read };
        let book = of_part(options).open(&dir, mode).map_err(with_advice)?;
        parts.push(OpenEpoch { number, dir, book });
    }
    Ok(())
}

/// The advice for a process with the largest allowed number of open files.
fn with_advice(error: Error) -> Error {
    match error.io_source().and_then(io::Error::raw_os_error) {
        Some(EMFILE) => error.with_advice(MANY_FILES),
        _ => error,
    }
}
