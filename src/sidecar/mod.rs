//! What we add beside a log, all of it in the subdirectory `.deedbook/`: mark, index, lock.
//!
//! It is advisory. Deleting it is always safe and costs time only.
//!
//! ```text
//! mark    2 slots of 512 bytes  how far the log is known to be on stable storage
//! index   16 + 24 n bytes       every n-th record's ordinal and offset, a checksum per block
//! lock    text                  process id of the writer
//! ```

mod index;
mod lock;
mod mark;

use std::path::{Path, PathBuf};

pub use index::{BLOCK_BYTES, Entry, Index};
pub use lock::WriterLock;
pub use mark::{Found, Mark, MarkFile, MarkUse};

/// Name of the subdirectory.
pub const SIDECAR_NAME: &str = ".deedbook";

/// The sidecar's directory of a log directory.
pub fn sidecar_dir(log_dir: &Path) -> PathBuf {
    log_dir.join(SIDECAR_NAME)
}
