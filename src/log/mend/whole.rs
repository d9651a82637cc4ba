//! A walk over a whole log, past damage: the cursor, the progress, and the verdict.

use crate::error::Result;
use crate::log::evidence::Evidence;
use crate::log::extent::Extent;
use crate::log::format::{Format, Inspected};
use crate::log::look::find_end::end_of;
use crate::log::look::index::index_of;
use crate::log::options::Common;
use crate::log::read::cursor::{Cursor, Range, Source};
use crate::log::space::Place;
use crate::scan::{Damage, OnCorrupt, Verdict};

/// Checked or copied between two calls of a progress function.
pub const PROGRESS_BYTES: u64 = 4 << 20;

/// How a log ends, by the look at the files and the damage on the walk.
pub fn verdict<F: Format>(
    found: &Inspected<F>,
    damages: &[Damage],
    valid_end: u64,
    lost: bool,
) -> Verdict {
    let findings = &found.findings;
    if lost || findings.verdict == Verdict::Corrupt || !found.mended.is_empty() {
        return Verdict::Corrupt;
    }
    match damages {
        [] if valid_end < findings.file_end => Verdict::Open,
        [] => Verdict::Clean,
        // Everything from the damage on is unacknowledged, and opening for writing may drop it.
        [first, ..] if findings.unacknowledged_from.is_some_and(|end| first.offset >= end) => {
            Verdict::Torn
        }
        damages if damages.iter().any(|damage| damage.next_intact.is_some()) => Verdict::Corrupt,
        _ => Verdict::Torn,
    }
}

/// The damage on a walk, and damage that no record shows: damage before the records, a log that
/// ends below its mark, files after a gap.
pub fn all_damages<F: Format>(found: &Inspected<F>, seen: &[Damage]) -> Vec<Damage> {
    let findings = &found.findings;
    let mut damages = seen.to_vec();
    let unseen = findings
        .damage
        .clone()
        .filter(|damage| damage.offset < findings.extent.start || damages.is_empty());
    let after = findings.after.clone().filter(|_| damages.is_empty());
    damages.extend(unseen);
    damages.extend(after);
    damages.extend_from_slice(&found.mended);
    damages.sort_by_key(|damage| damage.offset);
    damages
}

/// A cursor over all of an inspected log, which passes over damage.
pub fn cursor_over<F: Format>(common: &Common, place: &Place, found: &Inspected<F>) -> Cursor<F> {
    let start = found.findings.extent.start;
    let (_, end) = found.space.whole();
    let cursor =
        cursor_from(common, place, found, &Extent::empty(found.findings.extent.first, start), end);
    if found.findings.headless { cursor.unproved() } else { cursor }
}

/// The cursor from the end of the checked beginning, up to byte `end`.
pub fn cursor_from<F: Format>(
    common: &Common,
    place: &Place,
    found: &Inspected<F>,
    read_from: &Extent,
    end: u64,
) -> Cursor<F> {
    let findings = &found.findings;
    let known = found
        .mark
        .as_ref()
        .map(|mark| end_of(mark, findings.numbered && findings.numbered_by_mark));
    let index = index_of(common, place, found);
    let (file, _) = found.space.whole();
    let ordinal = findings.first().and_then(|first| first.checked_add(read_from.records));
    let range = Range { offset: read_from.end, end, ordinal, stop: None };
    let source = Source {
        file: file.clone(),
        path: place.log.clone(),
        format: found.format.clone(),
        framing: found.format.framing(),
        evidence: Evidence::new(index, known, findings.unacknowledged_from),
    };
    Cursor::new(source, range, OnCorrupt::Skip)
}

/// How far a walk over the bytes `start..end` is.
pub struct Steps {
    start: u64,
    end: u64,
    next: u64,
}

impl Steps {
    pub fn new(start: u64, end: u64) -> Self {
        let end = end.max(start);
        Self { start, end, next: start }
    }

    pub fn begin(&self, progress: &mut impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
        progress(0, self.end - self.start)
    }

    /// The walk is at this byte.
    #[inline]
    pub fn at(&mut self, at: u64, progress: &mut impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
        if at >= self.next {
            progress(at.min(self.end) - self.start, self.end - self.start)?;
            self.next = at + PROGRESS_BYTES;
        }
        Ok(())
    }

    pub fn end(&self, progress: &mut impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
        progress(self.end - self.start, self.end - self.start)
    }
}
