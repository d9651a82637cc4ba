//! What we add beside a log, all of it in the subdirectory `.deedbook/`.
//!
//! Mark, index, settings and lock are advisory: deleting them is safe and costs time only. Not
//! derived are the consumers of a write-ahead log or pier, the record of transactions, and the notes of damage and of a loss.
//!
//! ```text
//! mark      2 slots of 512 bytes  how far the log is known to be on stable storage
//! index     16 + 24 n bytes       every n-th record's ordinal and offset
//! settings  text                  format, limits, size of a segment
//! lock      text                  process id of the writer
//! consumers text                  which records are still needed: `consumers.rs`
//! damage    text                  what a check found and opening does not see
//! loss      text                  acknowledged records that repairs went on without
//! transactions, transaction, staged/
//!           text, records         what was committed, and what is to be: `src/transaction`
//! next-BASE, quarantine/, jobs-BASE/
//!                                 of a ledger: `src/ledger/FORMAT.md`
//! manifest, events/               of an event store, the copy of its manifest and its index:
//!                                 `src/nostr/FORMAT.md`
//! ```

mod consumers;
mod damage;
mod index;
mod lock;
mod loss;
mod mark;
mod name;
pub(crate) mod sealed;
mod settings;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::mend::{above, make_own_dir, refuse_link};
use crate::storage::Storage;

pub use consumers::{CONSUMERS_WAIT, Consumers, Positions};
pub use damage::{forget_damage, note_damage, noted_damage};
pub use index::{Entry, INDEX_BLOCK_BYTES, Index};
pub use lock::{LOCK_NAME, LockTimeout, WriterLock, lock_within};
pub use loss::Loss;
pub use mark::{LoadedMark, Mark, MarkFile, MarkUse};
pub use name::check_name;
#[cfg(test)]
pub use sealed::unseal;
pub use sealed::{check_small, load_sealed, read_small, seal};
pub use settings::{Settings, is_absence, is_missing};

/// Unix permissions of the files in it, whatever those of the log are: it tells what a log holds, and
/// who can open its files can lock them.
pub const PRIVATE_MODE: u32 = 0o600;
/// Name of the subdirectory.
pub const SIDECAR_NAME: &str = ".deedbook";

/// The sidecar's directory of a log directory.
pub fn sidecar_dir(log_dir: &Path) -> PathBuf {
    log_dir.join(SIDECAR_NAME)
}

/// Create the sidecar of a log whose directory exists; the directory of a removed log is not made again.
pub fn make_sidecar(storage: &dyn Storage, sidecar: &Path) -> Result<()> {
    // That of one file among others is a directory in `.deedbook`.
    if let Some(parent) = shared_by_logs(sidecar) {
        make_own_dir(storage, parent, PRIVATE_MODE)?;
    }
    make_own_dir(storage, sidecar, PRIVATE_MODE)
}

/// Refuse a sidecar behind a symbolic link.
pub fn refuse_linked(storage: &dyn Storage, sidecar: &Path) -> Result<()> {
    shared_by_logs(sidecar).map_or(Ok(()), |parent| refuse_link(storage, parent))?;
    refuse_link(storage, sidecar)
}

/// The `.deedbook` in which a log that shares its directory has its sidecar.
fn shared_by_logs(sidecar: &Path) -> Option<&Path> {
    let parent = above(sidecar);
    parent.file_name().is_some_and(|name| name == SIDECAR_NAME).then_some(parent)
}

/// Whether there is nothing in a sidecar but what a log without records has: no log is missing beside it.
pub fn tells_of_no_record(storage: &dyn Storage, sidecar: &Path) -> Result<bool> {
    if storage.is_link(sidecar) || !storage.is_dir(sidecar) {
        return Ok(false);
    }
    let names = storage.list(sidecar).map_err(|e| Error::io("list the directory", sidecar, e))?;
    let derived = [LOCK_NAME, mark::MARK_NAME, index::INDEX_NAME, settings::SETTINGS_NAME];
    let all_derived = names.iter().all(|name| derived.iter().any(|derived| name == derived));
    let loaded = MarkFile::load(storage, sidecar);
    Ok(match loaded.map_err(|e| Error::io("read the mark", sidecar, e))? {
        LoadedMark::Mark(mark) => all_derived && mark.records == 0,
        LoadedMark::Missing => all_derived,
        LoadedMark::Damaged => false,
    })
}

/// Refuse to create a log where one of another format is: a directory has one sidecar.
pub fn refuse_other_format(storage: &dyn Storage, dir: &Path, ours: &str) -> Result<()> {
    let names = match storage.list(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        names => names.map_err(|e| Error::io("list the directory", dir, e))?,
    };
    let format_of = |name: &OsStr| match name.to_str()? {
        "book.log" => Some("book"),
        name => {
            let digits = name.strip_suffix(".wal")?;
            let segment = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
            segment.then_some("wal")
        }
    };
    for name in &names {
        if let Some(theirs) = format_of(name).filter(|&format| format != ours) {
            let message = format!("the directory holds a {theirs}: {}", name.to_string_lossy());
            return Err(Error::new(ErrorKind::NotALog, message).at(dir));
        }
    }
    Ok(())
}
