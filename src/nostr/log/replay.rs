//! Walk the entries of the write-ahead log from file to file.

use std::path::{Path, PathBuf};

use super::entry::{Entry, FORMAT, HEADER_BYTES, Lsn, file_name};
use super::files::{FileFormat, FileOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::log::{Cursor, Format, Log, corrupt};
use crate::scan::{Damage, OnCorrupt};

/// An entry of the log, borrowed from its walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged<'a> {
    /// Its number.
    pub lsn: Lsn,
    /// When it was made, in seconds from 1970.
    pub timestamp: u64,
    /// The entry's content.
    pub entry: Entry<'a>,
}

/// A file, and the number of its first entry.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Number of the file.
    pub number: u64,
    /// Number of the file's first entry, or of the entry to come.
    pub first: Lsn,
    /// The file's size, once the file is finished.
    pub bytes: u64,
}

/// A walk over entries, across files. The walk is a snapshot and skips later appends.
#[derive(Debug)]
pub struct Replay {
    dir: PathBuf,
    options: FileOptions,
    /// The finished files still to walk; the next file is last.
    left: Vec<Piece>,
    /// The newest file, once the walk gets there.
    newest: Option<(u64, Cursor<FileFormat>)>,
    cursor: Option<(u64, Cursor<FileFormat>)>,
    from: Lsn,
    on_corrupt: OnCorrupt,
    /// Number of the entry after the last returned entry.
    expected: Option<Lsn>,
    damages: Vec<(PathBuf, Damage)>,
}

impl Replay {
    /// Walk the finished files, the oldest first, and then the newest if its numbers follow.
    pub(crate) fn new(
        dir: &Path,
        options: FileOptions,
        finished: &[Piece],
        newest: Option<(u64, Cursor<FileFormat>)>,
        from: Lsn,
        on_corrupt: OnCorrupt,
    ) -> Self {
        let left = finished.iter().rev().copied().collect();
        let (dir, damages) = (dir.to_path_buf(), Vec::new());
        let (cursor, expected) = (None, None);
        Self { dir, options, left, newest, cursor, from, on_corrupt, expected, damages }
    }

    /// The next entry.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Logged<'_>>> {
        let (offset, frame) = loop {
            let begins = self.cursor.is_none();
            if begins && !self.open_next()? {
                return Ok(None);
            }
            let Some((number, cursor)) = &mut self.cursor else { return Ok(None) };
            match cursor.advance()? {
                Some((_, offset, frame)) => {
                    let number = *number;
                    if begins {
                        self.check_follows(number, frame.tag.lsn)?;
                    }
                    break (offset, frame);
                }
                None => self.close_file(),
            }
        };
        self.expected = frame.tag.lsn.0.checked_add(1).map(Lsn);
        let Some((number, cursor)) = &self.cursor else { return Ok(None) };
        let raw = FileFormat::show(None, offset, frame, cursor.bytes());
        let (lsn, timestamp) = (raw.tag.lsn, raw.tag.timestamp);
        match Entry::parse(raw.tag.op, raw.data) {
            Ok(entry) => Ok(Some(Logged { lsn, timestamp, entry })),
            Err(bad) => {
                let path = self.dir.join(file_name(*number));
                let error = Error::new(ErrorKind::Corrupt, bad.reason()).of(FORMAT).at(&path);
                Err(error.offset_at(offset))
            }
        }
    }

    /// The damaged stretches that the walk skipped so far, each with its file.
    pub fn damages(&self) -> impl Iterator<Item = (PathBuf, &Damage)> {
        let here = self.cursor.iter().flat_map(|(number, cursor)| {
            let path = self.dir.join(file_name(*number));
            cursor.damages().iter().map(move |damage| (path.clone(), damage))
        });
        self.damages.iter().map(|(path, damage)| (path.clone(), damage)).chain(here)
    }

    fn open_next(&mut self) -> Result<bool> {
        self.cursor = match self.left.pop() {
            Some(Piece { number, first, .. }) => {
                let options = FileOptions { first, ..self.options.clone() };
                let path = self.dir.join(file_name(number));
                let log = Log::<FileFormat>::open_with(&path, crate::mode::Mode::Read, options)?;
                Some((number, log.cursor_by_ordinal(self.from.0, None, self.on_corrupt)?))
            }
            None => self.newest.take(),
        };
        Ok(self.cursor.is_some())
    }

    fn close_file(&mut self) {
        let seen: Vec<_> = self.damages().map(|(path, damage)| (path, damage.clone())).collect();
        self.damages = seen;
        self.cursor = None;
    }

    /// Check that a file begins with the number after the last entry of the file before.
    fn check_follows(&mut self, number: u64, lsn: Lsn) -> Result<()> {
        let Some(expected) = self.expected.filter(|expected| *expected != lsn) else {
            return Ok(());
        };
        let path = self.dir.join(file_name(number));
        let damage = not_following(expected, lsn);
        if self.on_corrupt == OnCorrupt::Raise {
            return Err(corrupt::<FileFormat>(&path, &damage, ErrorKind::Corrupt));
        }
        self.damages.push((path, damage));
        Ok(())
    }
}

/// The damage at the start of a file whose first number does not follow the file before.
pub fn not_following(expected: Lsn, found: Lsn) -> Damage {
    let at = HEADER_BYTES as u64;
    Damage {
        offset: at,
        end: at,
        reason: format!(
            "the file begins with lsn {found}, the one before ends before lsn {expected}"
        ),
        next_intact: Some(at),
        next_proved: true,
        first_lost: Some(expected.0),
        records_lost: found.0.checked_sub(expected.0),
        ..Damage::default()
    }
}
