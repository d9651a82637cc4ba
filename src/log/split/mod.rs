//! Cutting a log between records into parts that can be read apart, for parallel readers.

pub mod bookmark;
pub mod identity;

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::log::evidence::{Border, Evidence};
use crate::log::extent::Extent;
use crate::log::format::{Format, Inspected};
use crate::log::look::index::index_of;
use crate::log::look::inspect::{inspect_patiently, place_of};
use crate::log::read::Snapshot;
use crate::log::read::cursor::{Cursor, Range, Source};
use crate::log::space::Place;
use crate::log::split::identity::Identity;
use crate::log::{Log, Shared};
use crate::mode::Depth;
use crate::scan::framing::Framing;
use crate::scan::{Damage, OnCorrupt};

/// A part of a log between two records: a path and numbers, readable without opening the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The log.
    pub path: PathBuf,
    /// Number of the first record, where it is known.
    pub ordinal: Option<u64>,
    /// Number of records, where it is known.
    pub records: Option<u64>,
    /// Byte of the first record.
    pub offset: u64,
    /// Byte after the last record.
    pub end: u64,
    /// Byte from which on nothing was acknowledged, if known.
    pub unacknowledged_from: Option<u64>,
    /// A byte known to lie between records: the end of the mark's records.
    pub known_end: Option<u64>,
    /// The identity of the whole log: a reader refuses another log at the path.
    pub identity: Option<Identity>,
    /// Size of a segment of a log in segments: without the size a reader has to guess.
    pub segment_bytes: Option<u64>,
}

impl Split {
    /// A part from its numbers, for readers with nothing but the numbers.
    pub fn new(path: PathBuf, offset: u64, end: u64) -> Self {
        let (ordinal, records, identity) = (None, None, None);
        let (unacknowledged_from, known_end, segment_bytes) = (None, None, None);
        Self {
            path,
            ordinal,
            records,
            offset,
            end,
            unacknowledged_from,
            known_end,
            identity,
            segment_bytes,
        }
    }
}

impl<F: Format> Log<F> {
    /// Cut the bytes `from..to`, which lie between records, into parts of about `split_bytes`
    /// bytes: `(to - from) / split_bytes + 1` at most. With `beyond`, a log with damage after its
    /// valid prefix gets one more part for the bytes there.
    pub fn splits_over(
        &self,
        split_bytes: u64,
        from: u64,
        to: u64,
        beyond: bool,
    ) -> Result<Vec<Split>> {
        let shared = self.usable()?;
        let snapshot = shared.snapshot();
        let extent = snapshot.extent;
        let mut splits = Vec::new();
        if from < to {
            shared.catch_up(extent);
            let border = |offset| -> Result<Border> {
                Ok(Border { offset, ordinal: Some(shared.locate_offset(extent, offset)?) })
            };
            shared.divide(&snapshot, split_bytes, border(from)?, border(to)?, &mut splits);
        }
        let damage = snapshot.trailing.as_ref().filter(|_| beyond);
        if damage.is_some() || (beyond && !snapshot.numbered) {
            let (_, there) = shared.whole(&snapshot)?;
            let vouched = shared.recovery.durable_end.unwrap_or(0);
            let begin = if snapshot.numbered { extent.end } else { extent.start };
            let end = there.max(vouched).max(begin.saturating_add(1));
            let (mut offset, mut ordinal) = (begin, Some(extent.next()));
            // Cut at the borders that the index still knows. Each border proves the records before
            // it.
            while let Some(border) = shared.known_border(offset, end, split_bytes) {
                let part = shared.part(&snapshot, (offset, border.offset), ordinal, None);
                splits.push(Split { known_end: Some(border.offset), ..part });
                (offset, ordinal) = (border.offset, border.ordinal);
            }
            // If the log has fewer bytes than the mark, the mark has the count.
            let known = snapshot.evidence().known_end_after(offset);
            let counted = known.filter(|known| known.offset == end).and_then(|end| end.ordinal);
            let records = counted.zip(ordinal).and_then(|(end, first)| end.checked_sub(first));
            let records = records.filter(|_| there < end);
            splits.push(shared.part(&snapshot, (offset, end), ordinal, records));
        }
        Ok(splits)
    }

    /// Walk the records of a part.
    pub fn cursor_of_split(
        split: &Split,
        options: &F::Options,
        on_corrupt: OnCorrupt,
        check: bool,
        stop: Option<u64>,
    ) -> Result<Cursor<F>> {
        let (place, common) = place_of::<F>(&split.path, options)?;
        let place = Place { segment_bytes: split.segment_bytes, ..place };
        let found = inspect_patiently::<F>(options, &place, Depth::Begin)?;
        let Inspected { format, space, .. } = &found;
        let head = space.start;
        let (file, there) = space.whole();
        let there = file
            .len()
            .map_err(|e| Error::io("look at the log", &place.log, e).of(F::NAME))?
            .max(if space.beyond.is_some() { there } else { 0 });
        if let Some(identity) = split.identity {
            let (bytes, mark) = ((&**file, format.framing()), found.mark.as_ref());
            let is_log = identity.check(bytes, (head, there), mark, &place.log);
            is_log.map_err(|error| error.of(F::NAME))?;
        }
        let missing = (there < split.end || split.offset < head).then(|| Damage {
            offset: there.max(split.offset),
            end: split.end,
            reason: format!(
                "the log has bytes {head} to {there}, there were {}s up to {}",
                F::NOUN,
                split.end
            ),
            ..Damage::default()
        });
        let (offset, end) = (split.offset.max(head), split.end.min(there).max(head));
        let marked = split.known_end.map(|offset| Border { offset, ordinal: None });
        // The end of a part of the valid prefix lies between records.
        let known = split.records.map(|records| {
            let ordinal = split.ordinal.and_then(|first| first.checked_add(records));
            Border { offset: split.end, ordinal }
        });
        let framing = match check {
            true => format.framing(),
            false => format.framing().by_lengths(),
        };
        let source = Source {
            file: file.clone(),
            path: place.log.clone(),
            format: format.clone(),
            framing,
            // The borders of the index prove more in a part with two damages.
            evidence: Evidence::new(
                index_of(&common, &place, &found),
                known,
                split.unacknowledged_from,
            )
            .with_durable(marked),
        };
        let ordinal = split.ordinal.filter(|_| split.offset >= head);
        let range = Range { offset, end, ordinal, stop };
        Ok(Cursor::new(source, range, on_corrupt).with_trailing(missing).logging())
    }
}

impl<F: Format> Shared<F> {
    /// A part of the log, as of a snapshot.
    pub(super) fn part(
        &self,
        snapshot: &Snapshot,
        (offset, end): (u64, u64),
        ordinal: Option<u64>,
        records: Option<u64>,
    ) -> Split {
        let evidence = snapshot.evidence();
        Split {
            path: self.place.log.clone(),
            ordinal: ordinal.filter(|_| snapshot.numbered),
            records,
            offset,
            end,
            unacknowledged_from: evidence.unacknowledged_from(),
            known_end: evidence.known_end_after(offset).map(|border| border.offset),
            identity: Identity::of(&snapshot.extent),
            segment_bytes: self.format.settings().segment_bytes,
        }
    }

    /// Divide the valid prefix between two borders, at borders from the index.
    pub(super) fn divide(
        &self,
        snapshot: &Snapshot,
        split_bytes: u64,
        from: Border,
        to: Border,
        splits: &mut Vec<Split>,
    ) {
        let mut at = from;
        while at.offset < to.offset {
            let next = self.border(at.offset, to, split_bytes);
            let records = next.ordinal.zip(at.ordinal).and_then(|(next, at)| next.checked_sub(at));
            splits.push(self.part(snapshot, (at.offset, next.offset), at.ordinal, records));
            at = next;
        }
    }

    /// The first known border at least `split_bytes` after `from`, and before `stop`. The last
    /// border below `split_bytes` would be wrong: blocks just over half as long as a part would
    /// make twice as many parts.
    fn known_border(&self, from: u64, stop: u64, split_bytes: u64) -> Option<Border> {
        let target = from.saturating_add(split_bytes.max(1));
        let entry = self.index().first_from(target).filter(|entry| entry.offset < stop);
        entry.map(|entry| Border { offset: entry.offset, ordinal: Some(entry.ordinal) })
    }

    /// The end of a part that begins at `from`.
    fn border(&self, from: u64, stop: Border, split_bytes: u64) -> Border {
        let border = self.known_border(from, stop.offset, split_bytes);
        // A remnant much shorter than a part joins the part before.
        border.filter(|border| stop.offset - border.offset >= split_bytes / 8).unwrap_or(stop)
    }
}

/// The bytes of the records with numbers in `start..stop`.
pub fn bytes_of<F: Format>(
    shared: &Shared<F>,
    snapshot: &Snapshot,
    start: u64,
    stop: u64,
) -> Result<(u64, u64)> {
    let extent: Extent = snapshot.extent;
    if start >= stop || extent.records == 0 {
        return Ok((extent.end, extent.end));
    }
    shared.catch_up(extent);
    Ok((shared.locate_ordinal(extent, start)?, shared.locate_ordinal(extent, stop)?))
}
