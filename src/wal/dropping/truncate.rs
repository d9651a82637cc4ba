//! Dropping a prefix and cutting the end. A crash at any step leaves the old or the new log, and
//! nothing dropped ever comes back.
//!
//! Prefix: everything is synced, then the mark; the head marker is replaced, durably; then whole
//! segments below it go, oldest first. End: the consumers above it are lowered, an intent is stored,
//! durably; the mark is lowered; segments go, newest first, and the last one is cut and synced; the
//! intent is removed. If the intent cannot be stored, the consumers are put back.

use std::io;

use super::cut::Dropped;
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::lines;
use crate::locks::atomic::Ordering;
use crate::locks::lock;
use crate::log::Extent;
use crate::sidecar::{Intent, Left, Mark, MarkFile};
use crate::wal::codec::{FORMAT, Lsn, segment_name};
use crate::wal::files::stored_sum;
use crate::wal::format::WalFormat;
use crate::wal::{Shared, State, Wal};

impl Wal {
    /// Drop every record before the one that begins at `lsn`; with the log's end, drop all. Whole
    /// segments that hold nothing else are removed. Needs a segmented log, and a record's beginning.
    /// [`Wal::would_drop`] says beforehand what would go.
    ///
    /// What would be dropped must be on stable storage already ([`Wal::sync`]), and no named consumer
    /// may need it: else [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument). Where something
    /// is dropped, what comes after it is synced, too.
    pub fn truncate_before(&self, lsn: Lsn) -> Result<Dropped> {
        self.drop_prefix(lsn, true)
    }

    /// As [`Wal::truncate_before`], but whatever consumers need.
    pub fn truncate_before_all(&self, lsn: Lsn) -> Result<Dropped> {
        self.drop_prefix(lsn, false)
    }

    fn drop_prefix(&self, lsn: Lsn, heed_consumers: bool) -> Result<Dropped> {
        let shared = self.0.writable()?;
        shared.check_segmented()?;
        self.0.finish_transaction()?;
        // No other thread may ask for an older record meanwhile.
        let _consumers = shared.lock_consumers()?;
        if heed_consumers {
            // Nothing was changed.
            shared.check_consumers(lsn).map_err(|e| e.with_durable(Durable::No))?;
        }
        let dropped = shared.archive_and_drop_before(lsn)?;
        if !heed_consumers {
            // The caller dropped it although consumers needed it.
            shared.consumers().raise(lsn.0)?;
        }
        Ok(dropped)
    }

    /// Keep the record that begins at `lsn` as the last one, and drop every record after it.
    pub fn truncate_after(&self, lsn: Lsn) -> Result<Dropped> {
        let shared = self.0.writable()?;
        self.0.finish_transaction()?;
        let _consumers = shared.lock_consumers()?;
        shared.exclusively(|state| {
            let kept = shared.extent_until(state.extent, lsn, true)?;
            shared.cut_after(state, kept)
        })
    }

    /// Drop the record that begins at `lsn`, and every record after it.
    pub fn truncate_from(&self, lsn: Lsn) -> Result<Dropped> {
        let shared = self.0.writable()?;
        self.0.finish_transaction()?;
        let _consumers = shared.lock_consumers()?;
        shared.exclusively(|state| {
            let kept = shared.extent_until(state.extent, lsn, false)?;
            shared.cut_after(state, kept)
        })
    }
}

/// What a truncation refused, with nothing changed, or why it failed with something changed.
enum Failure {
    Refused(Error),
    Broken(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

fn broken(error: Error) -> Failure {
    Failure::Broken(error)
}

impl Shared<WalFormat> {
    /// Call `change`, which says up to where the log is durable then, while no other thread appends or
    /// syncs. What it refuses leaves the handle usable; what breaks half-way poisons it, and
    /// the next opening finds the old or the new log.
    fn exclusively(
        &self,
        change: impl FnOnce(&mut State) -> std::result::Result<u64, Failure>,
    ) -> Result<Dropped> {
        let _held = lines::hold();
        let mut refused = None;
        let mut dropped = Dropped::default();
        let segments = || self.files.segments().map(|segments| segments.range());
        let before = segments();
        let led = self.commits.exclusive(|| {
            let mut state = self.state();
            self.check_open()?;
            let (before, extent) = (self.commits.durable(), state.extent);
            match change(&mut state) {
                Ok(durable) => {
                    dropped = Dropped::between(extent, state.extent);
                    // Before the next append: what was durable there is gone.
                    self.commits.set_durable(durable);
                    Ok(durable)
                }
                Err(Failure::Refused(error)) => {
                    refused = Some(error);
                    Ok(before)
                }
                Err(Failure::Broken(error)) => Err(error),
            }
        });
        if let (Some(before), Some(after)) = (before, segments()) {
            self.log_dropped(before.start..after.start.min(before.end));
            self.log_dropped(after.end.max(before.start)..before.end);
        }
        led.map_err(|e| e.of(FORMAT).at(&self.place.log))?;
        match refused {
            None => Ok(dropped),
            Some(error) => Err(error.with_durable(Durable::No)),
        }
    }

    /// Only segmented logs have a prefix that can go.
    pub(in crate::wal) fn check_segmented(&self) -> Result<()> {
        match self.files.segments() {
            Some(_) => Ok(()),
            None => {
                let message = "a single file has no prefix to drop; segmented logs have";
                Err(self.refused(ErrorKind::Unsupported, message))
            }
        }
    }

    /// Drop what lies before a record. The caller locks the consumers.
    pub(super) fn archive_and_drop_before(&self, lsn: Lsn) -> Result<Dropped> {
        self.archive_before(lsn).map_err(|e| e.with_durable(Durable::No))?;
        let extent = self.state().extent;
        if lsn.0 > extent.start && self.check_durable(lsn, lsn.0).is_ok() {
            self.extent_from(extent, lsn).map_err(|e| e.with_durable(Durable::No))?;
            // While others append: they wait for what is synced below.
            self.sync_and_keep_to(extent.end)?;
        }
        let first = || self.files.segments().map_or(0, |segments| segments.range().start);
        let before = first();
        let dropped = self.exclusively(|state| self.drop_before(state, lsn))?;
        self.counters.dropped(first().saturating_sub(before), dropped.records, dropped.bytes);
        Ok(dropped)
    }

    fn log_dropped(&self, segments: std::ops::Range<u64>) {
        if !segments.is_empty() {
            let (first, count) = (segment_name(segments.start), segments.end - segments.start);
            lines::info(format_args!(
                "segments dropped: {count}, from {first} on ({})",
                self.place.log.display()
            ));
        }
    }

    fn drop_before(&self, state: &mut State, lsn: Lsn) -> std::result::Result<u64, Failure> {
        let Some(segments) = self.files.segments() else { return Ok(self.commits.durable()) };
        let extent = state.extent;
        let kept = self.extent_from(extent, lsn)?;
        let Lsn(head) = lsn;
        self.check_durable(lsn, head)?;
        if head == extent.start {
            return Ok(self.commits.durable());
        }
        let bytes = self.format.layout().segment_bytes().unwrap_or(u64::MAX);
        let io = |doing: &str, e: io::Error| broken(Error::io(doing, &self.place.log, e));
        // A mark older than the head says nothing of what lies after it. So everything is synced
        // first, and nothing torn can lie there until the mark of the new head is durable.
        self.sync_file(&extent).map_err(broken)?;
        self.store_mark(extent.mark(state.file_id), false).map_err(broken)?;
        self.sync_mark()?;
        state.mark_is_open = true;
        segments.ensure(head).map_err(|e| io("create the segment of the head", e))?;
        let marker = segments.head()?;
        segments.store_head(head).map_err(|e| match segments.head() {
            // A full disk, for example.
            Ok(unchanged) if unchanged == marker => Failure::Refused(e),
            _ => broken(e),
        })?;
        // From here on the new head counts.
        segments.remove_below(head / bytes).map_err(|e| io("remove segments", e))?;
        state.extent = kept;
        state.block_start = state.block_start.max(head);
        state.file_id = self.file.id().map_err(|e| io("look at the log", e))?;
        state.file_end = state.file_end.max(self.file.len().map_err(|e| io("look at the log", e))?);
        self.index().drop_before(head, &*self.common.storage);
        self.store_mark(kept.mark(state.file_id), false).map_err(broken)?;
        self.sync_mark()?;
        Ok(kept.end)
    }

    fn sync_mark(&self) -> std::result::Result<(), Failure> {
        let synced = lock(&self.mark_file).as_ref().map_or(Ok(()), MarkFile::sync);
        synced.map_err(|e| broken(Error::io("sync the mark", &self.place.log, e)))
    }

    fn cut_after(&self, state: &mut State, kept: Extent) -> std::result::Result<u64, Failure> {
        self.check_durable(Lsn(kept.last_offset), kept.end)?;
        if kept.end == state.extent.end {
            return Ok(self.commits.durable());
        }
        let io = |doing: &str, e: io::Error| broken(Error::io(doing, &self.place.log, e));
        let first = stored_sum(&*self.file, kept.start);
        let first = first.map_err(|e| Error::io("read the log", &self.place.log, e))?;
        let Extent { start, end, last_offset, last_sum, .. } = kept;
        let (first_sum, file) = (first.unwrap_or(0), state.file_id);
        let intent = Intent { end, last_offset, last_sum, first_sum, start, file };
        let consumers = self.consumers().load()?;
        let refuse = |error: Error| match self.consumers().put_back(&consumers, kept.end) {
            Ok(()) => Failure::Refused(error),
            Err(e) => broken(self.not_put_back(&error, &e)),
        };
        // Before the cut: a crash in between shows them records again, and never hides one.
        self.consumers().lower(kept.end).map_err(&refuse)?;
        intent.store(&*self.common.storage, &self.place.sidecar).map_err(
            |e| match Intent::load(&*self.common.storage, &self.place.sidecar) {
                Ok(Left::Absent) => refuse(e),
                _ => broken(e),
            },
        )?;
        // From here on the new end counts: the next opening finishes this.
        lock(&self.cut_ends).push(kept.end);
        seeded!(self.cuts.fetch_add(1, Ordering::AcqRel), "cut-not-counted" => 0);
        self.index().cut(kept.end);
        let (index_entries, index_chain) = self.index().summary_at(kept.end);
        let mark = Mark { index_entries, index_chain, ..kept.mark(state.file_id) };
        let mark = Mark { exact: self.is_exact(), ..mark };
        let lowered = seeded!(MarkFile::reset(&*self.common.storage, &self.place.sidecar, &mark),
            "cut-under-its-mark" => MarkFile::open(&*self.common.storage, &self.place.sidecar));
        *lock(&self.mark_file) = Some(lowered.map_err(|e| io("lower the mark", e))?);
        self.file.set_len(kept.end).map_err(|e| io("cut the log", e))?;
        self.sync_file(&kept).map_err(broken)?;
        Intent::clear(&*self.common.storage, &self.place.sidecar).map_err(broken)?;
        state.mark_is_open = true;
        state.extent = kept;
        state.file_end = kept.end;
        state.allocates = true;
        state.block_start = self.index().last_offset().max(kept.start);
        Ok(kept.end)
    }

    fn not_put_back(&self, why: &Error, error: &Error) -> Error {
        let message = format!("{why}, and putting back the consumers lowered for it: {error}");
        Error::new(ErrorKind::Io, message).of(FORMAT).at(&self.place.log)
    }

    pub(super) fn check_durable(&self, lsn: Lsn, end: u64) -> Result<()> {
        let durable = self.commits.durable();
        if end <= durable {
            return Ok(());
        }
        let message = format!("lsn {lsn} is not durable, the log is up to {durable}; sync first");
        Err(self.refused(ErrorKind::InvalidArgument, message))
    }
}
