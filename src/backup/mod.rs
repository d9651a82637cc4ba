//! Backups of logs while their writers run: copies that open like the logs.
//!
//! A backup consists of files in the log's format, and copies only the bytes that its target lacks.
//! An interrupted backup leaves the earlier backup with an unacknowledged tail, and the next backup
//! continues the tail. One engine copies, compares, syncs, resumes and reports. For each kind of
//! log, a source file lists the files, the order, and the durable bytes.

mod book;
mod copier;
mod ledger;
mod log;
mod options;
mod pier;
mod places;
mod source;
#[cfg(feature = "nostr")]
mod store;
mod target;
mod wal;

use std::path::Path;
use std::sync::Arc;

use crate::book::format::BookFormat;
use crate::detect::Kind;
use crate::error::{Error, Result};
use crate::ground::interrupt::asking;
use crate::log::Place;
use crate::storage::{Storage, above, located};
use crate::wal::format::WalFormat;
use copier::{Copied, Copier};
pub use options::{BackupOptions, BackupReport};
use places::Source;
use target::{Target, make_target, name_holder};

impl BackupOptions {
    /// Copy a log while its writer runs, or bring such a copy up to date. To restore, open the copy.
    ///
    /// The copy has every record acknowledged before the call, with the same numbers or LSNs, consumers
    /// and committed transactions. The backup reads the new records back, and returns when the copy is
    /// on stable storage. The next call continues an interrupted backup. `progress` gets the number of
    /// bytes read; an error of `progress` ends the copy.
    ///
    /// A `target` whose files are no beginning of the log's is [`crate::ErrorKind::InvalidArgument`], and stays as it
    /// is.
    ///
    /// # Errors
    ///
    /// Fails with [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a target that holds something else,
    /// [`Locked`](crate::ErrorKind::Locked) while another process writes it, and [`Corrupt`](crate::ErrorKind::Corrupt)
    /// for damage in the log; see [Errors](crate#errors). An error of `progress` ends the work and is returned.
    ///
    /// ```
    /// use deedbook::BackupOptions;
    /// use deedbook::book::Book;
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let (log, copy) = (dir.path().join("log"), dir.path().join("copy"));
    /// let book = Book::create(&log)?;
    /// book.append(0, b"first")?;
    /// let report = BackupOptions::new().backup(&log, &copy, |_| Ok(()))?;
    /// assert_eq!(report.bounds, Some((1, 1)));
    /// assert_eq!(Book::open(&copy)?.read(1)?.jam, b"first");
    /// # Ok(())
    /// # }
    /// ```
    pub fn backup(
        &self,
        source: impl AsRef<Path>,
        target: impl AsRef<Path>,
        mut progress: impl FnMut(u64) -> Result<()>,
    ) -> Result<BackupReport> {
        let source = source.as_ref();
        asking(self.lock_timeout.check(), source, || {
            back_up(source, target.as_ref(), self, &mut progress)
        })
    }
}

fn back_up(
    source: &Path,
    target: &Path,
    options: &BackupOptions,
    progress: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<BackupReport> {
    let storage = &options.storage;
    let source = located(&**storage, source)?;
    let target = located(&**storage, target)?;
    let log = Source::at(storage, &source)?;
    log.check_target(storage, &source, &target)?;
    if !storage.is_dir(above(&target)) {
        let missing = std::io::ErrorKind::NotFound.into();
        return Err(Error::io("create the backup", above(&target), missing));
    }
    if !log.single {
        make_target(&**storage, &target, &source)?;
    }
    let (ours, theirs) = match log.kind {
        Kind::Pier => {
            let dir = pier::log_dir(storage, &source)?;
            let below = dir.strip_prefix(&source).unwrap_or(Path::new(""));
            let theirs = target.join(below);
            pier::make_log_dir(&**storage, &target, &theirs)?;
            (log.place(&dir), log.place(&theirs))
        }
        _ => (log.place(&source), log.place(&target)),
    };
    let locked = Target::open(&theirs, options).map_err(|error| name_holder(error, &target))?;
    let mut copier = Copier::new(&locked, progress);
    let copied = copy(log.kind, storage, &ours, &theirs, &mut copier)?;
    let (copied_files, copied_bytes) = (copier.files, copier.bytes);
    locked.end()?;
    let Copied { bounds, new_records, total_bytes } = copied;
    let format = log.kind.name();
    Ok(BackupReport {
        source,
        target,
        format,
        copied_files,
        copied_bytes,
        new_records,
        bounds,
        total_bytes,
    })
}

fn copy(
    kind: Kind,
    storage: &Arc<dyn Storage>,
    ours: &Place,
    theirs: &Place,
    copier: &mut Copier<'_>,
) -> Result<Copied> {
    match kind {
        Kind::Book => log::backup::<BookFormat>(storage, ours, theirs, copier),
        Kind::Wal => log::backup::<WalFormat>(storage, ours, theirs, copier),
        Kind::Pier => pier::backup(storage, &ours.dir, &theirs.dir, copier),
        Kind::Ledger => ledger::backup(storage, &ours.dir, &theirs.dir, copier),
        #[cfg(feature = "nostr")]
        Kind::Nostr => store::backup(storage, &ours.dir, &theirs.dir, copier),
    }
}
