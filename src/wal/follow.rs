//! Reading records as they are appended, telling "not yet" from "corrupt".

use std::time::{Duration, Instant};

use super::cursor::{Cursor, OnCorrupt, RecordRef, corrupt};
use super::format::{FORMAT, Lsn};
use super::survey::resync;
use super::{Mode, Wal};
use crate::error::{Error, ErrorKind, Result};
use crate::scan::{Found, Scanner};

const POLL_FIRST: Duration = Duration::from_micros(500);
const POLL_LONGEST: Duration = Duration::from_millis(20);
/// A write in progress is over by then; what still stands in the way is damage or a torn tail.
const SUSPICIOUS_AFTER: Duration = Duration::from_secs(1);

/// Follows a log from a given record on.
#[derive(Debug)]
pub struct Follow {
    wal: Wal,
    cursor: Cursor,
    next: Lsn,
    /// Byte at which the log does not go on, and since when.
    stuck: Option<(u64, Instant)>,
}

impl Wal {
    /// Follow the log from the record at `from` on (`None`: its first), or from its end.
    pub fn follow(&self, from: Option<Lsn>) -> Result<Follow> {
        let next = match from {
            Some(lsn) => lsn,
            None => self.head()?,
        };
        let cursor = self.cursor(Some(next), None, OnCorrupt::Raise)?;
        Ok(Follow { wal: self.clone(), cursor, next, stuck: None })
    }
}

impl Follow {
    /// LSN of the next record.
    pub fn position(&self) -> Lsn {
        self.next
    }

    /// The next record, waiting for it at most so long. `None`: not yet. A torn or unwritten tail
    /// is "not yet" too, as its writer may complete or cut it; damage is an error, and so is a
    /// log that was truncated under its follower.
    pub fn next(&mut self, wait: Duration) -> Result<Option<RecordRef<'_>>> {
        let deadline = Instant::now().checked_add(wait);
        let mut poll = POLL_FIRST;
        loop {
            self.wal.usable()?;
            if let Some((lsn, frame)) = self.cursor.advance().map_err(|e| self.truncated(e))? {
                self.next = Lsn(lsn.0 + frame.framed_len());
                self.stuck = None;
                return Ok(Some(RecordRef { lsn, payload: frame.payload(self.cursor.bytes()) }));
            }
            let end = self.wal.refresh()?;
            if end < self.next {
                let message =
                    format!("lsn {}: the log was cut to {end}, follow it anew", self.next);
                return Err(self.wal.usable()?.outside(message));
            }
            if end > self.next {
                self.cursor = self
                    .wal
                    .cursor(Some(self.next), None, OnCorrupt::Raise)
                    .map_err(|e| self.truncated(e))?;
                continue;
            }
            self.suspect()?;
            let now = Instant::now();
            let left = deadline.map_or(poll, |deadline| deadline.saturating_duration_since(now));
            if left.is_zero() {
                return Ok(None);
            }
            std::thread::sleep(poll.min(left));
            poll = (poll * 2).min(POLL_LONGEST);
        }
    }

    /// What could not be read may have been dropped or cut: then say that.
    fn truncated(&self, error: Error) -> Error {
        let Ok(shared) = self.wal.usable() else { return error };
        let head = match shared.mode {
            Mode::Read => match shared.place.head(&*shared.options.storage) {
                Ok(super::place::Head::At(head)) => head,
                _ => 0,
            },
            _ => shared.state().tip.start,
        };
        if self.next.0 < head {
            let message = format!("lsn {} was dropped, the log begins at {head}", self.next);
            return shared.outside(message);
        }
        shared.check_uncut().err().unwrap_or(error)
    }

    /// Look behind a place that has not become a record for long: an intact record there is proof
    /// of damage.
    fn suspect(&mut self) -> Result<()> {
        let shared = self.wal.usable()?;
        let end = shared.state().tip.end;
        match self.stuck {
            Some((at, since)) if at == end => {
                if since.elapsed() < SUSPICIOUS_AFTER {
                    return Ok(());
                }
            }
            _ => {
                self.stuck = Some((end, Instant::now()));
                return Ok(());
            }
        }
        self.stuck = Some((end, Instant::now()));
        let fail = |e| Error::io("read the log", &shared.place.log, e).of(FORMAT);
        let file_end = shared.file.len().map_err(fail)?;
        let mut scanner = Scanner::new(shared.codec, end, file_end);
        let why = match scanner.next(&*shared.file).map_err(fail)? {
            Found::Stop { why, .. } => why,
            // The writer completed it in the meantime.
            Found::Record { .. } | Found::End => return Ok(()),
        };
        // A long record that is still being written may hold records itself: only one that is known
        // to lie behind it is proof.
        let found = resync(&*shared.file, shared.codec, end, &why, file_end, &shared.borders());
        let proof = found.map_err(fail)?.damage.filter(|damage| damage.next_intact.is_some());
        match proof {
            None => Ok(()),
            Some(damage) => Err(corrupt(&shared.place.log, &damage, ErrorKind::Corrupt)),
        }
    }
}
