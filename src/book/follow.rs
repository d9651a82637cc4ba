//! Reading deeds as they are appended, telling "not yet" from "corrupt".

use std::time::{Duration, Instant};

use super::Book;
use super::cursor::{Cursor, DeedRef, OnCorrupt, corrupt};
use super::format::FORMAT;
use super::survey::resync;
use crate::error::{Error, ErrorKind, Result};
use crate::scan::{Found, Scanner};

const POLL_FIRST: Duration = Duration::from_micros(500);
const POLL_LONGEST: Duration = Duration::from_millis(20);
/// A write in progress is over by then; what still stands in the way is damage or a torn tail.
const SUSPICIOUS_AFTER: Duration = Duration::from_secs(1);

/// Follows a book from a given event on.
#[derive(Debug)]
pub struct Follow {
    book: Book,
    cursor: Cursor,
    next: u64,
    /// Byte at which the log does not go on, and since when.
    stuck: Option<(u64, Instant)>,
}

impl Book {
    /// Follow the log from event `start` on (`None`: its first).
    pub fn follow(&self, start: Option<u64>) -> Result<Follow> {
        let next = start.unwrap_or(0);
        let cursor = self.cursor(next, None, OnCorrupt::Raise)?;
        Ok(Follow { book: self.clone(), cursor, next, stuck: None })
    }
}

impl Follow {
    /// The next deed, waiting for it at most so long. `None`: not yet. A torn or unwritten tail is
    /// "not yet" too, as its writer may complete or cut it; damage is an error.
    pub fn next(&mut self, wait: Duration) -> Result<Option<DeedRef<'_>>> {
        let deadline = Instant::now().checked_add(wait);
        let mut poll = POLL_FIRST;
        loop {
            self.book.usable()?;
            if let Some((event, offset, frame)) = self.cursor.advance()? {
                self.next = event.unwrap_or(self.next).saturating_add(1);
                self.stuck = None;
                let jam = frame.jam(self.cursor.bytes());
                return Ok(Some(DeedRef { event, offset, mug: frame.mug, jam }));
            }
            if self.book.refresh()? >= self.next.max(1) && !self.book.is_empty()? {
                self.cursor = self.book.cursor(self.next, None, OnCorrupt::Raise)?;
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

    /// Look behind a place that has not become a deed for long: an intact deed there is proof of
    /// damage.
    fn suspect(&mut self) -> Result<()> {
        let shared = self.book.usable()?;
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
        let fail = |e| Error::io("read the log", &shared.log_path, e).of(FORMAT);
        let file_end = shared.file.len().map_err(fail)?;
        let mut scanner = Scanner::new(shared.codec, end, file_end);
        let why = match scanner.next(&*shared.file).map_err(fail)? {
            Found::Stop { why, .. } => why,
            // The writer completed it in the meantime.
            Found::Record { .. } | Found::End => return Ok(()),
        };
        // A long deed that is still being written may hold deeds itself: only one that is known to
        // lie behind it is proof.
        let (file, borders) = (&*shared.file, shared.borders());
        let found = resync(file, shared.codec, end, &why, file_end, Some(self.next), &borders);
        let proof = found.map_err(fail)?.damage.filter(|damage| damage.next_intact.is_some());
        match proof {
            None => Ok(()),
            Some(damage) => Err(corrupt(&shared.log_path, &damage, ErrorKind::Corrupt)),
        }
    }
}
