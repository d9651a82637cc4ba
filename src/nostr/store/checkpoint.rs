//! Checkpoints, and room for appends.
//!
//! 1. Sync the write-ahead log, which can repair an unclean end of the segments.
//! 2. Write the flags that waited for the sync, and sync the segments. The segments now hold
//!    everything in the log.
//! 3. Log CHECKPOINT, and sync the log.
//! 4. Write the counters to the segments' headers, as hints. Then store the manifest with the end
//!    of the last segment, and the entry of the log at which opening continues (`open/redo.rs`).
//! 5. Delete the files of the log wholly before the checkpoint: no manifest needs them any more.

use std::thread::Thread;
use std::time::{Duration, Instant};

use super::handle::{EventStore, Shared, State};
use crate::error::{Error, Result};
use crate::ground::background;
use crate::ground::lines;
use crate::nostr::log::wal::EventWal;
use crate::nostr::pages::manifest;
use crate::nostr::pages::options::now;

impl EventStore {
    /// Make the segments hold every append durably, so that opening replays nothing. Files of the
    /// write-ahead log wholly before the checkpoint are deleted; the file with the checkpoint
    /// stays.
    ///
    /// # Errors
    ///
    /// Fails if the sync fails, now or before ([`Poisoned`](crate::ErrorKind::Poisoned)); see [Errors](crate#errors).
    pub fn checkpoint(&self) -> Result<()> {
        let (shared, wal) = self.writable()?;
        let mut state = shared.state();
        state.check(shared)?;
        shared.checkpoint(wal, &mut state)
    }

    /// Start the thread that retains and compacts in time, and the thread that syncs appends and makes
    /// checkpoints in time, if the durability asks for timed syncs. With another durability, appends
    /// make the checkpoints.
    pub(crate) fn begin_threads(&self) -> Result<()> {
        let shared = &self.shared;
        if shared.options.auto_compact || !shared.options.retention.is_empty() {
            let interval = shared.options.compaction_wait.min(Duration::from_secs(60));
            background::every(shared, &shared.compactor, interval, Shared::compact_in_time)
                .map_err(|e| Error::io("start the thread of compactions", &shared.dir, e))?;
            if !shared.options.retention.is_empty() {
                shared.compactor.get().into_iter().for_each(Thread::unpark);
            }
        }
        let Some(interval) = shared.options.sync_time() else { return Ok(()) };
        background::every(shared, &shared.background, interval, Shared::keep_time)
            .map_err(|e| Error::io("start the sync thread", &shared.dir, e))
    }

    /// Make a checkpoint if one is due after some time: for tests.
    #[doc(hidden)]
    pub fn checkpoint_after(&self, time: Duration) -> Result<()> {
        let (shared, wal) = self.writable()?;
        let mut state = shared.state();
        state.check(shared)?;
        shared.checkpoint_in_time(wal, &mut state, Instant::now() + time)
    }

    /// After a checkpoint, begin a segment if the last segment has pages of another size than
    /// wanted. Records are made for the page size of their segment, so the size must not change
    /// later.
    pub(crate) fn begin_pages(&self) -> Result<()> {
        let (shared, _) = self.writable()?;
        let mut state = shared.state();
        match state.page_bytes() == shared.options.page_size() {
            true => Ok(()),
            false => {
                shared.options.warn_of_pages(&shared.dir);
                shared.begin_segment(&mut state)
            }
        }
    }
}

impl Shared {
    /// One round of the thread; false ends the thread.
    fn keep_time(&self) -> bool {
        let Some(wal) = self.wal.as_ref().filter(|_| !self.is_closed()) else { return false };
        let synced = if wal.unsynced_bytes() > 0 { wal.sync() } else { Ok(()) };
        if let Err(error) = synced {
            // The next append fails. A closed log is no error: closing syncs.
            if !self.is_closed() {
                lines::warn(format_args!("the sync in the background failed: {error}"));
            }
            return false;
        }
        // A call that holds the store longer looks at the time itself.
        let Some(mut state) = self.free_state() else { return true };
        if self.is_closed() || state.broken.is_some() {
            return true;
        }
        if let Err(error) = self.checkpoint_in_time(wal, &mut state, Instant::now()) {
            lines::warn(format_args!("the checkpoint in the background failed: {error}"));
        }
        true
    }

    /// Make a checkpoint if one is due.
    fn checkpoint_in_time(&self, wal: &EventWal, state: &mut State, now: Instant) -> Result<()> {
        match self.is_checkpoint_due(state, now) {
            true => self.checkpoint(wal, state),
            false => Ok(()),
        }
    }

    /// Whether the log is long, or the first entry after the last checkpoint is old.
    fn is_checkpoint_due(&self, state: &State, now: Instant) -> bool {
        let age = state.logged_since.map(|since| now.saturating_duration_since(since));
        state.wal_bytes >= self.options.checkpoint_size()
            || seeded!(age, "checkpoint-ignores-the-time" => None)
                .is_some_and(|age| age >= self.options.checkpoint_time())
    }

    pub(crate) fn checkpoint(&self, wal: &EventWal, state: &mut State) -> Result<()> {
        wal.sync()?;
        let done = self.write_all(wal, state);
        done.inspect_err(|error| state.broken = Some(error.message().to_owned()))
    }

    fn write_all(&self, wal: &EventWal, state: &mut State) -> Result<()> {
        // Another thread updates the index during the sync of the segments.
        state.begin_to_index()?;
        state.segments.write_flags()?;
        let written = state.segments.sync()?;
        state.index_durable()?;
        let lsn = wal.checkpoint(now())?;
        (state.wal_bytes, state.logged_since) = (0, None);
        for id in written {
            state.segments.write_header(id, None)?;
        }
        (state.manifest.last_checkpoint_lsn, state.manifest.is_log_cut) = (lsn.0, false);
        self.store_manifest(state)?;
        wal.drop_before_checkpoint().map(drop)
    }

    /// Write the manifest with the current segments.
    pub(crate) fn store_manifest(&self, state: &mut State) -> Result<()> {
        let now = self.options.now();
        let segments = state.segments.by_id.values_mut();
        state.manifest.segments = segments.map(|open| open.listed(now)).collect();
        state.manifest.store(&self.options, &self.dir)?;
        state.is_unnamed = false;
        Ok(())
    }

    /// Begin another segment if the last has no room for these records, and make a checkpoint if
    /// one is due.
    pub(crate) fn make_room(
        &self,
        wal: &EventWal,
        state: &mut State,
        records: &[&[u8]],
    ) -> Result<()> {
        if state.is_unnamed {
            // Name the segment first. A power cut may empty an unnamed segment, and opening then
            // removes it. The log's entries would refer to a missing segment.
            self.store_manifest(state)?;
        }
        let room = state.segments.room(self.options.segment_size())?;
        let active = state.segments.active()?;
        let needed: u64 = records.iter().map(|record| active.segment.bytes_for(record.len())).sum();
        let is_full = active.has_pages() && needed > room;
        if is_full || self.is_checkpoint_due(state, Instant::now()) {
            self.checkpoint(wal, state)?;
        }
        if is_full {
            // The segment begins after the checkpoint, so opening replays entries into the last
            // segment only.
            self.begin_segment(state)?;
        }
        Ok(())
    }

    /// The free bytes of pages in the segment for a record that needs so many: the last segment, or
    /// the segment begun for the record.
    pub(super) fn room_from(&self, state: &mut State, needed: u64) -> Result<u64> {
        let (page_bytes, segment_bytes) = (self.options.page_size(), self.options.segment_size());
        let room = state.segments.room(segment_bytes)?;
        match needed > room && state.segments.active()?.has_pages() {
            true => Ok(segment_bytes.saturating_sub(page_bytes.into())),
            false => Ok(room),
        }
    }

    /// Begin another segment after a checkpoint.
    fn begin_segment(&self, state: &mut State) -> Result<()> {
        state.segments.map_last(&self.options);
        let id = state.manifest.next_segment_id;
        let next = manifest::after(id)?;
        let created = state.segments.create(&self.options, id, now());
        state.manifest.next_segment_id = match &created {
            Ok(()) => next,
            // A partial file uses up its number.
            Err(_) => state.segments.next_free(id),
        };
        created?;
        state.manifest.page_bytes = self.options.page_size();
        state.is_unnamed = true;
        self.store_manifest(state)
    }
}
