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
    Link,
    Fifo,
    Socket,
    Device,
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

    /// In a sentence.
    pub fn text(self) -> &'static str {
        match self {
            Self::File(_) => "a regular file",
            Self::Dir => "a directory",
            Self::Link => "a symbolic link",
            Self::Fifo => "a FIFO",
            Self::Socket => "a socket",
            Self::Device => "a device",
        }
    }

    fn of(found: fs::Metadata) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::FileTypeExt;
        match found.file_type() {
            kind if kind.is_file() => Self::File(found.len()),
            kind if kind.is_dir() => Self::Dir,
            kind if kind.is_symlink() => Self::Link,
            #[cfg(unix)]
            kind if kind.is_fifo() => Self::Fifo,
            #[cfg(unix)]
            kind if kind.is_socket() => Self::Socket,
            _ => Self::Device,
        }
    }
}
