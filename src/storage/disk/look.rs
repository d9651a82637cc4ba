//! What lies at a path of the disk.

use std::fs;
use std::io;
use std::path::Path;

/// What lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lies {
    /// A regular file of so many bytes.
    File(u64),
    Dir,
    /// A link, a FIFO, a device.
    Other,
}

impl Lies {
    /// At the path itself.
    pub fn at(path: &Path) -> io::Result<Self> {
        fs::symlink_metadata(path).map(Self::of)
    }

    /// Where links at the path lead.
    pub fn behind(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(Self::of)
    }

    fn of(found: fs::Metadata) -> Self {
        match found.file_type() {
            kind if kind.is_file() => Self::File(found.len()),
            kind if kind.is_dir() => Self::Dir,
            _ => Self::Other,
        }
    }
}
