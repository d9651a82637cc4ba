//! Dropping the first records of a log, or the last. A crash at any step leaves the old or the new
//! log, and no dropped record ever comes back.
//!
//! Begin: sync everything, store the mark; replace the head marker, durably; then remove the whole
//! segments below the head, oldest first. End: lower the consumers above the new end; store an
//! intent, durably; lower the mark; remove segments, newest first; cut and sync the last segment;
//! remove the intent. If the intent cannot be stored, put the consumers back.

use std::io;

use crate::error::{Durable, Error, ErrorKind, Result};
use crate::ground::lines;
use crate::ground::locks::atomic::Ordering;
use crate::ground::locks::lock;
use crate::log::extent::Extent;
use crate::log::format::Format;
use crate::log::{Shared, State};
use crate::sidecar::{Consumers, Intent, Left, Mark, MarkFile};
use crate::storage::File;

/// Why a cut changed nothing, or failed half-way.
enum Failure {
    Refused(Error),
    Broken(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

type Changed = std::result::Result<u64, Failure>;

impl<F: Format> Shared<F> {
    /// The log's consumers. A cut lowers them.
    pub fn consumers(&self) -> Consumers<'_> {
        let (storage, sidecar) = (&*self.common.storage, &*self.place.sidecar);
        Consumers { storage, sidecar, format: F::NAME }
    }

    /// Drop the first records: `left` gives the rest of the log, or refuses. Returns the log before and after. A
    /// log in one file stays as it is.
    pub fn drop_begin(&self, left: impl FnOnce(Extent) -> Result<Extent>) -> Result<[Extent; 2]> {
        self.exclusively(|state| {
            let Some(segments) = self.files.segments() else { return Ok(self.commits.durable()) };
            let extent = state.extent;
            let kept = left(extent)?;
            let head = kept.start;
            if head == extent.start {
                return Ok(self.commits.durable());
            }
            let io = |doing: &str, e| self.broken(doing, e);
            // A mark older than the head says nothing about later records. So sync everything
            // first: then nothing after the head can be torn before the mark of the new head is
            // durable.
            self.sync_file(&extent).map_err(Failure::Broken)?;
            self.store_mark(extent.mark(state.file_id), false).map_err(Failure::Broken)?;
            self.sync_mark()?;
            state.mark_is_open = true;
            segments.ensure(head).map_err(|e| io("create the segment of the head", e))?;
            let marker = segments.head()?;
            segments.store_head(head).map_err(|e| match segments.head() {
                // A full disk, for example.
                Ok(unchanged) if unchanged == marker => Failure::Refused(e),
                _ => Failure::Broken(e),
            })?;
            // From here on the new head counts.
            let first = head / segments.segment_bytes();
            segments.remove_below(first).map_err(|e| io("remove segments", e))?;
            state.extent = kept;
            state.block_start = state.block_start.max(head);
            state.file_id = self.file.id().map_err(|e| io("look at the log", e))?;
            state.file_end =
                state.file_end.max(self.file.len().map_err(|e| io("look at the log", e))?);
            self.index().drop_before(head, &*self.common.storage);
            self.store_mark(kept.mark(state.file_id), false).map_err(Failure::Broken)?;
            self.sync_mark()?;
            Ok(kept.end)
        })
    }

    /// Drop the last records: `left` gives the rest of the log, or refuses. `sum_at` reads the checksum of a
    /// record. Returns the log before and after.
    pub fn drop_end(
        &self,
        left: impl FnOnce(Extent) -> Result<Extent>,
        sum_at: fn(&dyn File, u64) -> io::Result<Option<u32>>,
    ) -> Result<[Extent; 2]> {
        self.exclusively(|state| {
            let kept = left(state.extent)?;
            if kept.end == state.extent.end {
                return Ok(self.commits.durable());
            }
            let io = |doing: &str, e| self.broken(doing, e);
            let first = sum_at(&*self.file, kept.start);
            let first = first.map_err(|e| Error::io("read the log", &self.place.log, e))?;
            let Extent { start, end, last_offset, last_sum, .. } = kept;
            let (first_sum, file) = (first.unwrap_or(0), state.file_id);
            let intent = Intent { end, last_offset, last_sum, first_sum, start, file };
            let (storage, sidecar) = (&*self.common.storage, &*self.place.sidecar);
            let consumers = self.consumers().load()?;
            let refuse = |error: Error| match self.consumers().put_back(&consumers, kept.end) {
                Ok(()) => Failure::Refused(error),
                Err(e) => Failure::Broken(self.not_put_back(&error, &e)),
            };
            // Before the cut: after a crash in between, consumers read records again, and never
            // miss a record.
            self.consumers().lower(kept.end).map_err(&refuse)?;
            intent.store(storage, sidecar).map_err(|e| match Intent::load(storage, sidecar) {
                Ok(Left::Absent) => refuse(e),
                _ => Failure::Broken(e),
            })?;
            // From here on the new end counts: the next opening finishes this.
            lock(&self.cut_ends).push(kept.end);
            seeded!(self.cuts.fetch_add(1, Ordering::AcqRel), "cut-not-counted" => 0);
            self.index().cut(kept.end);
            let (index_entries, index_chain) = self.index().summary_at(kept.end);
            let mark = Mark { index_entries, index_chain, ..kept.mark(state.file_id) };
            let mark = Mark { exact: self.is_exact(), ..mark };
            let lowered = seeded!(MarkFile::reset(storage, sidecar, &mark),
                "cut-under-its-mark" => MarkFile::open(storage, sidecar));
            *lock(&self.mark_file) = Some(lowered.map_err(|e| io("lower the mark", e))?);
            self.file.set_len(kept.end).map_err(|e| io("cut the log", e))?;
            self.sync_file(&kept).map_err(Failure::Broken)?;
            Intent::clear(storage, sidecar).map_err(Failure::Broken)?;
            state.mark_is_open = true;
            state.extent = kept;
            state.file_end = kept.end;
            state.allocates = true;
            state.block_start = self.index().last_offset().max(kept.start);
            Ok(kept.end)
        })
    }

    /// Call `change` while no other thread appends or syncs. `change` returns the durable end. A
    /// refusal leaves the handle usable. A failure half-way poisons the handle, and the next
    /// opening finds the old or the new log.
    fn exclusively(&self, change: impl FnOnce(&mut State) -> Changed) -> Result<[Extent; 2]> {
        let _held = lines::hold();
        let mut cut = Ok([Extent::empty(0, 0); 2]);
        let led = self.commits.exclusive(|| {
            let mut state = self.state();
            self.check_open()?;
            let (before, extent) = (self.commits.durable(), state.extent);
            match change(&mut state) {
                Ok(durable) => {
                    cut = Ok([extent, state.extent]);
                    // Before the next append: the durable records there are cut.
                    self.commits.set_durable(durable);
                    Ok(durable)
                }
                Err(Failure::Refused(error)) => {
                    cut = Err(error.with_durable(Durable::No));
                    Ok(before)
                }
                Err(Failure::Broken(error)) => Err(error),
            }
        });
        led.map_err(|e| e.of(F::NAME).at(&self.place.log))?;
        cut
    }

    fn sync_mark(&self) -> std::result::Result<(), Failure> {
        let synced = lock(&self.mark_file).as_ref().map_or(Ok(()), MarkFile::sync);
        synced.map_err(|e| self.broken("sync the mark", e))
    }

    fn broken(&self, doing: &str, error: io::Error) -> Failure {
        Failure::Broken(Error::io(doing, &self.place.log, error))
    }

    fn not_put_back(&self, why: &Error, error: &Error) -> Error {
        let message = format!("{why}, and putting back the consumers lowered for it: {error}");
        Error::new(ErrorKind::Io, message).of(F::NAME).at(&self.place.log)
    }
}
