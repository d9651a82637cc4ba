//! Compaction: copy the current events to new segments, and delete the old segments.
//!
//! 1. Make a checkpoint, so that opening replays no entry about the old segments.
//! 2. Copy the current events to new segments under unfinished names, and sync files and names. A
//!    crash leaves files that no reader looks at, and opening for writing deletes them.
//! 3. Store the intent, durably. From here on the compaction counts, and opening finishes it.
//! 4. Rename the new segments, list them in the manifest, delete the old segments, and remove the
//!    intent (`pages/compacted.rs`).
//!
//! Steps 2 to 4 run for a few old segments at a time, so that a crash or an error costs little
//! work. Finished segments have nothing left to drop, and the next compaction continues with the
//! rest.

use std::collections::BTreeMap;
use std::sync::mpsc::sync_channel;
use std::thread::{self, ScopedJoinHandle};

use super::fragmentation::{CompactionReport, Fate, fate_of, fragmentation_of};
use crate::error::{ErrorKind, Result};
use crate::ground::slice;
use crate::nostr::bytes::event::{Id, Location};
use crate::nostr::bytes::names::Searches;
use crate::nostr::bytes::record;
use crate::nostr::log::wal::EventWal;
use crate::nostr::pages::compacted::Compacted;
use crate::nostr::pages::manifest;
use crate::nostr::pages::on_all_cores::cores;
use crate::nostr::pages::on_all_cores::gone;
use crate::nostr::pages::options::now;
use crate::nostr::pages::progress::Progress;
use crate::nostr::pages::segment::{Found, PageDamage, Segment};
use crate::nostr::pages::segments::Segments;
use crate::nostr::store::handle::{EventStore, Shared, State};
use crate::nostr::store::indexing::Moved;

/// The number of new segments that one step of a compaction fills.
const STEP_SEGMENTS: u64 = 4;
/// The bytes of old pages in one part of the copied records.
const PART_BYTES: u64 = 1 << 20;
/// The number of parts that may wait for a write.
const PARTS_WAITING: usize = 4;
/// The number of bytes below which a thread is not worth its start.
const THREAD_BYTES: u64 = 16 << 20;
/// The number of bytes after which a sync begins.
const SYNC_BYTES: u64 = 16 << 20;

impl EventStore {
    /// Drop deleted, replaced and expired events from the segments in which they take at least this
    /// share of the bytes. 0 selects each segment with any such event, and `None` stands for the
    /// [`Options::compaction_ratio`]. Segments with nothing to drop stay unchanged. Other calls on
    /// the store wait until the end; running walks continue. A dry run only reports, and works on a
    /// store open for reading, too.
    ///
    /// [`Options::compaction_ratio`]: crate::nostr::Options::compaction_ratio
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`] for a damaged segment, which stays, because a copy would lose the
    /// damaged events. The check comes before the first change. If damage appears during the
    /// compaction, the segments compacted so far stay compacted.
    pub fn compact(
        &self,
        ratio: impl Into<Option<f64>>,
        dry_run: bool,
    ) -> Result<CompactionReport> {
        self.compact_with(ratio, dry_run, &mut |_, _| Ok(()))
    }

    /// Compact the store, and call `progress` with the bytes done and the total. The total grows
    /// once the events to copy are known. An error of `progress` ends the work; the segments
    /// compacted so far stay compacted. `progress` must not call the store.
    ///
    /// # Errors
    ///
    /// Fails for a handle for reading ([`ReadOnly`](crate::ErrorKind::ReadOnly)), and for damage; see
    /// [Errors](crate#errors).
    pub fn compact_with(
        &self,
        ratio: impl Into<Option<f64>>,
        dry_run: bool,
        progress: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<CompactionReport> {
        let ratio = ratio.into().unwrap_or(self.options().ratio());
        if !(0.0..=1.0).contains(&ratio) {
            let message = format!("compaction ratio {ratio}, may be 0 to 1");
            return Err(self.shared.refused(ErrorKind::InvalidArgument, &message));
        }
        if dry_run {
            let mut report = CompactionReport::default();
            let found = self.fragmentation(progress)?;
            found
                .into_iter()
                .filter(|share| share.is_due(ratio))
                .for_each(|share| report.join(share));
            return Ok(report);
        }
        let (shared, wal) = self.writable()?;
        let mut state = shared.state();
        state.check(shared)?;
        shared.compact(wal, &mut state, ratio, &mut Progress::new(progress))
    }
}

impl Shared {
    fn compact(
        &self,
        wal: &EventWal,
        state: &mut State,
        ratio: f64,
        progress: &mut Progress<'_>,
    ) -> Result<CompactionReport> {
        let (mut report, mut shares) = (CompactionReport::default(), BTreeMap::new());
        let segments: Vec<Segment> =
            state.segments.by_id.values().map(|open| open.segment.clone()).collect();
        let found = fragmentation_of(&segments, self.options.now(), progress)?;
        for share in found.into_iter().map(|(share, _)| share).filter(|share| share.is_due(ratio)) {
            shares.extend(share.segments.first().map(|&id| (id, share.clone())));
            report.join(share);
        }
        drop(segments);
        if report.segments.is_empty() {
            progress.end()?;
            return Ok(report);
        }
        progress.expect(report.bytes_before);
        self.checkpoint(wal, state)?;
        report.bytes_after = 0;
        for old in self.steps(&shares) {
            let next = state.manifest.next_segment_id;
            let mut targets = state.segments.unfinished();
            let moved = self.copy(state, &old, &[], next, &mut targets, progress)?;
            targets.map(&self.options);
            report.written.extend(targets.by_id.keys());
            let ends = targets.by_id.values().map(|open| u64::from(open.segment.end()));
            report.bytes_after += ends.sum::<u64>();
            for share in old.iter().filter_map(|id| shares.get(id)) {
                state.manifest.total_deleted += share.deleted;
                state.manifest.total_replaced += share.replaced;
            }
            // From here on the intent decides.
            let done = self.swap(state, &old, targets, &moved);
            done.inspect_err(|error| state.broken = Some(error.message().to_owned()))?;
        }
        progress.end()?;
        Ok(report)
    }

    /// The groups of old segments, one group a step.
    fn steps(&self, shares: &BTreeMap<u32, CompactionReport>) -> Vec<Vec<u32>> {
        let step_bytes = STEP_SEGMENTS.saturating_mul(self.options.segment_size());
        let (mut steps, mut step, mut bytes) = (Vec::new(), Vec::new(), 0);
        for (&id, share) in shares {
            step.push(id);
            bytes += share.bytes_after;
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

    /// Copy the current events to new segments, numbered from `next` on, and sync the segments.
    /// Damage is an error, unless `saved` has the damaged pages, because the old segments will be
    /// deleted. After an error the new files are deleted, if the disk allows that.
    pub(crate) fn copy(
        &self,
        state: &State,
        old: &[u32],
        saved: &[(u32, PageDamage)],
        next: u32,
        targets: &mut Segments,
        progress: &mut Progress<'_>,
    ) -> Result<Moved> {
        let copied = self.copy_to(state, old, saved, next, targets, progress);
        copied.inspect_err(|_| {
            let files = targets.by_id.values().map(|open| open.segment.path());
            files.for_each(|path| drop(self.options.storage.remove(path)));
        })
    }

    fn copy_to(
        &self,
        state: &State,
        old: &[u32],
        saved: &[(u32, PageDamage)],
        next: u32,
        targets: &mut Segments,
        progress: &mut Progress<'_>,
    ) -> Result<Moved> {
        let old = old.iter().filter_map(|id| state.segments.by_id.get(id));
        let old: Vec<Segment> = old.map(|open| open.segment.clone()).collect();
        let bytes: u64 = old.iter().map(|segment| u64::from(segment.end())).sum();
        let mut kept = Vec::new();
        let mut write = |targets: &mut Segments, part: &Part| {
            progress.add(part.page_bytes)?;
            self.write_part(targets, part, next, &mut kept)
        };
        let gone = match bytes >= THREAD_BYTES && cores() > 1 {
            true => self.copy_in_threads(&old, saved, targets, &mut write)?,
            false => self.read_parts(&old, saved, &mut |part| write(targets, &part))?,
        };
        if targets.by_id.is_empty() {
            // Without a new segment, the old segments would look lost.
            targets.create(&self.options, next, now())?;
        }
        let written: Vec<u32> = targets.by_id.keys().copied().collect();
        for id in written {
            targets.write_header(id, Some(now()))?;
        }
        targets.sync()?;
        targets.sync_names()?;
        Ok(Moved { kept, gone })
    }

    /// Read in one thread, write in this thread, and sync in a third: otherwise the disk would wait
    /// for the last write.
    fn copy_in_threads(
        &self,
        old: &[Segment],
        saved: &[(u32, PageDamage)],
        targets: &mut Segments,
        write: &mut dyn FnMut(&mut Segments, &Part) -> Result<()>,
    ) -> Result<Vec<Location>> {
        thread::scope(|scope| {
            // An error below drops `parts`, and the reading thread ends with its next part.
            let (give, parts) = sync_channel(PARTS_WAITING);
            let reading = scope.spawn(move || {
                self.read_parts(old, saved, &mut |part| give.send(part).map_err(|_| gone()))
            });
            let (mut unsynced, mut syncing) = (0, None::<ScopedJoinHandle<'_, Result<()>>>);
            for part in parts {
                write(targets, &part)?;
                unsynced += part.page_bytes;
                if unsynced < SYNC_BYTES || syncing.as_ref().is_some_and(|one| !one.is_finished()) {
                    continue;
                }
                syncing.take().map_or(Ok(()), joined)?;
                // No target exists before the first kept event.
                if let Some(open) = targets.by_id.values().next_back() {
                    let segment = open.segment.clone();
                    (unsynced, syncing) = (0, Some(scope.spawn(move || segment.sync())));
                }
            }
            syncing.map_or(Ok(()), joined)?;
            joined(reading)
        })
    }

    /// Read the current events in parts; returns the locations of the others.
    fn read_parts(
        &self,
        old: &[Segment],
        saved: &[(u32, PageDamage)],
        give: &mut dyn FnMut(Part) -> Result<()>,
    ) -> Result<Vec<Location>> {
        let (mut part, mut gone, now) = (Part::default(), Vec::new(), self.options.now());
        let searches = Searches::default();
        for segment in old {
            let id = segment.header().segment;
            let same_pages = segment.header().page_bytes == self.options.page_size();
            let mut scan = segment.scan(0).with_names(&searches);
            while let Some(found) = scan.next()? {
                let found = match found {
                    Found::Record(found) => found,
                    Found::Damage(damage) if is_within(&damage, id, saved) => continue,
                    // The earlier look found no damage: a page has gone bad since, or a read
                    // failed.
                    Found::Damage(damage) => return Err(segment.damaged(&damage)),
                };
                part.page_bytes += u64::from(found.end - found.offset);
                if fate_of(&found.event, now) == Fate::Keep {
                    part.events.push((found.event.id, found.event.created_at));
                    if same_pages {
                        part.bytes.extend_from_slice(found.bytes);
                    } else {
                        let (trailer, pages) = (self.options.checksums, self.options.page_size());
                        record::encode_stored(&found.event, trailer, pages, &mut part.bytes)?;
                    }
                    part.ends.push(part.bytes.len());
                } else {
                    gone.push(Location { segment: id, offset: found.offset });
                }
                if part.page_bytes >= PART_BYTES {
                    give(std::mem::take(&mut part))?;
                }
            }
        }
        give(part)?;
        Ok(gone)
    }

    fn write_part(
        &self,
        targets: &mut Segments,
        part: &Part,
        next: u32,
        kept: &mut Vec<(Id, u32, Location)>,
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
                let id = targets.last().map_or(Ok(next), manifest::after)?;
                targets.create(&self.options, id, now())?;
            }
            // At least one record: an event may be larger than the limit of a segment.
            let fits = self.fitting(targets, rest)?.max(1);
            let (these, later) = rest.split_at(fits);
            let places = targets.append(these)?;
            let these = places.iter().zip(&mut events);
            kept.extend(these.map(|(&at, &(id, created_at))| (id, created_at, at)));
            rest = later;
        }
        Ok(())
    }

    /// The number of records for which the last segment has room.
    fn fitting(&self, targets: &mut Segments, records: &[&[u8]]) -> Result<usize> {
        let room = targets.room(self.options.segment_size())?;
        let active = &targets.active()?.segment;
        let mut needed = 0;
        let fits = records.iter().take_while(|record| {
            needed += active.bytes_for(record.len());
            needed <= room
        });
        Ok(fits.count())
    }

    /// Store the intent, list the new segments in the manifest, and delete the old segments.
    pub(crate) fn swap(
        &self,
        state: &mut State,
        old: &[u32],
        mut targets: Segments,
        moved: &Moved,
    ) -> Result<()> {
        let at = self.options.now();
        let compacted = Compacted {
            old: state.segments.sizes_of(old)?,
            new: targets.by_id.values_mut().map(|open| open.listed(at)).collect(),
            compactions: state.manifest.compactions + 1,
            next_segment_id: targets
                .last()
                .max(state.segments.last())
                .map_or(Ok(0), manifest::after)?,
            time: now(),
            total_deleted: state.manifest.total_deleted,
            total_replaced: state.manifest.total_replaced,
        };
        compacted.store(&*self.options.storage, &self.sidecar)?;
        state.segments.by_id.extend(targets.by_id);
        state.segments.finish()?;
        compacted.apply(&mut state.manifest);
        state.manifest.store(&self.options, &self.dir)?;
        state.index_moved(moved)?;
        let gone = state.segments.forget(old);
        state.segments.delete(&gone)?;
        Compacted::forget(&*self.options.storage, &self.sidecar)?;
        state.index_durable()
    }
}

/// Records to write.
#[derive(Default)]
struct Part {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The records' ids and times.
    events: Vec<(Id, u32)>,
    /// Size of the old pages, including pages not copied.
    page_bytes: u64,
}

/// Whether damage in a segment is among the saved pages.
fn is_within(damage: &PageDamage, segment: u32, saved: &[(u32, PageDamage)]) -> bool {
    let has_all = |part: &PageDamage| part.offset <= damage.offset && damage.end <= part.end;
    saved.iter().any(|(of, part)| *of == segment && has_all(part))
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(gone()))
}
