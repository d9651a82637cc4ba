//! Reading records as they are appended; "not yet" is not "corrupt".

use std::time::{Duration, Instant};

use crate::error::{ErrorKind, Result};
use crate::ground::locks::atomic::Ordering;
use crate::ground::locks::lock;
use crate::log::Log;
use crate::log::format::Format;
use crate::log::look::inspect::{READER_TRIES, patiently};
use crate::log::notice;
use crate::log::read::Snapshot;
use crate::log::read::cursor::Cursor;
use crate::log::resync::{Learnt, Stretch, resync};
use crate::mode::Mode;
use crate::scan::framing::Frame;
use crate::scan::{OnCorrupt, Scanned, Scanner};

const POLL_FIRST: Duration = Duration::from_micros(500);
const POLL_LONGEST: Duration = Duration::from_millis(20);
/// A write in progress is over by then. Any other obstacle is damage or a torn tail.
const SUSPICIOUS_AFTER: Duration = Duration::from_secs(1);

/// The next record of a follower.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// The record with a number; the writer may drop the record soon.
    Ordinal(u64),
    /// The record at a byte.
    Offset(u64),
}

/// Follows a log from a given record on.
#[derive(Debug)]
pub struct Follow<F: Format> {
    log: Log<F>,
    cursor: Cursor<F>,
    next: Next,
    /// How many cuts of the log's end by this handle were checked.
    cuts: u64,
    /// Byte at which no record follows, and since when.
    stuck: Option<(u64, Instant)>,
    /// Number of tries to find the next record after a failed read.
    tries: u32,
}

impl<F: Format> Log<F> {
    /// Follow the log from the record with number `start` on.
    pub fn follow_ordinal(&self, start: u64) -> Result<Follow<F>> {
        let cursor = self.cursor_by_ordinal(start, None, OnCorrupt::Raise)?;
        Ok(self.follow_from(cursor, Next::Ordinal(start)))
    }

    /// Follow the log from the record at a byte on; `None` means the first record.
    pub fn follow_offset(&self, from: Option<u64>) -> Result<Follow<F>> {
        let from = match from {
            Some(from) => from,
            None => self.extent()?.start,
        };
        let cursor = self.cursor_by_offset(Some(from), None, OnCorrupt::Raise)?;
        Ok(self.follow_from(cursor, Next::Offset(from)))
    }

    fn follow_from(&self, cursor: Cursor<F>, next: Next) -> Follow<F> {
        let cuts = self.shared.cuts.load(Ordering::Acquire);
        Follow { log: self.clone(), cursor, next, cuts, stuck: None, tries: 1 }
    }
}

impl<F: Format> Follow<F> {
    /// Byte of the next record, after the first record or if the follower began at a byte.
    pub fn offset(&self) -> Option<u64> {
        match self.next {
            Next::Offset(offset) => Some(offset),
            Next::Ordinal(_) => None,
        }
    }

    /// The next record, after waiting at most `wait`. `None`: not yet. A torn or unwritten tail is "not yet", too,
    /// because the writer may complete or cut the tail. Damage is an error, and a truncation below the follower's place
    /// is an error, too.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) for damage, unless the walk passes over it. The walk ends
    /// after an error.
    pub fn next(&mut self, wait: Duration) -> Result<Option<F::Ref<'_>>> {
        let deadline = Instant::now().checked_add(wait);
        let mut poll = POLL_FIRST;
        loop {
            self.log.usable()?;
            self.check_cuts()?;
            let stepped = match self.cursor.advance() {
                // A writer that cut the end may have written new records there since.
                Err(e) if e.kind() == ErrorKind::Io && self.tries < READER_TRIES => {
                    std::thread::sleep(POLL_FIRST * (1 << self.tries));
                    self.tries += 1;
                    self.renew()?;
                    continue;
                }
                stepped => stepped?,
            };
            if let Some((ordinal, offset, frame)) = stepped {
                self.next = Next::Offset(offset + frame.len());
                (self.stuck, self.tries) = (None, 1);
                return Ok(Some(F::show(ordinal, offset, frame, self.cursor.bytes())));
            }
            if self.renew()? {
                continue;
            }
            self.check_stuck()?;
            let now = Instant::now();
            let left = deadline.map_or(poll, |deadline| deadline.saturating_duration_since(now));
            if left.is_zero() {
                return Ok(None);
            }
            std::thread::sleep(poll.min(left));
            poll = (poll * 2).min(POLL_LONGEST);
        }
    }

    /// Walk on if the log has more records by now.
    fn renew(&mut self) -> Result<bool> {
        let extent = self.log.refresh_extent()?;
        let more = match self.next {
            Next::Ordinal(ordinal) => extent.records > 0 && extent.next() > ordinal,
            Next::Offset(offset) if extent.end < offset => {
                return Err(self.log.usable()?.was_cut(offset));
            }
            Next::Offset(offset) => extent.end > offset,
        };
        if more {
            self.cursor = match self.next {
                Next::Ordinal(start) => {
                    self.log.cursor_by_ordinal(start, None, OnCorrupt::Raise)?
                }
                Next::Offset(from) => {
                    self.log.cursor_by_offset(Some(from), None, OnCorrupt::Raise)?
                }
            };
        }
        Ok(more)
    }

    /// Fail if this handle cut the log below the next record, even if new records were appended since.
    fn check_cuts(&mut self) -> Result<()> {
        let shared = self.log.usable()?;
        let cuts = shared.cuts.load(Ordering::Acquire);
        if cuts == self.cuts {
            return Ok(());
        }
        let ends = lock(&shared.cut_ends);
        let lowest = ends.iter().skip(self.cuts as usize).min().copied();
        drop(ends);
        if let (Next::Offset(offset), Some(lowest)) = (self.next, lowest)
            && lowest < offset
        {
            return Err(shared.was_cut(offset));
        }
        self.cuts = cuts;
        Ok(())
    }

    /// Look past a place that has not become a record for long: a proved record after the place means damage.
    fn check_stuck(&mut self) -> Result<()> {
        let shared = self.log.usable()?;
        let snapshot = shared.snapshot();
        let end = snapshot.extent.end;
        if shared.mode != Mode::Read {
            return Ok(());
        }
        match self.stuck {
            Some((at, since)) if at == end && since.elapsed() < SUSPICIOUS_AFTER => return Ok(()),
            Some((at, _)) if at == end => {}
            _ => {
                self.stuck = Some((end, Instant::now()));
                return Ok(());
            }
        }
        self.stuck = Some((end, Instant::now()));
        patiently::<F, _>(&[ErrorKind::Io], || self.look_after(&snapshot))
    }

    /// Look for a proved record after the place.
    fn look_after(&self, snapshot: &Snapshot) -> Result<()> {
        let (shared, end) = (self.log.usable()?, snapshot.extent.end);
        let fail = |e| shared.fail("read the log", e);
        let (file, there) = shared.whole(snapshot)?;
        let mut scanner = Scanner::of_frames(shared.framing, end, there);
        let why = match scanner.next(&*file).map_err(fail)? {
            Scanned::Stop { why, .. } => why,
            // The writer completed the record in the meantime.
            Scanned::Record { .. } | Scanned::End => return Ok(()),
        };
        // A long record in the middle of its write may hold whole records: only a record proved to lie after the long
        // record counts.
        let ordinal = Some(snapshot.extent.next()).filter(|_| snapshot.numbered && F::NUMBERED);
        let stretch = Stretch {
            file: &*file,
            framing: shared.framing,
            at: end,
            end: there,
            ordinal,
            rescue: false,
        };
        let name = F::name_of(ordinal, end);
        let evidence = snapshot.evidence();
        let found =
            resync(stretch, &why, &name, evidence, false, &mut Learnt::default()).map_err(fail)?;
        match found.damage.filter(|damage| damage.next_intact.is_some() && damage.next_proved) {
            None => Ok(()),
            Some(damage) => {
                let error = shared.corrupt(&damage);
                let error = match error.kind() {
                    ErrorKind::Corrupt => shared.explain(end, self.cuts, error),
                    _ => error,
                };
                notice::raised(&error);
                Err(error)
            }
        }
    }
}
