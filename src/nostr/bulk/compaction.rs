//! Compaction: copy the current events to new segments, and delete the old segments.
//!
//! 1. Make a checkpoint.
//! 2. Copy the current events to new segments under unfinished names, and sync files and names.
//!    Appends and queries go on. A crash leaves files that no reader looks at, and opening for
//!    writing deletes them.
//! 3. Hand the old segments to the archive, if the options have one.
//! 4. Copy the events appended to an old segment meanwhile, and give the copies the flags set
//!    meanwhile, until little is left. Then hold the store, and copy the rest.
//! 5. Make a checkpoint again, so that opening replays no entry about the old segments.
//! 6. Store the intent, durably. From here on the compaction counts, and opening finishes it.
//! 7. Rename the new segments, list them in the manifest, delete the old segments, and remove the
//!    intent (`pages/compacted.rs`). Release the store.
//! 8. Give the index the new places in portions (`moving.rs`).
//!
//! Steps 2 to 8 run for a few old segments at a time, so that a crash or an error costs little work.
//! Finished segments have nothing left to drop, and the next compaction continues with the rest.

use std::collections::BTreeMap;
use std::time::Instant;

use super::fragmentation::{CompactionReport, fragmentation_of};
use super::moving::Moving;
use crate::error::{ErrorKind, Result};
use crate::ground::lines;
use crate::ground::locks::atomic::Ordering;
use crate::ground::locks::lock;
use crate::nostr::index::moved::Moved;
use crate::nostr::log::wal::EventWal;
use crate::nostr::pages::compacted::Compacted;
use crate::nostr::pages::manifest;
use crate::nostr::pages::options::now;
use crate::nostr::pages::progress::Progress;
use crate::nostr::pages::segment::Segment;
use crate::nostr::pages::segments::Segments;
use crate::nostr::store::handle::{EventStore, Shared, State};

/// The number of new segments that one step of a compaction fills.
const STEP_SEGMENTS: u64 = 2;

impl EventStore {
    /// Drop deleted, replaced and expired events from the segments in which they take at least this
    /// share of the bytes. 0 selects each segment with any such event, and `None` stands for the
    /// [`Options::compaction_ratio`]. Segments with nothing to drop stay unchanged. Appends
    /// and queries go on, and wait only while new segments take the place of old ones. A dry run
    /// only reports, and works on a store open for reading, too.
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
    /// compacted so far stay compacted. `progress` must not close or compact the store.
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
        let mut progress = Progress::new(progress).until(&shared.closing);
        // Closing waits for the lock.
        let _compacting = lock(&shared.compacting);
        shared.compact(wal, ratio, &mut progress)
    }

    /// Compact if that is due, as the thread of compactions does: for tests.
    #[doc(hidden)]
    pub fn compact_in_time(&self) -> Result<()> {
        let (shared, wal) = self.writable()?;
        shared.compact_if_due(wal)
    }
}

impl Shared {
    /// One round of the thread that retains and compacts; false ends the thread.
    pub(crate) fn compact_in_time(&self) -> bool {
        let Some(wal) = self.wal.as_ref().filter(|_| !self.is_closed()) else { return false };
        let kept = self.retain_in_time(wal);
        let done = match self.options.auto_compact {
            true => kept.and_then(|()| self.compact_if_due(wal)),
            false => kept,
        };
        match done {
            Err(error) if !self.closing.load(Ordering::Acquire) => lines::warn(format_args!(
                "the retention or the compaction in the background failed, and the next one is in an hour: {error}"
            )),
            _ => {}
        }
        true
    }

    /// Compact, unless an hour has not passed since the last compaction, or nothing is due.
    fn compact_if_due(&self, wal: &EventWal) -> Result<()> {
        let wait = self.options.compaction_wait;
        let _compacting = lock(&self.compacting);
        let is_early = || {
            let state = self.state();
            now().abs_diff(state.manifest.last_compaction_time) < wait.as_secs()
                || state.compacted_at.is_some_and(|at| at.elapsed() < wait)
                || state.broken.is_some()
        };
        if is_early() {
            return Ok(());
        }
        let is_due = self.compaction_due();
        if matches!(is_due, Ok(false)) {
            return Ok(());
        }
        // Damage, too, is met once an hour only.
        self.state().compacted_at = Some(Instant::now());
        is_due?;
        let mut progress = Progress::silent().until(&self.closing);
        let report = self.compact(wal, self.options.ratio(), &mut progress)?;
        lines::info(format_args!(
            "a compaction dropped {} events, and made {} bytes of {} ({})",
            report.deleted + report.replaced + report.expired,
            report.bytes_after,
            report.bytes_before,
            self.dir.display()
        ));
        Ok(())
    }

    /// The caller holds the lock of compactions.
    fn compact(
        &self,
        wal: &EventWal,
        ratio: f64,
        progress: &mut Progress<'_>,
    ) -> Result<CompactionReport> {
        if self.is_closed() {
            return Err(self.refused(ErrorKind::Closed, "the store is closed"));
        }
        let (mut report, mut shares) = (CompactionReport::default(), BTreeMap::new());
        let segments: Vec<Segment> = {
            let state = self.state();
            state.check(self)?;
            state.segments.by_id.values().map(|open| open.segment.clone()).collect()
        };
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
        report.bytes_after = 0;
        {
            // Later events alone are unsynced then, and a power cut loses no page of an old segment.
            let mut state = self.state();
            state.check(self)?;
            self.checkpoint(wal, &mut state)?;
        }
        for old in self.steps(&shares) {
            let (written, bytes) = self.step(wal, &old, &shares, progress)?;
            report.written.extend(written);
            report.bytes_after += bytes;
        }
        progress.end()?;
        Ok(report)
    }

    /// Copy some old segments while other calls go on, and put the copies in their place. Returns
    /// the new segments, and their size.
    fn step(
        &self,
        wal: &EventWal,
        old: &[u32],
        shares: &BTreeMap<u32, CompactionReport>,
        progress: &mut Progress<'_>,
    ) -> Result<(Vec<u32>, u64)> {
        let (mut sources, next, mut targets) = {
            let mut state = self.state();
            state.check(self)?;
            state.segments.changed = Some(Vec::new());
            let next = state.manifest.next_segment_id;
            (state.segments.sources(old), next, state.segments.unfinished())
        };
        let copied = self.copy(&sources, &[], next, &mut targets, progress);
        let copied = copied.and_then(|mut moved| {
            progress.report()?;
            self.archive(&sources)?;
            let left = self.follow(&mut sources, next, &mut targets, &mut moved)?;
            Ok((moved, left))
        });
        let mut state = self.state();
        let later = state.segments.changed.take().unwrap_or_default();
        let ready = copied.and_then(|(mut moved, mut changed)| {
            state.check(self)?;
            changed.extend(later);
            self.catch_up(&state, (&sources, &changed), next, &mut targets, &mut moved)?;
            if state.wal_bytes > 0 {
                // Opening must replay no entry about the old segments.
                self.checkpoint(wal, &mut state)?;
            }
            Ok(moved)
        });
        let moved = ready.inspect_err(|_| self.discard(&targets))?;
        targets.map(&self.options);
        let written = targets.by_id.keys().copied().collect();
        let bytes = targets.by_id.values().map(|open| u64::from(open.segment.end())).sum();
        for share in old.iter().filter_map(|id| shares.get(id)) {
            state.manifest.total_deleted += share.deleted;
            state.manifest.total_replaced += share.replaced;
        }
        // From here on the intent decides.
        let done = self.swap(&mut state, old, targets, moved);
        let moving = done.inspect_err(|error| state.broken = Some(error.message().to_owned()))?;
        drop(state);
        self.move_index(moving, progress)?;
        Ok((written, bytes))
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

    /// Store the intent, list the new segments in the manifest, and delete the old segments. The
    /// caller gives the index the moves, or makes it again.
    pub(crate) fn swap(
        &self,
        state: &mut State,
        old: &[u32],
        mut targets: Segments,
        moved: Moved,
    ) -> Result<Moving> {
        state.catch_up_index()?;
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
        let moving = state.begin_to_move(moved, old)?;
        let gone = state.segments.forget(old);
        state.segments.delete(&gone)?;
        Compacted::forget(&*self.options.storage, &self.sidecar)?;
        Ok(moving)
    }
}
