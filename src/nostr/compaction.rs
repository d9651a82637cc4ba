//! Compaction: what counts is copied to new segments, and the old ones go.
//!
//! 1. A checkpoint empties the write-ahead log: nothing of it speaks of the old segments.
//! 2. New segments get the events that count. No manifest names them: a crash leaves copies, which
//!    opening removes.
//! 3. They are synced, and the manifest names them in place of the old ones, in one step.
//! 4. The old ones are deleted. A crash before leaves files that no manifest names, whose events that
//!    count are all in the new ones: opening removes them.
//!
//! Steps 2 to 4 are done for some old segments after the others, so that a crash or an error costs the
//! work on some of them: those that were done have nothing to drop any more, and the next compaction
//! goes on with the rest.

use std::collections::BTreeMap;

use super::event::{Id, Location};
use super::fragmentation::{Fate, Fragmentation, fate_of, fragmentation_of};
use super::progress::Progress;
use super::record;
use super::segment::{Found, Segment};
use super::segments::{Open, Segments};
use super::store::{EventStore, Shared, State, now};
use super::wal::EventWal;
use crate::error::{ErrorKind, Result};
use crate::slice;

/// Old segments whose events fill so many new ones are compacted in one step.
const STEP_SEGMENTS: u64 = 4;
/// Records are copied in parts of about this size.
const PART_BYTES: usize = 256 << 10;

/// What compacting does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionReport {
    /// The old segments.
    pub segments: Vec<u32>,
    /// The new segments; none in a dry run.
    pub written: Vec<u32>,
    /// Events copied.
    pub kept: u64,
    /// Deleted events that go.
    pub deleted: u64,
    /// Replaced events that go.
    pub replaced: u64,
    /// Events that go because their time is over.
    pub expired: u64,
    /// Size of the old segments, bytes.
    pub bytes_before: u64,
    /// Size of the new segments, bytes; in a dry run what it would be, about.
    pub bytes_after: u64,
}

/// What a compaction did with the events of the old segments.
#[derive(Default)]
pub(super) struct Moved {
    /// Id and time of those that were copied, and where they lie now.
    pub kept: Vec<(Id, u32, Location)>,
    /// Where those lay that were not.
    pub gone: Vec<Location>,
}

impl CompactionReport {
    fn add(&mut self, share: &Fragmentation) {
        self.segments.push(share.segment);
        self.kept += share.kept;
        self.deleted += share.deleted;
        self.replaced += share.replaced;
        self.expired += share.expired;
        self.bytes_before += share.live_bytes + share.dead_bytes;
        self.bytes_after += share.live_bytes;
    }
}

impl EventStore {
    /// Drop deleted, replaced and expired events from the segments in which they take at least this
    /// part of the bytes; 0 compacts all, and `None` is the [`Options::compaction_ratio`]. Appends wait.
    ///
    /// [`Options::compaction_ratio`]: super::Options::compaction_ratio
    ///
    /// # Errors
    ///
    /// A damaged segment is [`ErrorKind::Corrupt`], and nothing changes: what is damaged would be lost.
    pub fn compact(
        &self,
        ratio: impl Into<Option<f64>>,
        dry_run: bool,
    ) -> Result<CompactionReport> {
        self.compact_with(ratio, dry_run, &mut |_, _| Ok(()))
    }

    /// The same; `progress` is called with bytes done and bytes in all, which are more once it is known
    /// what is copied. An error of it ends the work: what was compacted by then stays so. It must not
    /// call the store.
    pub fn compact_with(
        &self,
        ratio: impl Into<Option<f64>>,
        dry_run: bool,
        progress: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<CompactionReport> {
        let ratio = ratio.into().unwrap_or(self.options().compaction_ratio);
        if !(0.0..=1.0).contains(&ratio) {
            let message = format!("compaction ratio {ratio}, may be 0 to 1");
            return Err(self.shared.refused(ErrorKind::InvalidArgument, &message));
        }
        let (shared, wal) = self.writable()?;
        let mut state = shared.state();
        state.check(shared)?;
        shared.compact(wal, &mut state, ratio, dry_run, &mut Progress::new(progress))
    }
}

impl Shared {
    fn compact(
        &self,
        wal: &EventWal,
        state: &mut State,
        ratio: f64,
        dry_run: bool,
        progress: &mut Progress<'_>,
    ) -> Result<CompactionReport> {
        let (mut report, mut shares) = (CompactionReport::default(), BTreeMap::new());
        let segments: Vec<Segment> =
            state.segments.by_id.values().map(|open| open.segment.clone()).collect();
        let found = fragmentation_of(&segments, progress)?;
        for share in found.into_iter().filter(|share| share.is_due(ratio)) {
            report.add(&share);
            shares.insert(share.segment, share);
        }
        drop(segments);
        if dry_run || report.segments.is_empty() {
            progress.end()?;
            return Ok(report);
        }
        progress.expect(report.bytes_before);
        self.checkpoint(wal, state)?;
        report.bytes_after = 0;
        for old in self.steps(&shares) {
            let next = state.manifest.next_segment_id;
            let mut targets = Segments::new(&self.dir, self.options.storage.clone());
            let moved = match self.copy(state, &old, next, &mut targets, progress) {
                Ok(moved) => {
                    targets.map(&self.options);
                    moved
                }
                Err(error) => {
                    self.give_up(state, targets, next);
                    return Err(error);
                }
            };
            report.written.extend(targets.by_id.keys());
            let ends = targets.by_id.values().map(|open| u64::from(open.segment.end()));
            report.bytes_after += ends.sum::<u64>();
            // From here on the manifest decides.
            let done = self.swap(state, &old, targets, &moved);
            done.inspect_err(|error| state.broken = Some(error.message().to_owned()))?;
        }
        progress.end()?;
        Ok(report)
    }

    /// Which old segments go in one step.
    fn steps(&self, shares: &BTreeMap<u32, Fragmentation>) -> Vec<Vec<u32>> {
        let step_bytes = STEP_SEGMENTS.saturating_mul(self.options.segment_bytes);
        let (mut steps, mut step, mut bytes) = (Vec::new(), Vec::new(), 0);
        for (&id, share) in shares {
            step.push(id);
            bytes += share.live_bytes;
            if bytes >= step_bytes {
                steps.push(std::mem::take(&mut step));
                bytes = 0;
            }
        }
        if !step.is_empty() {
            steps.push(step);
        }
        steps
    }

    /// Delete the copies: what they hold may be deleted from now on.
    pub(super) fn give_up(&self, state: &mut State, mut targets: Segments, next: u32) {
        let copies: Vec<u32> = targets.by_id.keys().copied().collect();
        if let Err(error) = targets.remove(&copies) {
            state.broken = Some(error.message().to_owned());
        }
        // What is there in part uses up its number.
        state.manifest.next_segment_id = targets.next_free(next);
    }

    /// Copy what counts to new segments, and sync them; they get the numbers from `next` on.
    pub(super) fn copy(
        &self,
        state: &State,
        old: &[u32],
        next: u32,
        targets: &mut Segments,
        progress: &mut Progress<'_>,
    ) -> Result<Moved> {
        let (mut part, mut moved) = (Part::default(), Moved::default());
        for &id in old {
            let Some(Open { segment, .. }) = state.segments.by_id.get(&id) else { continue };
            let same_pages = segment.header().page_bytes == self.options.page_bytes;
            let mut scan = segment.scan(0).with_names();
            while let Some(found) = scan.next()? {
                let Found::Record(found) = found else { continue };
                progress.add((found.end - found.offset).into())?;
                if fate_of(&found.event) != Fate::Keep {
                    moved.gone.push(Location { segment: id, offset: found.offset });
                    continue;
                }
                part.events.push((found.event.id, found.event.created_at));
                if same_pages {
                    part.bytes.extend_from_slice(found.bytes);
                } else {
                    let (trailer, pages) = (self.options.checksums, self.options.page_bytes);
                    record::encode_stored(&found.event, trailer, pages, &mut part.bytes)?;
                }
                part.ends.push(part.bytes.len());
                if part.bytes.len() >= PART_BYTES {
                    self.write_part(targets, &mut part, next, &mut moved)?;
                }
            }
        }
        self.write_part(targets, &mut part, next, &mut moved)?;
        if targets.by_id.is_empty() {
            // Without one, nothing in the segments would say that these did not get lost.
            targets.create(&self.options, next, now())?;
        }
        let written: Vec<u32> = targets.by_id.keys().copied().collect();
        for id in written {
            targets.write_header(id, Some(now()))?;
        }
        targets.sync()?;
        Ok(moved)
    }

    fn write_part(
        &self,
        targets: &mut Segments,
        part: &mut Part,
        next: u32,
        moved: &mut Moved,
    ) -> Result<()> {
        let mut from = 0;
        let mut records: Vec<&[u8]> = Vec::with_capacity(part.ends.len());
        for &end in &part.ends {
            records.push(slice::part(&part.bytes, from..end));
            from = end;
        }
        let mut events = part.events.iter();
        let mut rest = records.as_slice();
        while !rest.is_empty() {
            let fits = match targets.last() {
                Some(_) => self.fitting(targets, rest)?,
                None => 0,
            };
            if fits == 0 {
                let id = targets.last().map_or(next, |last| last + 1);
                targets.create(&self.options, id, now())?;
            }
            // One at least: an event may be larger than a segment is meant to be.
            let fits = self.fitting(targets, rest)?.max(1);
            let (these, later) = rest.split_at(fits);
            let places = targets.append(these)?;
            let kept = places.iter().zip(&mut events).map(|(&at, &(id, time))| (id, time, at));
            moved.kept.extend(kept);
            rest = later;
        }
        part.clear();
        Ok(())
    }

    /// How many of some records the last segment has room for.
    fn fitting(&self, targets: &mut Segments, records: &[&[u8]]) -> Result<usize> {
        let active = &targets.active()?.segment;
        let mut end = u64::from(active.end());
        let fits = records.iter().take_while(|record| {
            end += active.bytes_for(record.len());
            end <= self.options.segment_bytes
        });
        Ok(fits.count())
    }

    /// Have the manifest name the new segments, and delete the old ones.
    pub(super) fn swap(
        &self,
        state: &mut State,
        old: &[u32],
        targets: Segments,
        moved: &Moved,
    ) -> Result<()> {
        state.segments.by_id.extend(targets.by_id);
        state.manifest.next_segment_id = state.segments.last().map_or(0, |last| last + 1);
        state.manifest.compactions += 1;
        state.manifest.last_compaction_time = now();
        self.store_manifest(state, old)?;
        state.index_moved(moved)?;
        state.segments.remove(old)?;
        state.index_durable()
    }
}

/// Records to be written.
#[derive(Default)]
struct Part {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Their ids and times.
    events: Vec<(Id, u32)>,
}

impl Part {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.events.clear();
    }
}
