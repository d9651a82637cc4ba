//! Decide which stored events a compaction keeps, and count the bytes of the others in each
//! segment.

use super::split::ranges;
use crate::error::Result;
use crate::nostr::bytes::event::{EventRef, Flags};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::bytes::names::Searches;
use crate::nostr::bytes::policy::is_over;
use crate::nostr::pages::on_all_cores::on_all_cores;
use crate::nostr::pages::progress::Progress;
use crate::nostr::pages::segment::{Found, Segment};
use crate::nostr::pages::segments::dead::Dead;
use crate::nostr::store::handle::{EventStore, Shared};

/// The number of bytes in one task of a core.
const LOOK_BYTES: u64 = 8 << 20;

/// The report of a compaction, or its effect on one segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionReport {
    /// The old segments.
    pub segments: Vec<u32>,
    /// The new segments; none in a dry run.
    pub written: Vec<u32>,
    /// Events copied.
    pub kept: u64,
    /// Deleted events to drop.
    pub deleted: u64,
    /// Replaced events to drop.
    pub replaced: u64,
    /// Expired events to drop.
    pub expired: u64,
    /// Bytes of the events in the old segments.
    pub bytes_before: u64,
    /// Size of the new segments, bytes; in a dry run the bytes of the events to keep.
    pub bytes_after: u64,
}

impl CompactionReport {
    /// The share of the bytes in events to drop.
    pub fn share(&self) -> f64 {
        match self.bytes_before {
            0 => 0.0,
            bytes => self.bytes_before.saturating_sub(self.bytes_after) as f64 / bytes as f64,
        }
    }

    /// Whether the events to drop take at least this share of the bytes.
    pub fn is_due(&self, ratio: f64) -> bool {
        self.bytes_before > self.bytes_after && self.share() >= ratio
    }

    fn add(&mut self, event: &EventRef<'_>, now: u64, bytes: u64) {
        self.bytes_before += bytes;
        match fate_of(event, now) {
            Fate::Keep => {
                self.kept += 1;
                self.bytes_after += bytes;
            }
            Fate::Deleted => self.deleted += 1,
            Fate::Replaced => self.replaced += 1,
            Fate::Expired => self.expired += 1,
        }
    }

    /// Add the segments and the counts of another report.
    pub(super) fn join(&mut self, next: Self) {
        self.segments.extend(next.segments);
        self.kept += next.kept;
        self.deleted += next.deleted;
        self.replaced += next.replaced;
        self.expired += next.expired;
        self.bytes_before += next.bytes_before;
        self.bytes_after += next.bytes_after;
    }
}

impl EventStore {
    /// The effect of a compaction on each segment, as of a dry run for it alone, computed on all cores. `progress` gets the bytes
    /// done and the total, and an error of `progress` ends the work.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) for a damaged segment.
    pub fn fragmentation(
        &self,
        progress: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<Vec<CompactionReport>> {
        let segments = self.snapshot()?;
        let mut progress = Progress::new(progress);
        let now = self.options().now();
        let found = fragmentation_of(&segments, now, &mut progress).map_err(|e| e.of(FORMAT))?;
        progress.end()?;
        Ok(found.into_iter().map(|(share, _)| share).collect())
    }

    /// Whether a compaction by [`Options::compaction_ratio`] would rewrite any segment. A handle
    /// for appending counts the dead bytes of each segment, so it reads nothing. It first reads the
    /// segments without a count, once: after a crash with changed flags, after another program, and
    /// once an event expires that an earlier handle appended. A reader has no counts at first.
    ///
    /// [`Options::compaction_ratio`]: crate::nostr::Options::compaction_ratio
    ///
    /// # Errors
    ///
    /// Fails for a closed handle, and for damage in a segment that it reads; see
    /// [Errors](crate#errors).
    pub fn compaction_due(&self) -> Result<bool> {
        self.usable()?.compaction_due()
    }

    /// The counted dead bytes of each segment, if known: for tests.
    #[doc(hidden)]
    pub fn dead_bytes(&self) -> Result<Vec<Option<u64>>> {
        let (shared, now) = (self.usable()?, self.options().now());
        let mut state = shared.state();
        let segments = state.segments.by_id.values_mut();
        Ok(segments.map(|open| Some(open.dead_and_all(now)?.0)).collect())
    }
}

impl Shared {
    pub(super) fn compaction_due(&self) -> Result<bool> {
        let now = self.options.now();
        let (mut unknown, mut is_due) = (Vec::new(), false);
        for open in self.state().segments.by_id.values_mut() {
            match open.dead_and_all(now) {
                Some(counted) => is_due |= self.is_due(counted),
                None => unknown.push((open.segment.clone(), open.flags_set)),
            }
        }
        for (segment, flags_set) in unknown {
            if is_due {
                break;
            }
            let seen = (segment.end(), flags_set);
            let segments = [segment];
            let mut progress = Progress::silent().until(&self.closing);
            let found = fragmentation_of(&segments, now, &mut progress);
            for (share, dead) in found.map_err(|e| e.of(FORMAT))? {
                is_due |= share.is_due(self.options.ratio());
                let id = share.segments.first();
                let mut state = self.state();
                if let Some(open) = id.and_then(|id| state.segments.by_id.get_mut(id)) {
                    open.take_count(dead, seen);
                }
            }
        }
        Ok(is_due)
    }

    fn is_due(&self, (dead, bytes_before): (u64, u64)) -> bool {
        let bytes_after = bytes_before.saturating_sub(dead);
        let share = CompactionReport { bytes_before, bytes_after, ..CompactionReport::default() };
        share.is_due(self.options.ratio())
    }
}

/// Look at every record of some segments, and count the dead bytes.
pub(super) fn fragmentation_of(
    segments: &[Segment],
    now: u64,
    progress: &mut Progress<'_>,
) -> Result<Vec<(CompactionReport, Dead)>> {
    progress.expect(segments.iter().map(|segment| u64::from(segment.end())).sum());
    let mut parts = Vec::new();
    for segment in segments {
        let ranges = ranges(segment, LOOK_BYTES)?;
        parts.extend(ranges.into_iter().map(|range| (segment, range)));
    }
    let found = on_all_cores(
        parts.iter(),
        |&(segment, (from, to)), step| {
            let (mut share, mut dead) = (CompactionReport::default(), Dead::none(now));
            let mut scan = segment.scan(from).with_names(&Searches::default());
            while let Some(found) = scan.next()? {
                match found {
                    Found::Record(found) if found.offset >= to => break,
                    Found::Record(found) => {
                        let bytes = u64::from(found.end - found.offset);
                        share.add(&found.event, now, bytes);
                        dead.add(&found.event, bytes);
                        step(bytes)?;
                    }
                    Found::Damage(damage) => return Err(segment.damaged(&damage)),
                }
            }
            Ok((share, dead))
        },
        progress,
    )?;
    let of = |segment: &Segment| {
        let segments = vec![segment.header().segment];
        (CompactionReport { segments, ..CompactionReport::default() }, Dead::none(now))
    };
    let mut shares: Vec<(CompactionReport, Dead)> = segments.iter().map(of).collect();
    for ((segment, _), (part, part_dead)) in parts.iter().zip(found) {
        let of_segment = [segment.header().segment];
        if let Some((share, dead)) =
            shares.iter_mut().find(|(share, _)| share.segments == of_segment)
        {
            share.join(part);
            dead.join(part_dead);
        }
    }
    Ok(shares)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Keep,
    Deleted,
    Replaced,
    Expired,
}

pub(super) fn fate_of(event: &EventRef<'_>, now: u64) -> Fate {
    if event.flags.contains(Flags::DELETED) {
        Fate::Deleted
    } else if event.flags.contains(Flags::REPLACED) {
        Fate::Replaced
    } else if is_over(event.kind, event.tags, now) {
        Fate::Expired
    } else {
        Fate::Keep
    }
}
