//! The lowest index that no file had yet: `.deedbook/next-BASE`, text with a checksum. The counter
//! stays after the files, so that no index comes twice: a sender may name its batches by index.
//!
//! ```text
//! next 17
//! crc 1a2b3c4d                  (CRC-32 of the line above)
//! ```

use std::path::Path;

use crate::error::{Error, Result};
use crate::ground::lines;
use crate::sidecar::{Found, Note, PRIVATE_MODE, is_missing, with_sum};
use crate::storage::{Storage, replace_through};

/// The begin of a counter's name, before the base.
pub const PREFIX: &str = "next-";

fn name(base: &str) -> String {
    format!("{PREFIX}{base}")
}

fn lines_of(next: u64) -> String {
    format!("next {next}\n")
}

/// `None` for a damaged one.
fn of_found(found: Found) -> Option<u64> {
    let Found::Lines(lines) = found else { return None };
    let next = lines.strip_prefix("next ")?.strip_suffix('\n')?.parse().ok()?;
    (lines_of(next) == lines).then_some(next)
}

/// Read the counter; 0 if there is none. A damaged counter counts as none: numbering then follows
/// the files. A counter without permission to read is an error, because a store would give old
/// numbers again.
pub fn load(storage: &dyn Storage, sidecar: &Path, base: &str) -> Result<u64> {
    let found = find(storage, sidecar, base)?;
    if found == Found::Absent {
        return Ok(0);
    }
    let next = of_found(found);
    if next.is_none() {
        let path = sidecar.join(name(base));
        lines::warn(format_args!("the next index is damaged ({})", path.display()));
    }
    Ok(next.unwrap_or(0))
}

/// Whether an intact counter exists: then a store wrote files with the base here.
pub fn is_there(storage: &dyn Storage, sidecar: &Path, base: &str) -> bool {
    find(storage, sidecar, base).is_ok_and(|found| of_found(found).is_some())
}

fn find(storage: &dyn Storage, sidecar: &Path, base: &str) -> Result<Found> {
    let note = Note { storage, path: sidecar.join(name(base)), what: "the next index" };
    note.find(is_missing)
}

/// Write it, durably.
pub fn store(storage: &dyn Storage, sidecar: &Path, base: &str, next: u64) -> Result<()> {
    let path = sidecar.join(name(base));
    // The temporary name is no counter's name. So a leftover after a kill is no second ledger, and
    // a ledger whose base ends with `.tmp` keeps its own counter.
    let temporary = sidecar.join(format!(".{}.tmp", name(base)));
    replace_through(storage, &path, &temporary, with_sum(&lines_of(next)).as_bytes(), PRIVATE_MODE)
        .map_err(|e| Error::io("store the next index", &path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_index_is_read_back() {
        let found = |lines: String| of_found(Found::Lines(lines));
        assert_eq!(found(lines_of(4_294_967_296)), Some(4_294_967_296));
        assert_eq!(found("next 07\n".into()), None);
        assert_eq!(of_found(Found::Damaged), None);
    }
}
