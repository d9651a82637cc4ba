//! Finds the end of a log: from the mark if it can be believed, else from a scan. Changes nothing.

use std::io;

use crate::log::evidence::Border;
use crate::log::extent::Extent;
use crate::log::format::Format;
use crate::log::look::findings::Findings;
use crate::log::look::walk::Walk;
use crate::log::space::Space;
use crate::mode::Depth;
use crate::scan::framing::Framing;
use crate::sidecar::{Mark, MarkUse};

/// The end of a mark's records, and the number of the record there.
pub fn end_of(mark: &Mark, numbered: bool) -> Border {
    Border { offset: mark.end, ordinal: mark.first.checked_add(mark.records).filter(|_| numbered) }
}

/// Facts known before the search for a log's end.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The mark in the sidecar, perhaps another log's.
    pub mark: Option<Mark>,
    /// Whether there is a mark that cannot be read.
    pub damaged_mark: bool,
    /// Number of the first record, as the log's files say it.
    pub first: Option<u64>,
    /// Whether the mark is known to be this log's, whatever the first record.
    pub is_ours: bool,
    /// How much to look at.
    pub depth: Depth,
}

impl Known {
    /// For files without a place for a mark.
    pub fn unmarked(first: Option<u64>, depth: Depth) -> Self {
        Self { mark: None, damaged_mark: false, first, is_ours: false, depth }
    }
}

/// Find the end of a log.
pub fn find_end<F: Format>(format: &F, space: &Space, known: Known) -> io::Result<Findings> {
    let Known { mark, damaged_mark, first, is_ours, depth } = known;
    let possible = mark.filter(|mark| is_possible(mark, F::Framing::RECORD_BYTES_MIN));
    let damaged_mark = damaged_mark || (mark.is_some() && possible.is_none());
    let mut walk = Walk::new(format, space);
    let start = Extent::empty(first.unwrap_or(0), space.start);
    let Some(mark) = possible else {
        let none = if damaged_mark { MarkUse::Damaged } else { MarkUse::Missing };
        if depth == Depth::Begin {
            return Ok(walk.unread(start, none));
        }
        if depth == Depth::Quick && F::Framing::TRAILER_BYTES > 0 {
            if let Some(extent) = walk.hop(start)? {
                return walk.findings(extent, none, space.start);
            }
            walk = Walk::new(format, space);
        }
        let (extent, stop) = walk.check(start, space.end)?;
        return walk.conclude_carefully(extent, stop, none, space.start);
    };
    let anchored = walk.is_anchored(&mark)?;
    if depth == Depth::Begin {
        let ours = mark.start == space.start && (anchored || walk.has_same_first(&mark)?);
        return Ok(match ours {
            true => walk.unread(Extent::of_mark(&mark), MarkUse::Used),
            false => walk.unread(start, MarkUse::Missing),
        });
    }
    if mark.end == space.start && mark.start < mark.end && !mark.closed {
        // All records of the mark were dropped, and nobody appended since.
        return walk.after_mark(Extent::empty(mark.first + mark.records, space.start), &mark);
    }
    if anchored {
        // An empty log takes the number of its first record from the file.
        let by_file = first.filter(|_| mark.records == 0);
        if mark.start == space.start && depth == Depth::Quick {
            let extent = Extent::of_mark(&mark);
            let first = by_file.unwrap_or(extent.first);
            return walk.after_mark(Extent { first, ..extent }, &mark);
        }
        // A prefix was dropped since, or every record is to be checked.
        let (extent, _) = walk.check(start, mark.end)?;
        if extent.end == mark.end {
            // Number the records so that the record at the mark's end keeps its ordinal: the index
            // has the same numbers, and the next mark vouches for the index again.
            let first = by_file.or((mark.first + mark.records).checked_sub(extent.records));
            let extent = Extent {
                first: seeded!(first.unwrap_or(0), "ordinals-begin-again" => 0),
                ..extent
            };
            let shift = extent.first.wrapping_sub(start.first);
            for (ordinal, _) in &mut walk.blocks {
                *ordinal = ordinal.wrapping_add(shift);
            }
            let findings = walk.after_mark(extent, &mark)?;
            return Ok(Findings { numbered_by_mark: first.is_some(), ..findings });
        }
        walk = Walk::new(format, space);
    }
    let (extent, stop) = walk.check(start, space.end)?;
    // Only another intact first record proves that the mark belongs to another log.
    let comparable = mark.start == space.start && extent.records > 0;
    let same_start = !comparable || is_ours || extent.first_sum == mark.first_sum;
    if mark.records == 0 || !same_start || extent.end >= mark.end {
        return walk.conclude_carefully(extent, stop, MarkUse::Foreign, space.start);
    }
    walk.lost(extent, stop, &mark)
}

/// Whether a log has exactly the mark's last record, at the mark's place. For the mark of an empty
/// log, whether the mark names this file.
pub fn anchored<F: Format>(format: &F, space: &Space, mark: &Mark) -> io::Result<bool> {
    let possible = is_possible(mark, F::Framing::RECORD_BYTES_MIN) && mark.start == space.start;
    Ok(possible && Walk::new(format, space).is_anchored(mark)?)
}

/// Whether a mark's numbers are possible for a log whose records have `shortest` bytes or more:
/// only then can counting not overflow.
fn is_possible(mark: &Mark, shortest: u64) -> bool {
    let bytes = mark.end.saturating_sub(mark.start);
    let filled = match mark.records {
        0 => mark.start == mark.end,
        records => {
            mark.last_offset >= mark.start
                && (records == 1) == (mark.last_offset == mark.start)
                && mark.end.saturating_sub(mark.last_offset) >= shortest
        }
    };
    filled && mark.records <= bytes / shortest && mark.first.checked_add(mark.records).is_some()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::book::format::BookFormat;
    use crate::book::{Codec, Layout};
    use crate::storage::{FileId, Memory, Storage as _};

    const START: u64 = 16;

    fn is_possible(change: impl Fn(&mut Mark)) -> bool {
        let mut mark = Mark {
            closed: false,
            exact: false,
            first: 7,
            records: 3,
            end: 64,
            last_offset: 50,
            first_sum: 1,
            last_sum: 2,
            index_entries: 0,
            index_chain: 0,
            file: FileId::default(),
            start: 40,
            older: false,
        };
        change(&mut mark);
        super::is_possible(&mark, 8)
    }

    #[test]
    fn a_mark_with_impossible_numbers_is_not_believed() {
        assert!(is_possible(|_| ()));
        assert!(is_possible(|mark| mark.first = u64::MAX - 3));
        assert!(!is_possible(|mark| mark.first = u64::MAX - 2), "a number above the highest");
        assert!(!is_possible(|mark| mark.records = 4), "four records in 24 bytes");
        assert!(is_possible(|mark| mark.last_offset = 56));
        assert!(!is_possible(|mark| mark.last_offset = 57), "a last record of 7 bytes");
        assert!(!is_possible(|mark| mark.last_offset = 39), "a last record before the first");
        assert!(!is_possible(|mark| mark.last_offset = 40), "the last of three where the first is");
        assert!(!is_possible(|mark| mark.records = 1), "the only record is not the first");
        let one = |mark: &mut Mark| (mark.records, mark.last_offset) = (1, 40);
        assert!(is_possible(one));
        let none = |mark: &mut Mark| (mark.records, mark.last_offset) = (0, 40);
        assert!(!is_possible(none), "24 bytes without a record");
        assert!(is_possible(|mark| (mark.records, mark.end) = (0, 40)));
        assert!(
            !is_possible(|mark| (mark.records, mark.end) = (0, 39)),
            "it ends before it begins"
        );
    }
    fn format() -> BookFormat {
        BookFormat::reading(Layout::Packed, 1 << 20)
    }

    /// A log of deeds with the given payloads, from number 7 on, and a mark of all of them.
    fn log(payloads: &[&[u8]]) -> (Space, Mark) {
        let mut bytes = vec![0; START as usize];
        for payload in payloads {
            Codec::new(Layout::Packed, 1 << 20).encode(&mut bytes, 1, payload);
        }
        let file = Memory::new().create_new(Path::new("/log"), 0o600).unwrap();
        file.write_at(&bytes, 0).unwrap();
        let space = Space::new(Arc::from(file), START, bytes.len() as u64);
        let format = format();
        let from = Extent::empty(7, START);
        let (extent, stop) = Walk::new(&format, &space).check(from, space.end).unwrap();
        assert!(stop.is_none() && extent.records == payloads.len() as u64);
        let mark = extent.mark(space.file.id().unwrap());
        (space, mark)
    }

    fn found(space: &Space, mark: Mark, depth: Depth) -> Findings {
        let known =
            Known { mark: Some(mark), damaged_mark: false, first: None, is_ours: false, depth };
        find_end(&format(), space, known).unwrap()
    }

    /// A look at only the begin of a log gives the sidecar's facts to readers of a part.
    #[test]
    fn marks_of_end_records_locate_the_start() {
        let (space, mark) = log(&[b"one", b"two", b"three"]);
        let (_, other) = log(&[b"ONE", b"two", b"thr"]);
        let used = |mark| found(&space, mark, Depth::Begin).mark;
        assert_eq!(used(mark), MarkUse::Used);
        assert_eq!(used(Mark { first_sum: 0, ..mark }), MarkUse::Used, "the same last record");
        assert_eq!(used(Mark { last_sum: 0, ..mark }), MarkUse::Used, "the same first record");
        assert_eq!(used(other), MarkUse::Missing, "neither");
        // The mark is older than the dropping of a record in front, and counts the dropped record.
        let longer = Mark { start: START - 16, records: 4, ..mark };
        assert_eq!(used(longer), MarkUse::Missing, "another begin");
    }

    #[test]
    fn only_a_mark_from_the_start_counts_records() {
        let (space, mark) = log(&[b"one", b"two", b"three"]);
        let anchored = |mark| super::anchored(&format(), &space, &mark).unwrap();
        assert!(anchored(mark));
        assert!(!anchored(Mark { last_sum: 0, ..mark }), "another last record");
        assert!(!anchored(Mark { records: 1 << 40, ..mark }), "more than fit");
        assert!(!anchored(Mark { start: START - 16, ..mark }), "another begin");
    }

    /// A mark of two records that end like the three of this log, with the same last record. The
    /// mark's index counts other records.
    #[test]
    fn a_mark_that_counts_fewer_numbers_no_records() {
        let (space, mark) = log(&[b"one", b"two", b"three"]);
        let full = |mark| found(&space, mark, Depth::Full);
        let exactly = full(Mark { first: 0, ..mark });
        assert_eq!((exactly.extent.first, exactly.numbered_by_mark), (0, true));
        let fewer = full(Mark { first: 0, records: 2, ..mark });
        assert_eq!((fewer.mark, fewer.extent.records), (MarkUse::Used, 3));
        assert_eq!((fewer.extent.first, fewer.numbered_by_mark), (0, false));
    }

    /// The first record says its number, and the mark of the empty log another.
    #[test]
    fn an_empty_logs_mark_numbers_no_later_records() {
        let (space, mark) = log(&[b"one", b"two"]);
        let empty = Extent::empty(4, START).mark(mark.file);
        for depth in [Depth::Quick, Depth::Full] {
            let first = Some(9);
            let known = |mark| Known {
                mark: Some(mark),
                damaged_mark: false,
                first,
                is_ours: false,
                depth,
            };
            let found = |mark| find_end(&format(), &space, known(mark)).unwrap().extent;
            assert_eq!((found(empty).first, found(empty).records), (9, 2), "{depth:?}");
            assert_eq!((found(mark).first, found(mark).records), (7, 2), "{depth:?}");
        }
    }
}
