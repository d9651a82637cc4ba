//! The directory `.deedbook` itself.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::saving::{make_own_dir, refuse_link};
use crate::storage::{Storage, above};

/// Unix permissions of the files in the sidecar, whatever the log's are. The files repeat parts of
/// the log's content, and anybody who can open a file can lock it.
pub const PRIVATE_MODE: u32 = 0o600;
/// Name of the subdirectory.
pub const SIDECAR_NAME: &str = ".deedbook";

/// The sidecar's directory of a log directory.
pub fn sidecar_dir(log_dir: &Path) -> PathBuf {
    log_dir.join(SIDECAR_NAME)
}

/// Create the sidecar of a log whose directory exists; the directory of a removed log is not made again.
pub fn make_sidecar(storage: &dyn Storage, sidecar: &Path) -> Result<()> {
    // A log among others in a directory has a subdirectory of `.deedbook`.
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

/// The common `.deedbook` of logs in one directory, if this log's sidecar lies there.
fn shared_by_logs(sidecar: &Path) -> Option<&Path> {
    let parent = above(sidecar);
    parent.file_name().is_some_and(|name| name == SIDECAR_NAME).then_some(parent)
}
