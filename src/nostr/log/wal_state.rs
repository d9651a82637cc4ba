//! The state of an open log of the event store: its files, and the newest file, which takes
//! appends.

use std::path::Path;

use super::entry::{FORMAT, Lsn, file_name};
use super::files::FileFormat;
use super::replay::{Piece, not_following};
use super::wal_options::WalOptions;
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::log::{Log, Stats, corrupt};
use crate::mode::Mode;
use crate::scan::Verdict;

#[derive(Debug)]
pub(crate) struct State {
    /// The files, the oldest first; all but the last are finished.
    pub(crate) files: Vec<Piece>,
    /// The newest file.
    pub(crate) current: Log<FileFormat>,
    /// Whether the newest file is finished and the next does not exist yet.
    pub(super) finished: bool,
    /// Counters of this handle for the finished files.
    pub(crate) done: Stats,
    /// Whether the handle is closed.
    pub(crate) closed: bool,
    /// The error of a failed attempt to finish a file.
    pub(crate) failed: Option<String>,
    /// Number of the next entry.
    pub(crate) next: Lsn,
    /// Number of the last checkpoint, 0 without one.
    pub(crate) checkpoint: Lsn,
}

impl State {
    /// Open the files with these numbers. The numbers must follow each other if the caller asks for
    /// the check.
    pub(crate) fn open(
        dir: &Path,
        mode: Mode,
        options: &WalOptions,
        found: &[u64],
        is_checked: bool,
    ) -> Result<Self> {
        let (mut files, mut next, mut checkpoint) = (Vec::<Piece>::new(), Lsn(1), Lsn(0));
        let mut open = |number, as_mode| {
            let path = dir.join(file_name(number));
            let log = Log::<FileFormat>::open_with(&path, as_mode, options.file(next, checkpoint))?;
            let extent = log.extent()?;
            let piece = Piece { number, first: Lsn(extent.first), bytes: extent.end };
            if is_checked {
                check_follows(dir, files.last(), piece, next)?;
                if Some(&number) != found.last() {
                    check_finished(&path, &log)?;
                }
            }
            checkpoint = checkpoint.max(log.shared.format.checkpoint);
            next = Lsn(extent.next());
            files.push(piece);
            Ok::<_, Error>(log)
        };
        let (newest, finished) = found.split_last().unwrap_or((&0, &[]));
        for number in finished {
            open(*number, Mode::Read)?;
        }
        let current = open(*newest, mode)?;
        let (closed, finished, failed, done) = (false, false, None, Stats::default());
        Ok(Self { files, current, finished, done, closed, failed, next, checkpoint })
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.closed {
            let error = Error::new(ErrorKind::Closed, "the log is closed").of(FORMAT);
            return Err(error.with_durable(Durable::No));
        }
        let Some(why) = &self.failed else { return Ok(()) };
        let message = format!("an earlier write or sync failed: {why}");
        Err(Error::new(ErrorKind::Poisoned, message).of(FORMAT).with_durable(Durable::No))
    }

    /// Make all of the newest file durable, and release the space reserved after its end, before
    /// the next file exists.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.current.sync()?;
        if let Err(e) = self.current.close() {
            self.failed = Some(e.to_string());
            return Err(e);
        }
        if let Some(piece) = self.files.last_mut() {
            piece.bytes = self.current.shared.extent().end;
        }
        self.done.add(&self.current.shared.counters.read());
        self.finished = true;
        Ok(())
    }
}

/// Refuse a file whose first number does not follow the end of the file before.
fn check_follows(dir: &Path, before: Option<&Piece>, piece: Piece, next: Lsn) -> Result<()> {
    let Some(before) = before else { return Ok(()) };
    let path = dir.join(file_name(piece.number));
    if piece.number != before.number + 1 {
        let missing = file_name(before.number + 1);
        let message = format!("{missing} is missing, {} is there", file_name(piece.number));
        return Err(Error::new(ErrorKind::Corrupt, message).of(FORMAT).at(&path));
    }
    match piece.first == next {
        true => Ok(()),
        false => {
            let damage = not_following(next, piece.first);
            Err(corrupt::<FileFormat>(&path, &damage, ErrorKind::Corrupt))
        }
    }
}

/// Refuse damage at the end of a finished file: the log synced the file before creating the next.
fn check_finished(path: &Path, log: &Log<FileFormat>) -> Result<()> {
    let report = log.recovery();
    if matches!(report.verdict, Verdict::Clean | Verdict::Open) {
        return Ok(());
    }
    let message = format!(
        "{} at byte {}, but another file follows, so this one was whole and synced",
        report.verdict.name(),
        report.valid_end
    );
    Err(Error::new(ErrorKind::Corrupt, message).of(FORMAT).at(path).offset_at(report.valid_end))
}
