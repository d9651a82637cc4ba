//! Changes of other processes to a log open for reading: appends, a dropped prefix, a cut end.

use std::io;

use crate::error::{Error, ErrorKind, Result};
use crate::ground::locks::atomic::Ordering;
use crate::ground::locks::lock;
use crate::log::extent::Extent;
use crate::log::format::Format;
use crate::log::look::find_end::end_of;
use crate::log::look::index::build_index;
use crate::log::look::inspect::{CHANGING, inspect_patiently, patiently};
use crate::log::notice;
use crate::log::{Log, Shared};
use crate::mode::{Depth, Mode};
use crate::scan::framing::{Frame, FramingExt};
use crate::scan::{Scanned, Scanner};
use crate::sidecar::{Entry, INDEX_BLOCK_BYTES, LoadedMark, Mark, MarkFile};
use crate::storage::read_full;

impl<F: Format> Log<F> {
    /// Look for changes of other processes; a writer knows the log already. A cut of the end is an
    /// error, because records that the reader has seen are missing.
    pub fn refresh_extent(&self) -> Result<Extent> {
        let shared = self.usable()?;
        if shared.mode == Mode::Read {
            shared.follow_head()?;
            // A writer that cuts the end removes segments that the reader has just counted. Then
            // the writer raises the mark again, which differs from the mark before the cut.
            patiently::<F, _>(&CHANGING, || shared.check_uncut().and_then(|()| shared.read_on()))
                .inspect_err(notice::raised)?;
        }
        self.extent()
    }

    /// Read with a handle that may not know other processes' changes. If reading fails because a
    /// prefix was dropped, read once more from the new head. If the end was cut, return the cut as
    /// the error.
    pub(super) fn as_it_is_now<T>(&self, read: impl Fn(&Shared<F>) -> Result<T>) -> Result<T> {
        let shared = self.usable()?;
        // Read a log that is shorter now as far as the log goes.
        match shared.check_not_rewritten(false).and_then(|()| read(shared)) {
            Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Corrupt) => {
                let again = match shared.follow_head()? {
                    true => read(shared),
                    // The end did not move, but a writer may have truncated the log and appended as much.
                    false if error.kind() == ErrorKind::Io => {
                        patiently::<F, _>(&[ErrorKind::Io], || {
                            shared.check_uncut().and_then(|()| read(shared))
                        })
                    }
                    false => shared.check_uncut().and(Err(error)),
                };
                again.inspect_err(notice::raised)
            }
            done => done,
        }
    }
}

impl<F: Format> Shared<F> {
    /// Take over the head that the files have now; returns whether the head moved. Only a reader
    /// may lag.
    pub fn follow_head(&self) -> Result<bool> {
        if self.mode != Mode::Read {
            return Ok(false);
        }
        let known = self.extent();
        let head = match self.files.head()? {
            Some(head) if head > known.start => head,
            _ => return Ok(false),
        };
        if head < known.end {
            // The known records after the new head must still exist.
            self.check_uncut()?;
        }
        let found = inspect_patiently::<F>(&self.options, &self.place, Depth::Quick)?;
        if found.findings.extent.end < known.end {
            return Err(self.was_cut(known.end));
        }
        let index = build_index(&self.common, &self.place, &found, false);
        let mut state = self.state();
        if let (Some(segments), Some(found)) = (self.files.segments(), found.space.files.segments())
        {
            segments.adopt(found);
        }
        state.extent = found.findings.extent;
        state.numbered = found.findings.numbered;
        state.block_start = index.last_offset().max(state.extent.start);
        state.damage = found.findings.corruption();
        state.after = found.findings.after;
        let beyond = found.space.beyond;
        state.beyond = beyond.map(|beyond| beyond.closable(&mut lock(&self.open_files)));
        *self.index() = index;
        Ok(true)
    }

    /// Fail if a writer cut records that this reader knows.
    pub fn check_uncut(&self) -> Result<()> {
        self.check_not_rewritten(true)
    }

    /// Fail if another record lies where the last one known was; with `shorter`, also if none does.
    fn check_not_rewritten(&self, shorter: bool) -> Result<()> {
        let extent = self.extent();
        if self.mode != Mode::Read || extent.records == 0 {
            return Ok(());
        }
        let fail = |e| self.fail("read the log", e);
        if let Some(segments) = self.files.segments() {
            segments.reopen();
        }
        let there = self.file.len().map_err(fail)?;
        if there < extent.end && !shorter {
            return Ok(());
        }
        match there >= extent.end && self.still_ends_with(&extent).map_err(fail)? {
            true => Ok(()),
            false => Err(self.was_cut(extent.end)),
        }
    }

    /// Whether the last record of an extent is there: compares its checksum, if stored.
    fn still_ends_with(&self, extent: &Extent) -> io::Result<bool> {
        let len = extent.end - extent.last_offset;
        let Some(at) = self.framing.sum_at(len) else {
            let mut scanner = Scanner::of_frames(self.framing, extent.last_offset, extent.end);
            let last = scanner.next(&*self.file)?;
            return Ok(
                matches!(last, Scanned::Record { frame, .. } if frame.sum() == extent.last_sum),
            );
        };
        let mut sum = [0; 4];
        let read = read_full(&*self.file, &mut sum, extent.last_offset + at)?;
        Ok(read == sum.len() && u32::from_le_bytes(sum) == extent.last_sum)
    }

    pub(super) fn was_cut(&self, known: u64) -> Error {
        let message =
            format!("the log was read up to byte {known} and its end was cut since: open it again");
        self.error(ErrorKind::OutOfRange, message)
    }

    /// The cause of an error of reading at `at`: a writer may have changed the log under the walk.
    /// At the begin of the walk, the end had been cut `cuts` times.
    pub(super) fn explain(&self, at: u64, cuts: u64, error: Error) -> Error {
        if !matches!(error.kind(), ErrorKind::Io | ErrorKind::Corrupt) {
            return error;
        }
        if let Ok(Some(head)) = self.files.head()
            && at < head
        {
            let name = F::name_of(None, at);
            let message = format!("{name} was dropped since, the log begins at {head}");
            return self.error(ErrorKind::OutOfRange, message);
        }
        if self.cuts.load(Ordering::Acquire) != cuts {
            return self.was_cut(at);
        }
        self.check_uncut().err().filter(|e| e.kind() == ErrorKind::OutOfRange).unwrap_or(error)
    }

    fn is_outdated(&self, mark: &Mark, end: u64) -> bool {
        MarkFile::is_outdated(&*self.common.storage, &self.place.sidecar, mark, end)
    }

    fn load_mark(&self) -> Option<Mark> {
        match MarkFile::load(&*self.common.storage, &self.place.sidecar) {
            Ok(LoadedMark::Mark(mark)) => Some(mark),
            _ => None,
        }
    }

    /// Whether the record that a mark names last is there.
    fn vouches(&self, mark: &Mark, extent: &Extent) -> io::Result<bool> {
        if mark.records == 0 || mark.last_offset < extent.start || mark.end > extent.end {
            return Ok(false);
        }
        let mut scanner = Scanner::of_frames(self.framing, mark.last_offset, mark.end);
        Ok(match scanner.next(&*self.file)? {
            Scanned::Record { frame, .. } => {
                frame.sum() == mark.last_sum && scanner.position() == mark.end
            }
            _ => false,
        })
    }

    /// Take up the appends after the last known record. The file is read without the lock.
    fn read_on(&self) -> Result<()> {
        let fail = |e| self.fail("read the log", e);
        // Load the mark before the file: the file must then have the mark's records.
        let mark = self.load_mark();
        let known = self.extent();
        let mut extent = known;
        if extent.records == 0 {
            match self.seal.first_now(&*self.file, extent.first)? {
                Some(first) => extent.first = first,
                None => return Ok(()),
            }
        }
        let there = self.file.len().map_err(fail)?;
        let there = self.seal.end_now(&*self.file, &extent, there).map_err(fail)?;
        let mut scanner = Scanner::of_frames(self.framing, extent.end, there);
        let mut blocks = Vec::new();
        // The index may have entries after the end of a log that ended below its mark.
        let mut block_start = self.state().block_start.min(extent.end);
        while let Scanned::Record { offset, frame } = scanner.next(&*self.file).map_err(fail)? {
            extent.push(offset, frame);
            if extent.end - block_start >= INDEX_BLOCK_BYTES {
                let (ordinal, offset) = (extent.next(), extent.end);
                blocks.push(Entry { ordinal, offset, sum: 0 });
                block_start = offset;
            }
        }
        let vouched = match mark {
            Some(mark) if self.vouches(&mark, &extent).map_err(fail)? => Some(mark),
            _ => None,
        };
        let is_outdated = vouched.is_some_and(|mark| self.is_outdated(&mark, extent.end));
        let mut state = self.state();
        if state.extent == known {
            if extent.end > known.end {
                // Records lie there now. Damage before the first record stays.
                state.damage.take_if(|damage| damage.offset >= known.start);
                state.after = None;
                state.beyond = None;
            }
            state.extent = extent;
            state.block_start = block_start;
            let mut index = self.index();
            if extent.end > known.end {
                // The entries were another log's, or are this log's again.
                index.cut(known.end);
            }
            for entry in blocks {
                index.push(entry);
            }
        }
        if let Some(mark) = vouched {
            state.durable = Some(end_of(&mark, state.numbered));
            state.is_outdated = is_outdated;
            state.durable_records = mark.records;
            state.unacknowledged_from = Some(mark.end).filter(|_| mark.is_open());
        }
        let damaged = state.damage.is_some();
        drop(state);
        let lost = |mark: &Mark| {
            let same = (mark.start, mark.first_sum) == (extent.start, extent.first_sum);
            same && extent.records > 0 && mark.records > 0 && mark.end > extent.end
        };
        // A writer that cuts the end lowers the mark first.
        if !damaged
            && mark.as_ref().is_some_and(lost)
            && self.load_mark().as_ref().is_some_and(lost)
        {
            let name = F::name_of(Some(extent.next()), extent.end);
            let end = mark.map_or(0, |mark| mark.end);
            let message = format!("{name}: damaged or missing, acknowledged up to byte {end}");
            return Err(self.error(ErrorKind::LostRecords, message).offset_at(extent.end));
        }
        Ok(())
    }
}
