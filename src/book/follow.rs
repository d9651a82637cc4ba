//! Reading deeds as they are appended, telling "not yet" from "corrupt".

use std::time::{Duration, Instant};

use super::Book;
use super::cursor::{Cursor, DeedRef, OnCorrupt};
use super::format::FORMAT;
use crate::error::{Error, ErrorKind, Result};
use crate::scan::{end_of_data, find_intact};

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
        let data_end = end_of_data(&*shared.file, end, file_end).map_err(fail)?;
        if data_end <= end {
            return Ok(());
        }
        let next = find_intact(&*shared.file, &shared.codec, end, data_end).map_err(fail)?;
        match next {
            // At `end` itself: the writer completed it in the meantime.
            None => Ok(()),
            Some(next) if next == end => Ok(()),
            Some(next) => {
                let message = format!("deed {}: damaged, with intact deeds behind it", self.next);
                let error = Error::new(ErrorKind::Corrupt, message).of(FORMAT).at(&shared.log_path);
                Err(error.offset_at(end).with_next_intact(Some(next)))
            }
        }
    }
}
