//! Walking through a log from record to record, by checksums or by lengths alone.

use std::io;

use crate::log::extent::Extent;
use crate::log::format::{Format, FrameOf};
use crate::log::space::Space;
use crate::scan::framing::{Frame, Framing};
use crate::scan::{Scanned, Scanner, Stop};
use crate::sidecar::{INDEX_BLOCK_BYTES, Mark};
use crate::storage::File;

/// A walk through a log, and its findings on the way.
pub struct Walk<'a, F: Format> {
    pub format: &'a F,
    pub space: &'a Space,
    pub scanned_records: u64,
    /// Ends of blocks of records: ordinal of the next record, and byte.
    pub blocks: Vec<(u64, u64)>,
}

impl<'a, F: Format> Walk<'a, F> {
    pub fn new(format: &'a F, space: &'a Space) -> Self {
        Self { format, space, scanned_records: 0, blocks: Vec::new() }
    }

    pub fn file(&self) -> &'a dyn File {
        &*self.space.file
    }

    /// Walk intact records from the end of an extent on.
    pub fn check(&mut self, from: Extent, end: u64) -> io::Result<(Extent, Option<Stop>)> {
        let framing = self.format.framing();
        let found = walk_records(self.file(), framing, from, end, &mut self.blocks)?;
        self.scanned_records += found.0.records - from.records;
        Ok(found)
    }

    /// Whether the log has exactly the mark's last record, at the mark's place.
    pub fn is_anchored(&self, mark: &Mark) -> io::Result<bool> {
        let Space { start, end, .. } = *self.space;
        if mark.records == 0 {
            // Nothing in the log to hold it against but the file itself.
            return Ok(mark.file.is_still(self.file().id()?) && mark.end == start);
        }
        if mark.end > end || mark.last_offset < start {
            return Ok(false);
        }
        let mut scanner = Scanner::of_frames(self.format.framing(), mark.last_offset, mark.end);
        let Scanned::Record { frame, .. } = scanner.next(self.file())? else { return Ok(false) };
        let frame: FrameOf<F> = frame;
        Ok(frame.sum() == mark.last_sum && scanner.position() == mark.end)
    }

    /// Whether the log begins with the record that the mark's log begins with.
    pub fn has_same_first(&self, mark: &Mark) -> io::Result<bool> {
        let Space { start, end, .. } = *self.space;
        let mut scanner = Scanner::of_frames(self.format.framing(), start, end);
        let first: Scanned<FrameOf<F>> = scanner.next(self.file())?;
        Ok(matches!(first, Scanned::Record { frame, .. } if frame.sum() == mark.first_sum))
    }

    /// Hop from length to length. Only a chain that ends exactly at the end of the file, with an
    /// intact last record, is believed.
    pub fn hop(&mut self, start: Extent) -> io::Result<Option<Extent>> {
        let framing = self.format.framing();
        let by_lengths = framing.by_lengths();
        let end = self.space.end;
        let (extent, stop) = walk_records(self.file(), by_lengths, start, end, &mut self.blocks)?;
        self.scanned_records = extent.records;
        if stop.is_some() || extent.end != end || self.space.gap.is_some() {
            return Ok(None);
        }
        if extent.records == 0 {
            return Ok(Some(extent));
        }
        let mut last = Scanner::of_frames(framing, extent.last_offset, extent.end);
        let intact = matches!(last.next(self.file())?, Scanned::Record { .. });
        Ok(intact.then_some(extent))
    }
}

/// Ends of blocks of records between a known border and `end`, by lengths alone: ordinal of the
/// next record, and byte. Stops at damage.
pub fn blocks_by_lengths<F: Format>(
    file: &dyn File,
    framing: F::Framing,
    from: Extent,
    end: u64,
) -> io::Result<Vec<(u64, u64)>> {
    let mut blocks = Vec::new();
    walk_records(file, framing.by_lengths(), from, end, &mut blocks)?;
    Ok(blocks)
}

/// Walk intact records from the end of `extent` on, and note where blocks end.
fn walk_records<C: Framing>(
    file: &dyn File,
    framing: C,
    mut extent: Extent,
    end: u64,
    blocks: &mut Vec<(u64, u64)>,
) -> io::Result<(Extent, Option<Stop>)> {
    let mut scanner = Scanner::of_frames(framing, extent.end, end);
    if C::LINKED && extent.records > 0 {
        // Compare the next record with the last record, too.
        scanner.seek(extent.last_offset);
        scanner.next(file)?;
    }
    let mut block_end = extent.end.saturating_add(INDEX_BLOCK_BYTES);
    loop {
        let (offset, frame) = match scanner.next_in_memory() {
            Some(found) => found,
            None => match scanner.next(file)? {
                Scanned::Record { offset, frame } => (offset, frame),
                Scanned::End => return Ok((extent, None)),
                Scanned::Stop { why, .. } => return Ok((extent, Some(why))),
            },
        };
        extent.push_parts(offset, scanner.position() - offset, frame.sum());
        if extent.end >= block_end {
            blocks.push((extent.next(), extent.end));
            block_end = extent.end + INDEX_BLOCK_BYTES;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::book::format::BookFormat;
    use crate::book::{Codec, Layout};
    use crate::storage::{FileId, Memory, Storage as _};

    const START: u64 = 16;
    const FIRST: u64 = 7;

    fn format() -> BookFormat {
        BookFormat::reading(Layout::Packed, 1 << 20)
    }

    /// A log of records of this size, with a 9 at each of the bytes `wrong`.
    fn space(records: usize, size: usize, wrong: &[u64]) -> Space {
        let mut bytes = vec![0; START as usize];
        for n in 0..records {
            Codec::new(Layout::Packed, 1 << 20).encode(&mut bytes, n as u32, &vec![1; size - 24]);
        }
        let file = Memory::new().create_new(Path::new("/log"), 0o600).unwrap();
        file.write_at(&bytes, 0).unwrap();
        wrong.iter().for_each(|&at| assert_eq!(file.write_at(&[9], at).unwrap(), 1));
        Space::new(Arc::from(file), START, bytes.len() as u64)
    }

    fn begin() -> Extent {
        Extent::empty(FIRST, START)
    }

    /// The mark of all records of an intact log.
    fn all(space: &Space) -> Mark {
        let (extent, stop) = Walk::new(&format(), space).check(begin(), space.end).unwrap();
        assert!(stop.is_none());
        extent.mark(space.file.id().unwrap())
    }

    #[test]
    fn a_walk_counts_records_and_blocks() {
        // The size of a record, and how many make a block.
        for (size, block) in [(1024, 64), (1000, 66), (70_000, 1)] {
            let space = space(200, size, &[]);
            let format = format();
            let mut walk = Walk::new(&format, &space);
            let (extent, stop) = walk.check(begin(), space.end).unwrap();
            assert!(stop.is_none());
            assert_eq!((extent.records, extent.end, walk.scanned_records), (200, space.end, 200));
            let ends = (1..=200 / block).map(|n| (FIRST + n * block, n * block * size as u64));
            let ends: Vec<_> = ends.map(|(ordinal, bytes)| (ordinal, START + bytes)).collect();
            assert_eq!(walk.blocks, ends);
            let file = &*space.file;
            let by_lengths =
                blocks_by_lengths::<BookFormat>(file, format.framing(), begin(), space.end);
            assert_eq!(by_lengths.unwrap(), ends);
            // From the middle on.
            let part = Extent { records: 50, end: START + 50 * size as u64, ..begin() };
            let (extent, _) = walk.check(part, space.end).unwrap();
            assert_eq!((extent.records, walk.scanned_records), (200, 350));
        }
    }

    #[test]
    fn a_walk_ends_at_damage() {
        let space = space(10, 100, &[START + 350]);
        let format = format();
        let mut walk = Walk::new(&format, &space);
        let (extent, stop) = walk.check(begin(), space.end).unwrap();
        assert!(matches!(stop, Some(Stop::Bad(_))));
        assert_eq!((extent.records, extent.end, extent.last_offset), (3, START + 300, START + 200));
        assert_eq!(walk.scanned_records, 3);
    }

    #[test]
    fn a_mark_is_compared_with_its_record() {
        let space = space(3, 100, &[]);
        let mark = all(&space);
        let anchored = |mark: Mark| Walk::new(&format(), &space).is_anchored(&mark).unwrap();
        assert!(anchored(mark));
        assert!(!anchored(Mark { last_sum: mark.last_sum ^ 1, ..mark }), "another checksum");
        assert!(!anchored(Mark { last_offset: START + 100, ..mark }), "it ends sooner");
        assert!(!anchored(Mark { last_offset: START + 201, ..mark }), "no record begins there");
        assert!(!anchored(Mark { end: mark.end + 1, ..mark }), "more than there is");
        assert!(!anchored(Mark { end: mark.end - 1, ..mark }), "not all of it");
        let first = Walk::new(&format(), &space).check(begin(), START + 100).unwrap().0;
        assert!(anchored(first.mark(mark.file)), "a shorter log that begins like it");
        // The log begins later: the record was dropped.
        let later = Space::new(space.file.clone(), START + 100, space.end);
        let first = first.mark(mark.file);
        assert!(!Walk::new(&format(), &later).is_anchored(&first).unwrap());
        assert!(Walk::new(&format(), &later).is_anchored(&mark).unwrap());
    }

    #[test]
    fn an_empty_mark_is_compared_with_the_file() {
        let space = space(3, 100, &[]);
        let file = space.file.id().unwrap();
        let empty = begin().mark(file);
        let anchored = |mark: Mark| Walk::new(&format(), &space).is_anchored(&mark).unwrap();
        assert!(anchored(empty));
        assert!(!anchored(Mark { end: START + 1, ..empty }), "it ends elsewhere");
        let other = FileId { inode: file.inode + 1, ..file };
        assert!(!anchored(Mark { file: other, ..empty }), "of another file");
    }

    #[test]
    fn the_first_record_tells_one_log_from_another() {
        let space = space(3, 100, &[]);
        let mark = all(&space);
        let same = |mark: Mark| Walk::new(&format(), &space).has_same_first(&mark).unwrap();
        assert!(same(mark));
        assert!(!same(Mark { first_sum: mark.last_sum, ..mark }));
        let begin = Mark { start: 0, ..mark };
        assert!(same(begin), "only the record counts");
    }

    #[test]
    fn lengths_that_reach_the_last_record_are_believed() {
        let hop = |space: &Space| {
            let format = format();
            let mut walk = Walk::new(&format, space);
            let found = walk.hop(begin()).unwrap();
            (found.map(|extent| extent.records), walk.scanned_records)
        };
        assert_eq!(hop(&space(10, 100, &[])), (Some(10), 10));
        // Payloads are not looked at, but for the last one's.
        assert_eq!(hop(&space(10, 100, &[START + 350])), (Some(10), 10));
        assert_eq!(hop(&space(10, 100, &[START + 950])), (None, 10));
        assert_eq!(hop(&space(10, 100, &[START + 300])), (None, 3), "a wrong length");
        let short = space(10, 100, &[]);
        assert_eq!(hop(&Space { end: short.end - 1, ..short.clone() }), (None, 9));
        assert_eq!(hop(&Space { gap: Some("a segment is missing".into()), ..short }), (None, 10));
        assert_eq!(hop(&space(0, 100, &[])), (Some(0), 0));
    }
}
