//! Migrating the files of a DirectoryStore: a ledger gets their events, unchanged.

mod json;
mod old;

use std::path::{Path, PathBuf};

use super::Batch;
use super::codec::FORMAT;
use super::directory::Directory;
use super::options::{LedgerConfig, Options};
use super::store::LedgerStore;
use crate::durability::Durability;
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::saving::save_tail;
use crate::storage::{Access, File, FileId, LockAttempt, Storage, located};
use json::{Fault, Scanner};
use old::{Events, Next, OldFile, old_files, unreadable};

const BATCH_BYTES: u64 = 256 << 10;

/// The source of a migration, and the treatment of its files.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Migration {
    /// Directory of the DirectoryStore.
    pub source: PathBuf,
    /// The ending of the source files' names.
    pub base_filename: String,
    /// Leave the files in place. A second migration takes them again.
    pub keep: bool,
}

impl Migration {
    /// A migration that removes each file once the events are on stable storage.
    pub fn new(source: impl Into<PathBuf>, base_filename: impl Into<String>) -> Self {
        Self { source: source.into(), base_filename: base_filename.into(), keep: false }
    }
}

/// The migration of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileMigration {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Whether the file was being written, and never finished.
    pub active: bool,
    /// Events that went to the ledger, or would go.
    pub events: u64,
    /// The bytes from here on are no event; `None` if the file is intact.
    pub rest_from: Option<u64>,
    /// The text at the rest's begin, and the expected text.
    pub rest_reason: Option<String>,
    /// The copy of the rest, made before the file's removal. A rest of zeros is not copied.
    pub set_aside: Option<PathBuf>,
    /// Whether the file was removed.
    pub removed: bool,
}

impl Migration {
    /// Append all events of a DirectoryStore's files to a ledger, and remove the files, the oldest first. `progress`
    /// gets the bytes done and the total; its error ends the migration.
    ///
    /// The program that wrote the files must have ended. A file is removed once the events are on stable storage. From
    /// a torn or damaged file, the call migrates the events before the damage, and copies the rest to
    /// `.deedbook/quarantine/` of the ledger. A file that does not begin as a DirectoryStore's stays in place.
    ///
    /// After an interruption, repeat the migration. Events of the file in progress may then be in the ledger twice.
    /// Each migration migrates kept files again: only the reports show which files are in the ledger.
    ///
    /// # Errors
    ///
    /// Fails where there is no such directory, and while another migration runs; see [Errors](crate#errors). An error
    /// of `progress` ends the work and is returned.
    pub fn run(
        &self,
        config: LedgerConfig,
        options: &Options,
        mut progress: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<Vec<FileMigration>> {
        let storage = &*options.storage;
        let source = source_of(storage, self, Some(&config.storage_location))?;
        let _lock = lock(storage, &source)?;
        let options = Options { durability: Durability::Rotate, ..options.clone() };
        let ledger = options.open(config)?;
        let directory = &ledger.usable()?.directory;
        let run = Moving { storage, source: &source, keep: self.keep, ledger: &ledger, directory };
        let files = sized(storage, old_files(storage, &source, &self.base_filename)?)?;
        let all = files.iter().map(|(_, bytes)| bytes).sum();
        let (mut reports, mut done) = (Vec::new(), 0);
        for (old, bytes) in files {
            reports.push(run.migrate(&old, |at: u64| progress((done + at).min(all), all))?);
            done += bytes;
        }
        ledger.close()?;
        Ok(reports)
    }

    /// The reports that [`run`](Self::run) would return. Changes nothing.
    ///
    /// # Errors
    ///
    /// Fails where there is no such directory, and while another migration runs; see [Errors](crate#errors). An error
    /// of `progress` ends the work and is returned.
    pub fn inspect(
        &self,
        options: &Options,
        mut progress: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<Vec<FileMigration>> {
        let storage = &*options.storage;
        let source = source_of(storage, self, None)?;
        let files = sized(storage, old_files(storage, &source, &self.base_filename)?)?;
        let all = files.iter().map(|(_, bytes)| bytes).sum();
        let (mut reports, mut done) = (Vec::new(), 0);
        for (old, bytes) in files {
            let file =
                storage.open(&old.path, Access::Read).map_err(|e| unreadable(&old.path, e))?;
            let mut report = FileMigration::of(&old, bytes);
            let limit = options.record_bytes_max;
            let step = |at: u64| progress((done + at).min(all), all);
            report.read(&*file, limit, step, |_| Ok(()))?;
            done += bytes;
            reports.push(report);
        }
        Ok(reports)
    }
}

fn source_of(storage: &dyn Storage, migration: &Migration, to: Option<&Path>) -> Result<PathBuf> {
    let given = &migration.source;
    let source = located(storage, given).map_err(|e| e.of(FORMAT))?;
    if !storage.is_dir(&source) {
        let error = Error::new(ErrorKind::Missing, "no directory of a DirectoryStore is there");
        return Err(error.of(FORMAT).at(&source));
    }
    let to = to.map(|to| located(storage, to)).transpose().map_err(|e| e.of(FORMAT))?;
    if to.as_ref() == Some(&source) {
        let message = "the ledger lies in the same directory; their files may have the same names";
        return Err(Error::new(ErrorKind::InvalidArgument, message).of(FORMAT).at(&source));
    }
    Ok(source)
}

/// Keeps out a second migration.
fn lock(storage: &dyn Storage, source: &Path) -> Result<Box<dyn crate::storage::LockGuard>> {
    match storage.lock(source, false) {
        Ok(LockAttempt::Held(guard)) => Ok(guard),
        Ok(LockAttempt::Busy(holder)) => {
            let error = Error::new(ErrorKind::Locked, "the directory is being migrated");
            Err(error.of(FORMAT).at(source).with_holder(holder))
        }
        Err(e) => Err(Error::io("lock the directory", source, e).of(FORMAT)),
    }
}

fn sized(storage: &dyn Storage, files: Vec<OldFile>) -> Result<Vec<(OldFile, u64)>> {
    let sized = files.into_iter().map(|old| {
        let len = storage.open(&old.path, Access::Read).and_then(|file| file.len());
        len.map(|len| (old.clone(), len)).map_err(|e| unreadable(&old.path, e))
    });
    sized.collect()
}

struct Moving<'a> {
    storage: &'a dyn Storage,
    source: &'a Path,
    keep: bool,
    ledger: &'a LedgerStore,
    directory: &'a Directory,
}

impl Moving<'_> {
    fn migrate(
        &self,
        old: &OldFile,
        progress: impl FnMut(u64) -> Result<()>,
    ) -> Result<FileMigration> {
        let fail = |e| unreadable(&old.path, e);
        let file = self.storage.open(&old.path, Access::Read).map_err(fail)?;
        let (id, len) = (file.id().map_err(fail)?, file.len().map_err(fail)?);
        let mut report = FileMigration::of(old, len);
        self.append(&mut report, &*file, progress)?;
        self.check_unchanged(old, id, len)?;
        self.ledger.sync()?;
        if !self.keep && !report.is_foreign() {
            self.remove(old, &*file, &mut report)?;
        }
        Ok(report)
    }

    fn append(
        &self,
        report: &mut FileMigration,
        file: &dyn File,
        progress: impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let limit = self.ledger.options().record_bytes_max;
        let batch_bytes = BATCH_BYTES.min(self.ledger.max_file_size());
        let mut batch = Batch::new(limit);
        report.read(file, limit, progress, |event| {
            batch.push(event)?;
            if batch.bytes_len() as u64 >= batch_bytes {
                self.ledger.append_batch(&batch)?;
                batch.clear();
            }
            Ok(())
        })?;
        if !batch.is_empty() {
            self.ledger.append_batch(&batch)?;
        }
        Ok(())
    }

    fn check_unchanged(&self, old: &OldFile, id: FileId, len: u64) -> Result<()> {
        let fail = |e| unreadable(&old.path, e);
        let now = self.storage.open(&old.path, Access::Read).map_err(fail)?;
        match (now.id().map_err(fail)?, now.len().map_err(fail)?) == (id, len) {
            true => Ok(()),
            false => {
                let message = "the file was changed while it was read; end the program that writes";
                let error = Error::new(ErrorKind::Locked, message).with_durable(Durable::Unknown);
                Err(error.of(FORMAT).at(&old.path))
            }
        }
    }

    /// Remove the file, after a copy of its rest.
    fn remove(&self, old: &OldFile, file: &dyn File, report: &mut FileMigration) -> Result<()> {
        let mut remove = || -> Result<()> {
            if let Some(from) = report.rest_from {
                let name = old.path.file_name().unwrap_or_default();
                let beside = self.directory.make_quarantine()?.join(name);
                let mode = self.ledger.options().file_mode;
                report.set_aside = save_tail(self.storage, file, &beside, mode, from)?;
            }
            let fail = |e| Error::io("remove the file", &old.path, e);
            self.storage.remove(&old.path).map_err(fail)?;
            self.storage.sync_dir(self.source).map_err(fail)
        };
        remove().map_err(|e| e.of(FORMAT))?;
        report.removed = true;
        Ok(())
    }
}

impl FileMigration {
    fn of(old: &OldFile, bytes: u64) -> Self {
        Self {
            path: old.path.clone(),
            bytes,
            active: old.active,
            events: 0,
            rest_from: None,
            rest_reason: None,
            set_aside: None,
            removed: false,
        }
    }

    /// Whether the file does not begin as a DirectoryStore's, and stays.
    pub fn is_foreign(&self) -> bool {
        self.rest_from == Some(0)
    }

    /// Read the events up to the rest.
    fn read(
        &mut self,
        file: &dyn File,
        limit: u64,
        mut progress: impl FnMut(u64) -> Result<()>,
        mut take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut events = Events::new(Scanner::new(file, limit));
        let mut reported = 0;
        loop {
            let (from, why) =
                match events.next().map_err(|fault| self.unreadable(fault, &events))? {
                    Next::Event { end, .. } => {
                        take(events.event())?;
                        self.events += 1;
                        if end >= reported + BATCH_BYTES {
                            reported = end;
                            progress(end)?;
                        }
                        continue;
                    }
                    Next::End => return progress(self.bytes),
                    Next::Rest { from, why } => (from, why),
                    Next::Foreign(why) => (0, why),
                };
            (self.rest_from, self.rest_reason) = (Some(from), Some(why.to_string()));
            return progress(self.bytes);
        }
    }

    fn unreadable(&self, fault: Fault, events: &Events<'_>) -> Error {
        let error = match fault {
            Fault::Io(e) => return unreadable(&self.path, e),
            Fault::TooLong(bytes) => {
                let message = format!("event of {bytes} bytes, more than the ledger's limit");
                Error::new(ErrorKind::TooLarge, message)
            }
            Fault::Unexpected(why) => Error::new(ErrorKind::Corrupt, why.to_string()),
        };
        error.of(FORMAT).at(&self.path).offset_at(events.at())
    }
}
