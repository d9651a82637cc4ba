//! Walking through a log from record to record, by checksums or by lengths alone.

use std::io;

use crate::log::extent::Extent;
use crate::log::format::{Format, FrameOf};
use crate::log::framing::{Frame, Framing};
use crate::log::space::Space;
use crate::scan::{Scanned, Scanner, Stop};
use crate::sidecar::{INDEX_BLOCK_BYTES, Mark};
use crate::storage::File;

/// A walk through a log, and what it noticed on the way.
pub struct Walk<'a, F: Format> {
    pub format: &'a F,
    pub space: &'a Space,
    pub scanned_records: u64,
    /// Where blocks of records end: ordinal of the record there, and byte.
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

    /// Whether the log has exactly the record that the mark names, where it names it.
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

/// Where blocks of records end between a known border and `end`, by lengths alone: ordinal of the
/// record there, and byte. Stops at damage.
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
        // What follows is held against the last record, too.
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
