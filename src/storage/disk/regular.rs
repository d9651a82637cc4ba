//! The one opener of files that other programs may have replaced: it takes regular files, follows no link and
//! waits for nobody.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::storage::Access;

/// The limit of a small file, which is held in memory whole. The longest is the intent of a commit, with at most 128
/// bytes for each staged file: 131,072 of them fit.
pub const SMALL_BYTES_MAX: u64 = 16 << 20;

/// Open a regular file by these options, without following a link and without waiting.
///
/// Fails with [`ErrorKind::NotALog`] for a symbolic link, a FIFO, a directory or a device, else with the error of the
/// system.
pub fn open_regular(path: impl AsRef<Path>, options: fs::OpenOptions) -> Result<fs::File> {
    let path = path.as_ref();
    is_regular(path)?;
    opened(path, options).map_err(|e| match e.kind() {
        // The name may be another one since: a link, or a FIFO that nobody reads.
        io::ErrorKind::InvalidInput => refused("no regular file", path),
        _ => Error::io("open the file", path, e),
    })
}

/// The bytes of a small regular file.
///
/// Fails as [`open_regular`], and with [`ErrorKind::TooLarge`] above [`SMALL_BYTES_MAX`].
pub fn read_small(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    let path = path.as_ref();
    let file = open_regular(path, options(Access::Read))?;
    let fail = |e| Error::io("read the file", path, e);
    let mut len = file.metadata().map_err(fail)?.len();
    let mut bytes = Vec::new();
    if len <= SMALL_BYTES_MAX {
        // The file may grow meanwhile.
        file.take(SMALL_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(fail)?;
        len = bytes.len() as u64;
    }
    if len > SMALL_BYTES_MAX {
        let message =
            format!("the file has {len} bytes, at most {SMALL_BYTES_MAX} are held of a small file");
        return Err(Error::new(ErrorKind::TooLarge, message).at(path));
    }
    Ok(bytes)
}

/// Whether a regular file lies at a path. Fails with [`ErrorKind::NotALog`] for anything else, a link too.
pub fn is_regular(path: impl AsRef<Path>) -> Result<bool> {
    lies(path.as_ref(), fs::FileType::is_file, "a regular file")
}

/// Whether a directory lies at a path. Fails with [`ErrorKind::NotALog`] for anything else, a link too.
pub fn is_directory(path: impl AsRef<Path>) -> Result<bool> {
    lies(path.as_ref(), fs::FileType::is_dir, "a directory")
}

fn lies(path: &Path, is_wanted: fn(&fs::FileType) -> bool, wanted: &str) -> Result<bool> {
    match fs::symlink_metadata(path).map(|found| found.file_type()) {
        Ok(found) if is_wanted(&found) => Ok(true),
        Ok(found) => Err(refused(&format!("{} and must be {wanted}", named(found)), path)),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(e) => Err(Error::io("look at the file", path, e)),
    }
}

/// A type of file in a sentence.
fn named(found: fs::FileType) -> &'static str {
    #[cfg(unix)]
    use std::os::unix::fs::FileTypeExt;
    match found {
        found if found.is_file() => "a regular file",
        found if found.is_dir() => "a directory",
        found if found.is_symlink() => "a symbolic link",
        #[cfg(unix)]
        found if found.is_fifo() => "a FIFO",
        #[cfg(unix)]
        found if found.is_socket() => "a socket",
        _ => "a device",
    }
}

fn refused(what: &str, path: &Path) -> Error {
    Error::new(ErrorKind::NotALog, format!("this is {what}")).at(path)
}

/// The options for opening a file that is there.
pub fn options(access: Access) -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(access == Access::Write);
    options
}

/// Open a regular file; [`io::ErrorKind::InvalidInput`] for anything else.
pub fn opened(path: &Path, mut options: fs::OpenOptions) -> io::Result<fs::File> {
    #[cfg(not(unix))]
    if path.is_symlink() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a symbolic link"));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Not blocking: opening a FIFO must not hang.
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC);
    }
    let file = match options.open(path) {
        #[cfg(unix)]
        Err(e) if matches!(e.raw_os_error(), Some(libc::ELOOP | libc::EISDIR | libc::ENXIO)) => {
            let message = format!("not a regular file: {e}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        opened => opened?,
    };
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}

/// Whether a regular file belongs to the user of this process.
#[cfg(all(unix, feature = "nostr"))]
#[allow(unsafe_code)]
pub fn is_own(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let owner = opened(path, options(Access::Read))?.metadata()?.uid();
    // SAFETY: a system call without arguments, which cannot fail.
    Ok(owner == unsafe { libc::geteuid() })
}

#[cfg(all(not(unix), feature = "nostr"))]
pub fn is_own(path: &Path) -> io::Result<bool> {
    opened(path, options(Access::Read)).map(|_| true)
}
