//! Reading records as they are appended, on into the files that begin meanwhile.
//!
//! Several stores may append at once, each to a file of its own. So the follower polls all unfinished files. It closes
//! a finished file after the last record. An open file stays readable after a sender removed the name. The counter of
//! indexes shows files that came and went between two looks.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::time::{Duration, Instant};

use super::contents::Contents;
use super::files::FileInfo;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::codec::FORMAT;
use crate::ledger::directory::{Directory, is_no_file};
use crate::ledger::format::LedgerFormat;
use crate::ledger::record::{Position, Record};
use crate::log::{Follow as FollowFile, Format as _};
use crate::storage::{Access, FileId};
use crate::transaction::Intent;

const POLL_FIRST: Duration = Duration::from_micros(500);
const POLL_LONGEST: Duration = Duration::from_millis(20);
/// Between two looks at the names of the files.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A look takes at most this part of the time.
const LOOK_SHARE: u32 = 20;

/// Follows a ledger from a given record on.
pub struct Follow {
    contents: Contents,
    directory: Directory,
    /// The first record to give. `None`: the first record of the first look.
    start: Option<Position>,
    /// The only file to follow, if the path names a file.
    only: Option<u32>,
    /// The known files, without read files whose names are gone.
    files: BTreeMap<u32, OfFile>,
    /// The file that gave the last record.
    at: u32,
    /// All files with lower indexes were read, or went before the follower began.
    read_up_to: u64,
    look_at: Option<Instant>,
    /// The number of looks.
    looks: u64,
}

enum OfFile {
    /// Not opened yet: a process may open only so many files.
    Waiting,
    Open(Box<Followed>),
    Read,
    /// The file went without a record. Its index may come again.
    Empty,
}

struct Followed {
    follow: FollowFile<LedgerFormat>,
    id: FileId,
    /// Whether no record was met.
    is_empty: bool,
    /// The look at names after which the file's end was looked for.
    looked_at: u64,
}

impl Contents {
    /// Follow the ledger from a record on (`None`: the first record there is).
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) if a file from there on was removed; see
    /// [Errors](crate#errors).
    pub fn follow(&self, start: Option<Position>) -> Result<Follow> {
        let directory = self.directory(&self.options).map_err(|e| e.of(FORMAT))?;
        let mut follow = Follow {
            contents: self.clone(),
            directory,
            start,
            only: self.single(),
            files: BTreeMap::new(),
            at: 0,
            read_up_to: start.map_or(u64::MAX, |start| start.file.into()),
            look_at: None,
            looks: 0,
        };
        follow.look().map_err(|e| e.of(FORMAT))?;
        Ok(follow)
    }
}

impl Follow {
    /// The next record and the number of its file, after waiting for at most `wait`. `None`: not yet. Each file's
    /// records come in order; the files of several writers come mixed. A torn end is "not yet" until its file is
    /// finished.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) for damage, and with
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange) where a file was removed before it was read.
    pub fn next(&mut self, wait: Duration) -> Result<Option<(u32, Record)>> {
        let deadline = Instant::now().checked_add(wait);
        let mut poll = POLL_FIRST;
        loop {
            if self.look_at.is_none_or(|at| Instant::now() >= at) {
                self.look().map_err(|e| e.of(FORMAT))?;
            }
            if let Some(found) = self.step_all().map_err(|e| e.of(FORMAT))? {
                return Ok(Some(found));
            }
            let now = Instant::now();
            let left = deadline.map_or(poll, |deadline| deadline.saturating_duration_since(now));
            if left.is_zero() {
                return Ok(None);
            }
            std::thread::sleep(poll.min(left));
            poll = (poll * 2).min(POLL_LONGEST);
        }
    }

    /// The next record of the current file, or else of the first file with a new record.
    fn step_all(&mut self) -> Result<Option<(u32, Record)>> {
        if let Some(record) = self.step(self.at)? {
            return Ok(Some((self.at, record)));
        }
        let mut from = Some(0);
        while let Some(index) = from.and_then(|from| self.unread_from(from)) {
            if let Some(record) = self.step(index)? {
                self.at = index;
                return Ok(Some((index, record)));
            }
            from = index.checked_add(1);
        }
        Ok(None)
    }

    fn unread_from(&self, from: u32) -> Option<u32> {
        let is_unread = |file: &OfFile| matches!(file, OfFile::Waiting | OfFile::Open(_));
        self.files.range(from..).find(|(_, file)| is_unread(file)).map(|(&index, _)| index)
    }

    /// The next record of a file.
    fn step(&mut self, index: u32) -> Result<Option<Record>> {
        if let Some(OfFile::Waiting) = self.files.get(&index) {
            self.open(index)?;
        }
        if let Some(record) = self.step_open(index)? {
            return Ok(Some(record));
        }
        let (looks, newest) = (self.looks, self.files.keys().next_back().copied());
        let Some(OfFile::Open(file)) = self.files.get_mut(&index) else { return Ok(None) };
        if std::mem::replace(&mut file.looked_at, looks) == looks {
            return Ok(None);
        }
        let (id, is_empty) = (file.id, file.is_empty);
        let now = if is_empty { self.id_at(index)? } else { Some(id) };
        if now.is_some_and(|now| now != id) {
            // A store removes its file if it could not write a record, and gives the index to another file.
            self.files.insert(index, OfFile::Waiting);
        } else if newest != Some(index) && self.is_finished(index)? {
            // The file may have got more records before its end.
            if let Some(record) = self.step_open(index)? {
                return Ok(Some(record));
            }
            let end = if now.is_none() { OfFile::Empty } else { OfFile::Read };
            self.files.insert(index, end);
        }
        Ok(None)
    }

    fn step_open(&mut self, index: u32) -> Result<Option<Record>> {
        let Some(OfFile::Open(file)) = self.files.get_mut(&index) else { return Ok(None) };
        let record = file.follow.next(Duration::ZERO)?.map(LedgerFormat::own);
        file.is_empty &= record.is_none();
        Ok(record)
    }

    fn open(&mut self, index: u32) -> Result<()> {
        let path = self.directory.path_of(index);
        let info = FileInfo { index, path, bytes: 0, active: false };
        let id = self.id_at(index)?;
        let (Some(id), Some(log)) = (id, self.contents.open(&info)?) else {
            return Err(self.gone(index));
        };
        let first = self.start.filter(|start| start.file == index).map_or(0, |start| start.record);
        let follow = log.0.follow_ordinal(first)?;
        let file = Followed { follow, id, is_empty: first == 0, looked_at: u64::MAX };
        self.files.insert(index, OfFile::Open(Box::new(file)));
        Ok(())
    }

    /// The identity of the file with an index; `None` if there is none.
    fn id_at(&self, index: u32) -> Result<Option<FileId>> {
        let path = self.directory.path_of(index);
        match self.directory.storage.open(&path, Access::Read).and_then(|file| file.id()) {
            Ok(id) => Ok(Some(id)),
            Err(e) if is_no_file(&e) => Ok(None),
            Err(e) => Err(Error::io("open the file", &path, e)),
        }
    }

    /// Whether no store writes a file any more.
    fn is_finished(&self, index: u32) -> Result<bool> {
        let gate = self.directory.gate()?;
        let is_there = self.directory.indexes()?.contains(&index);
        Ok(!is_there || self.directory.finished(&gate, index)?.is_some())
    }

    /// Look for new files, and for files that came and went since the last look.
    fn look(&mut self) -> Result<()> {
        let begun = Instant::now();
        let mut listed = self.directory.indexes()?;
        let mut counted = self.directory.counted()?;
        if self.looks == 0 && self.start.is_none() {
            let after_last = listed.last().map_or(0, |&last| u64::from(last) + 1);
            self.read_up_to = counted.max(after_last);
        }
        self.take(&listed);
        if self.missing(counted).is_some() {
            // A commit claims indexes, stores its intent, and then renames its files. The claim and the intent come
            // under one hold of the directory.
            let _gate = self.directory.gate()?;
            let is_committing = Intent::load(&self.directory.desk())?.is_some();
            (listed, counted) = (self.directory.indexes()?, self.directory.counted()?);
            self.take(&listed);
            if let Some(index) = self.missing(counted).filter(|_| !is_committing) {
                return Err(self.gone(index));
            }
        }
        while let Some(OfFile::Read | OfFile::Empty) = self.known(self.read_up_to, counted) {
            self.read_up_to += 1;
        }
        let (read_up_to, is_listed) =
            (self.read_up_to, |index: &u32| listed.binary_search(index).is_ok());
        self.files.retain(|index, file| {
            !matches!(file, OfFile::Read | OfFile::Empty)
                || u64::from(*index) >= read_up_to
                || is_listed(index)
        });
        self.looks += 1;
        let now = Instant::now();
        self.look_at = now.checked_add(LOOK_EVERY.max((now - begun) * LOOK_SHARE));
        Ok(())
    }

    /// A file with a claimed index, which comes once.
    fn known(&self, index: u64, counted: u64) -> Option<&OfFile> {
        let claimed = u32::try_from(index).ok().filter(|_| index < counted);
        claimed.and_then(|index| self.files.get(&index))
    }

    fn take(&mut self, listed: &[u32]) {
        let first = self.start.map_or(0, |start| start.file);
        let is_wanted =
            |index: &u32| *index >= first && self.only.is_none_or(|only| only == *index);
        for index in listed.iter().copied().filter(is_wanted) {
            match self.files.get(&index) {
                None | Some(OfFile::Empty) => drop(self.files.insert(index, OfFile::Waiting)),
                Some(_) => {}
            }
        }
    }

    /// The lowest claimed index whose file was not seen.
    fn missing(&self, counted: u64) -> Option<u32> {
        let mut unseen = (self.read_up_to..counted).filter_map(|index| u32::try_from(index).ok());
        let unseen = unseen.find(|index| !self.files.contains_key(index));
        unseen.filter(|_| self.only.is_none())
    }

    fn gone(&self, index: u32) -> Error {
        let message = format!(
            "file {index} was removed before it was read, or never made by a commit that crashed"
        );
        Error::new(ErrorKind::OutOfRange, message).of(FORMAT).at(&self.directory.path)
    }
}

impl Debug for Follow {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let path = &self.contents.path;
        f.debug_struct("Follow").field("path", path).field("at", &self.at).finish_non_exhaustive()
    }
}
