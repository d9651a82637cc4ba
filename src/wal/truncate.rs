//! Dropping a prefix and cutting the end. A crash at any step leaves the old or the new log, and
//! nothing dropped ever comes back.
//!
//! Prefix: everything is synced, then the mark; the head marker is replaced, durably; then whole
//! segments below it go, oldest first. End: the consumers above it are lowered, an intent is stored,
//! durably; the mark is lowered; segments go, newest first, and the last one is cut and synced; the
//! intent is removed. If the intent cannot be stored, the consumers are put back.

use std::io;

use super::format::{Codec, FORMAT, HEADER_BYTES, Lsn};
use super::intent::{Intent, Left};
use super::look::stored_sum;
use super::tip::Tip;
use super::{Shared, State, Wal};
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::locks::atomic::Ordering;
use crate::locks::{MutexGuard, lock};
use crate::scan::{Found, Scanner};
use crate::sidecar::{Mark, MarkFile};

impl Wal {
    /// Drop every record before the one that begins at `lsn`; with the log's end, drop all. Whole
    /// segments that hold nothing else are removed. Syncs what is not yet. Needs a segmented log, a
    /// record's beginning, and one that is on stable storage; refuses to drop what a named consumer
    /// needs.
    pub fn truncate_before(&self, lsn: Lsn) -> Result<()> {
        self.drop_prefix(lsn, true)
    }

    /// As [`Wal::truncate_before`], but whatever consumers need.
    pub fn truncate_before_all(&self, lsn: Lsn) -> Result<()> {
        self.drop_prefix(lsn, false)
    }

    fn drop_prefix(&self, lsn: Lsn, heed_consumers: bool) -> Result<()> {
        let shared = self.writable()?;
        if shared.segments.is_none() {
            let message = "a single file has no prefix to drop; segmented logs have";
            return Err(shared.refused(ErrorKind::Unsupported, message));
        }
        // Nobody may ask for an older record in the meantime.
        let _consumers = lock(&shared.consumers);
        if heed_consumers {
            // Nothing was changed.
            shared.check_consumers(lsn).map_err(|e| e.with_durable(Durable::No))?;
        }
        shared.archive_before(lsn).map_err(|e| e.with_durable(Durable::No))?;
        shared.alone(|state| shared.drop_before(state, lsn))
    }

    /// Keep the record that begins at `lsn` as the last one, and drop every record behind it.
    pub fn truncate_after(&self, lsn: Lsn) -> Result<()> {
        let shared = self.writable()?;
        let _consumers = lock(&shared.consumers);
        shared.alone(|state| {
            let kept = shared.tip_behind(state.tip, lsn, true)?;
            shared.cut_behind(state, kept)
        })
    }

    /// Drop the record that begins at `lsn`, and every record behind it.
    pub fn truncate_from(&self, lsn: Lsn) -> Result<()> {
        let shared = self.writable()?;
        let _consumers = lock(&shared.consumers);
        shared.alone(|state| {
            let kept = shared.tip_behind(state.tip, lsn, false)?;
            shared.cut_behind(state, kept)
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

impl Shared {
    /// Call `change`, which says up to where the log is durable then, while nobody appends or
    /// syncs. What it refuses leaves the handle usable; what breaks half-way poisons it, and
    /// opening anew finds the old or the new log.
    fn alone(
        &self,
        change: impl FnOnce(&mut State) -> std::result::Result<u64, Failure>,
    ) -> Result<()> {
        let mut refused = None;
        let led = self.commits.exclusive(|| {
            let mut state: MutexGuard<'_, State> = self.state();
            self.check_open()?;
            let before = self.commits.durable();
            match change(&mut state) {
                Ok(durable) => {
                    // Before anybody may append: what was durable there is gone.
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
        self.counters.tell(self.options.slow_sync, &self.place.log);
        led.map_err(|e| e.of(FORMAT).at(&self.place.log))?;
        match refused {
            None => Ok(()),
            Some(error) => Err(error.with_durable(Durable::No)),
        }
    }

    fn drop_before(&self, state: &mut State, lsn: Lsn) -> std::result::Result<u64, Failure> {
        let Some(segments) = &self.segments else { return Ok(self.commits.durable()) };
        let tip = state.tip;
        let before = self.records_before(tip, lsn)?;
        let Lsn(head) = lsn;
        self.check_durable(lsn, head)?;
        if head == tip.start {
            return Ok(self.commits.durable());
        }
        let (first, records) = (tip.first + before, tip.records - before);
        let first_sum = self.sum_at(head, tip.end)?;
        let kept = match records {
            0 => Tip { first, ..Tip::empty(head) },
            _ => Tip { first, records, start: head, first_sum, ..tip },
        };
        let bytes = self.layout.segment_bytes().unwrap_or(u64::MAX);
        let io = |doing: &str, e: io::Error| broken(Error::io(doing, &self.place.log, e));
        // A mark older than the head says nothing of what lies behind it. So everything is synced
        // first, and nothing torn can lie there until the mark of the new head is durable.
        self.sync_file(tip).map_err(broken)?;
        self.store_mark(tip.mark(state.file_id), false).map_err(broken)?;
        self.sync_mark()?;
        segments.hold(head).map_err(|e| io("create the segment of the head", e))?;
        let marker = self.place.head(&*self.options.storage)?;
        self.place.store_head(&self.options, head).map_err(|e| {
            match self.place.head(&*self.options.storage) {
                // A full disk, for example.
                Ok(unchanged) if unchanged == marker => Failure::Refused(e),
                _ => broken(e),
            }
        })?;
        // From here on the new head holds.
        segments.remove_below(head / bytes).map_err(|e| io("remove segments", e))?;
        state.tip = kept;
        state.block_start = state.block_start.max(head);
        state.file_id = self.file.id().map_err(|e| io("look at", e))?;
        state.file_end = state.file_end.max(self.file.len().map_err(|e| io("look at", e))?);
        self.index().drop_before(head, &*self.options.storage, self.options.file_mode);
        self.store_mark(kept.mark(state.file_id), false).map_err(broken)?;
        self.sync_mark()?;
        Ok(kept.end)
    }

    fn sync_mark(&self) -> std::result::Result<(), Failure> {
        let synced = lock(&self.mark_file).as_ref().map_or(Ok(()), MarkFile::sync);
        synced.map_err(|e| broken(Error::io("sync the mark", &self.place.log, e)))
    }

    fn cut_behind(&self, state: &mut State, kept: Tip) -> std::result::Result<u64, Failure> {
        self.check_durable(Lsn(kept.last_offset), kept.end)?;
        if kept.end == state.tip.end {
            return Ok(self.commits.durable());
        }
        let io = |doing: &str, e: io::Error| broken(Error::io(doing, &self.place.log, e));
        let first = stored_sum(&*self.file, kept.start);
        let first = first.map_err(|e| Error::io("read the log", &self.place.log, e))?;
        let intent = Intent::of(kept, first.unwrap_or(0), state.file_id);
        let consumers = self.consumers()?;
        let refuse = |error: Error| match self.put_back_consumers(&consumers, kept.end) {
            Ok(()) => Failure::Refused(error),
            Err(e) => broken(self.lowered_in_vain(&error, &e)),
        };
        // Before the cut: a crash in between shows them records again, and never hides one.
        self.lower_consumers(kept.end).map_err(&refuse)?;
        intent.store(&self.options, &self.place.sidecar).map_err(|e| {
            match Intent::load(&*self.options.storage, &self.place.sidecar) {
                Ok(Left::Absent) => refuse(e),
                _ => broken(e),
            }
        })?;
        // From here on the new end holds: whoever opens the log next brings this to its end.
        self.cuts.fetch_add(1, Ordering::AcqRel);
        self.index().cut(kept.end);
        let (index_entries, index_chain) = self.index().summary_at(kept.end);
        let mark = Mark { index_entries, index_chain, ..kept.mark(state.file_id) };
        let exact = self.options.recovery == super::Recovery::Acknowledged;
        let mark = Mark { exact, ..mark };
        let lowered = MarkFile::reset(
            &*self.options.storage,
            &self.place.sidecar,
            &mark,
            self.options.file_mode,
        );
        *lock(&self.mark_file) = Some(lowered.map_err(|e| io("lower the mark", e))?);
        self.file.set_len(kept.end).map_err(|e| io("cut the log", e))?;
        self.sync_file(kept).map_err(broken)?;
        Intent::clear(&self.options, &self.place.sidecar).map_err(broken)?;
        state.tip = kept;
        state.file_end = kept.end;
        state.allocates = true;
        state.block_start = self.index().last_offset().max(kept.start);
        Ok(kept.end)
    }

    fn lowered_in_vain(&self, why: &Error, error: &Error) -> Error {
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

    /// The log as it is with the record at `lsn` as its last one, or without it.
    fn tip_behind(&self, tip: Tip, lsn: Lsn, keep: bool) -> Result<Tip> {
        let before = self.records_before(tip, lsn)?;
        if lsn.0 == tip.end {
            let message = format!("no record at lsn {lsn}, the log ends there");
            return Err(self.refused(ErrorKind::OutOfRange, message));
        }
        let mut scanner = Scanner::new(self.codec, lsn.0, tip.end);
        let mut kept = Tip { first: tip.first, ..Tip::empty(tip.start) };
        kept.first_sum = tip.first_sum;
        kept.records = before;
        kept.end = lsn.0;
        if keep {
            self.step(&mut scanner, &mut kept)?;
            return Ok(kept);
        }
        if kept.records == 0 {
            return Ok(Tip { first: tip.first, ..Tip::empty(tip.start) });
        }
        // The record before is found by walking from a border in front of it.
        let near = self.index().last_where(|entry| entry.offset < lsn.0);
        let from = match near.filter(|(_, entry)| entry.offset >= tip.start) {
            Some((_, entry)) => entry.offset,
            None => tip.start,
        };
        let codec = Codec { check: false, ..self.codec };
        let mut scanner = Scanner::new(codec, from, lsn.0);
        kept.end = from;
        while kept.end < lsn.0 {
            self.step(&mut scanner, &mut kept)?;
        }
        kept.records = before;
        kept.first_sum = tip.first_sum;
        Ok(kept)
    }

    /// How many records lie before the one at `lsn`.
    fn records_before(&self, tip: Tip, lsn: Lsn) -> Result<u64> {
        let counted = |ordinal: u64| {
            let before = ordinal.checked_sub(tip.first)?;
            let behind = tip.records.checked_sub(before)?;
            let fits = |records: u64, bytes: u64| {
                records <= bytes / HEADER_BYTES && (records == 0) == (bytes == 0)
            };
            (fits(before, lsn.0 - tip.start) && fits(behind, tip.end - lsn.0)).then_some(before)
        };
        if let Some(before) = counted(self.locate(tip, lsn)?) {
            return Ok(before);
        }
        // The index is advisory: without its ordinals the records are counted from the head on.
        self.index().cut(0);
        counted(self.locate(tip, lsn)?).ok_or_else(|| {
            let Tip { records, start, end, .. } = tip;
            let message = format!("lsn {lsn}: not {records} records from {start} to {end}");
            Error::new(ErrorKind::Corrupt, message).of(FORMAT).at(&self.place.log).offset_at(lsn.0)
        })
    }

    fn step(&self, scanner: &mut Scanner<Codec>, tip: &mut Tip) -> Result<()> {
        let at = scanner.position();
        let fail = |e| Error::io("read the log", &self.place.log, e).of(FORMAT).offset_at(at);
        match scanner.next(&*self.file).map_err(fail)? {
            Found::Record { offset, frame } => {
                tip.push(offset, frame.framed_len(), frame.crc);
                Ok(())
            }
            Found::Stop { why, .. } => {
                let message = format!("record at lsn {at}: {}", why.reason());
                let error = Error::new(ErrorKind::Corrupt, message).of(FORMAT);
                Err(error.at(&self.place.log).offset_at(at))
            }
            Found::End => Err(self.refused(ErrorKind::OutOfRange, format!("no record at {at}"))),
        }
    }

    fn sum_at(&self, offset: u64, end: u64) -> Result<u32> {
        if offset == end {
            return Ok(0);
        }
        let mut scanner = Scanner::new(self.codec, offset, end);
        let mut one = Tip::empty(offset);
        self.step(&mut scanner, &mut one)?;
        Ok(one.last_sum)
    }
}
