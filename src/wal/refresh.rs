//! What others did to a log that is open for reading: appended, dropped a prefix, cut the end.

use super::format::{FORMAT, HEADER_BYTES, Lsn};
use super::open::{build_index, look_patiently};
use super::place::Head;
use super::tip::Tip;
use super::{Mode, Shared, Wal};
use crate::error::{Error, ErrorKind, Result};
use crate::locks::atomic::Ordering;
use crate::mode::Depth;
use crate::scan::{Found, Scanner};
use crate::sidecar::{BLOCK_BYTES, Entry, Found as MarkFound, Mark, MarkFile};
use crate::storage::read_full;

impl Wal {
    /// Look for records that other processes appended, or dropped from the front; returns the end.
    /// A log whose end was cut is an error: what was read is not there any more. A writer knows its
    /// end.
    pub fn refresh(&self) -> Result<Lsn> {
        let shared = self.usable()?;
        if shared.mode != Mode::Read {
            return self.end();
        }
        shared.follow_head()?;
        shared.check_uncut()?;
        shared.read_on()
    }

    /// Read with a handle that may not know what others did: if reading fails because a prefix was
    /// dropped, it is done once more from the new head, and if the end was cut, that is the error.
    pub(super) fn as_it_is_now<T>(&self, read: impl Fn(&Shared) -> Result<T>) -> Result<T> {
        let shared = self.usable()?;
        match read(shared) {
            Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Corrupt) => {
                match shared.follow_head()? {
                    true => read(shared),
                    false => shared.check_uncut().and(Err(error)),
                }
            }
            done => done,
        }
    }
}

impl Shared {
    /// Go on from the head that the marker says now; whether it moved. Only a reader may be behind.
    pub(super) fn follow_head(&self) -> Result<bool> {
        let Some(segments) = self.segments.as_ref().filter(|_| self.mode == Mode::Read) else {
            return Ok(false);
        };
        let known = self.state().tip;
        let head = match self.place.head(&*self.options.storage)? {
            Head::At(head) if head > known.start => head,
            _ => return Ok(false),
        };
        if head < known.end {
            // What was known and is not dropped must still be there.
            self.check_uncut()?;
        }
        let looked = look_patiently(&self.options, &self.place, Depth::Quick)?;
        let Some(found) = &looked.segments else { return Ok(false) };
        if looked.findings.tip.end < known.end {
            return Err(self.was_cut(known.end));
        }
        let index = build_index(&self.options, &self.place, &looked, false);
        let mut state = self.state();
        segments.adopt(found);
        state.tip = looked.findings.tip;
        state.block_start = index.last_offset().max(state.tip.start);
        state.damage = looked.damage();
        *self.index() = index;
        Ok(true)
    }

    /// Fail if a writer cut the end off that this reader knows.
    pub(super) fn check_uncut(&self) -> Result<()> {
        let tip = self.state().tip;
        if self.mode != Mode::Read || tip.records == 0 {
            return Ok(());
        }
        let fail = |e| Error::io("read the log", &self.place.log, e).of(FORMAT);
        let there = self.file.len().map_err(fail)?;
        let mut header = [0; HEADER_BYTES as usize];
        let read = match there < tip.end {
            true => 0,
            false => read_full(&*self.file, &mut header, tip.last_offset).map_err(fail)?,
        };
        let [a, b, c, d, ..] = header;
        if read == header.len() && u32::from_le_bytes([a, b, c, d]) == tip.last_sum {
            return Ok(());
        }
        Err(self.was_cut(tip.end))
    }

    fn was_cut(&self, known: u64) -> Error {
        let message =
            format!("the log was read up to {known} and its end was cut since: open it anew");
        self.outside(message)
    }

    /// What an error of reading at `at` is due to: the log may have been changed under the walk,
    /// which began when its end had been cut `cuts` times.
    pub(super) fn why(&self, at: u64, cuts: u64, error: Error) -> Error {
        if !matches!(error.kind(), ErrorKind::Io | ErrorKind::Corrupt) {
            return error;
        }
        match self.place.head(&*self.options.storage) {
            Ok(Head::At(head)) if at < head => {
                return self
                    .outside(format!("lsn {at} was dropped since, the log begins at {head}"));
            }
            _ => {}
        }
        if self.cuts.load(Ordering::Acquire) != cuts {
            return self.was_cut(at);
        }
        self.check_uncut().err().filter(|e| e.kind() == ErrorKind::OutOfRange).unwrap_or(error)
    }

    /// Whether a mark is of this log: the record that it names last is there.
    fn vouches(&self, mark: &Mark, tip: Tip) -> std::io::Result<bool> {
        if mark.records == 0 || mark.start < tip.start || mark.end > tip.end {
            return Ok(false);
        }
        let mut scanner = Scanner::new(self.codec, mark.last_offset, mark.end);
        Ok(match scanner.next(&*self.file)? {
            Found::Record { frame, .. } => {
                frame.crc == mark.last_sum && scanner.position() == mark.end
            }
            _ => false,
        })
    }

    /// Take up what was appended behind the last record known.
    fn read_on(&self) -> Result<Lsn> {
        let fail = |e| Error::io("read the log", &self.place.log, e).of(FORMAT);
        let mut state = self.state();
        let there = self.file.len().map_err(fail)?;
        let mut scanner = Scanner::new(self.codec, state.tip.end, there);
        let mut grown = false;
        while let Found::Record { offset, frame } = scanner.next(&*self.file).map_err(fail)? {
            state.tip.push(offset, frame.framed_len(), frame.crc);
            grown = true;
            if state.tip.end - state.block_start >= BLOCK_BYTES {
                let (ordinal, offset) = (state.tip.first + state.tip.records, state.tip.end);
                self.index().push(Entry { ordinal, offset, sum: 0 });
                state.block_start = offset;
            }
        }
        if grown {
            state.damage = None;
        }
        let tip: Tip = state.tip;
        drop(state);
        let storage = &*self.options.storage;
        if let Ok(MarkFound::Mark(mark)) = MarkFile::load(storage, &self.place.sidecar)
            && self.vouches(&mark, tip).map_err(fail)?
        {
            self.durable_seen.store(mark.end, Ordering::Release);
        }
        Ok(Lsn(tip.end))
    }
}
