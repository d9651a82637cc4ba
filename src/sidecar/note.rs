//! Notes: small text files next to a log. A note ends with the checksum of the lines, `crc
//! 1a2b3c4d`, and is replaced whole.

use std::io;
use std::path::{Path, PathBuf};

use super::dir::PRIVATE_MODE;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::checksum::crc32;
use crate::storage::segmented::remove;
use crate::storage::{Access, File, SMALL_BYTES_MAX, Storage, read_full, replace};

/// The place of a note, and its name in errors.
pub struct Note<'a> {
    pub storage: &'a dyn Storage,
    pub path: PathBuf,
    pub what: &'static str,
}

/// The state of a note.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    Absent,
    /// The file has no checksum, or a wrong one.
    Damaged,
    Lines(String),
}

impl Note<'_> {
    /// The note's lines. A damaged note is an error. A directory in the note's place is also an
    /// error, because no other file has the note's contents.
    pub fn load(&self) -> Result<Option<String>> {
        use io::ErrorKind::{NotADirectory, NotFound};
        match self.find(|e| matches!(e.kind(), NotFound | NotADirectory))? {
            Found::Absent => Ok(None),
            Found::Lines(lines) => Ok(Some(lines)),
            Found::Damaged => Err(self.error(ErrorKind::Corrupt, "is damaged")),
        }
    }

    /// Read the note. `is_absent` decides which errors mean an absent note.
    pub fn find(&self, is_absent: fn(&io::Error) -> bool) -> Result<Found> {
        let file = match self.storage.open(&self.path, Access::Read) {
            Err(e) if is_absent(&e) => return Ok(Found::Absent),
            file => file.map_err(|e| self.failed("read", e))?,
        };
        let bytes = read_small(&*file, &self.path, self.what)?;
        let text = std::str::from_utf8(&bytes).ok();
        Ok(text
            .and_then(without_sum)
            .map_or(Found::Damaged, |lines| Found::Lines(lines.to_owned())))
    }

    /// Replace the note, durably. Refuses lines too long to read back.
    pub fn store(&self, lines: &str) -> Result<()> {
        let bytes = lines.len();
        if bytes as u64 > SMALL_BYTES_MAX {
            let message = format!("would have {bytes} bytes, limit {SMALL_BYTES_MAX}");
            return Err(self.error(ErrorKind::TooLarge, &message));
        }
        replace(self.storage, &self.path, with_sum(lines).as_bytes(), PRIVATE_MODE)
            .map_err(|e| self.failed("store", e))
    }

    /// Remove the note durably, if it exists. Sync an absent note's directory, too: a process may
    /// have removed the note and crashed before the sync.
    pub fn remove(&self) -> Result<()> {
        let sidecar = self.path.parent().unwrap_or(Path::new("."));
        remove(self.storage, &self.path)
            .and_then(|()| self.storage.sync_dir(sidecar))
            .map_err(|e| self.failed("remove", e))
    }

    /// An error that begins with the note's name.
    pub fn error(&self, kind: ErrorKind, message: &str) -> Error {
        Error::new(kind, format!("{} {message}", self.what)).at(&self.path)
    }

    fn failed(&self, doing: &str, e: io::Error) -> Error {
        Error::io(&format!("{doing} {}", self.what), &self.path, e)
    }
}

/// The lines followed by the checksum.
pub fn with_sum(lines: &str) -> String {
    format!("{lines}crc {:08x}\n", crc32(lines.as_bytes()))
}

/// The lines, if the checksum matches.
fn without_sum(text: &str) -> Option<&str> {
    let (lines, _crc) = text.strip_suffix('\n')?.rsplit_once("crc ")?;
    (with_sum(lines) == text).then_some(lines)
}

/// The value of a line `NAME VALUE`.
pub fn value<'a>(line: Option<&'a str>, name: &str) -> Option<&'a str> {
    line?.strip_prefix(name)?.strip_prefix(' ')
}

/// The bytes of a small file. A file beyond the limit is damaged.
pub fn read_small(file: &dyn File, path: &Path, what: &str) -> Result<Vec<u8>> {
    let fail = |e| Error::io(&format!("read {what}"), path, e);
    let len = file.len().map_err(fail)?;
    if len > SMALL_BYTES_MAX {
        let message = format!("{what} is damaged: {len} bytes, limit {SMALL_BYTES_MAX}");
        return Err(Error::new(ErrorKind::Corrupt, message).at(path));
    }
    let mut bytes = vec![0; len as usize];
    let read = read_full(file, &mut bytes, 0).map_err(fail)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Whether an error means a missing file, or a file that this process may not read.
/// Readers and advisory files need no finer distinction.
pub fn is_absence(e: &io::Error) -> bool {
    is_missing(e) || e.kind() == io::ErrorKind::PermissionDenied
}

/// Whether an error means that no file exists there. A file without permission to read exists.
pub fn is_missing(e: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, NotADirectory, NotFound};
    matches!(e.kind(), NotFound | InvalidInput | NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_back_and_damage_is_seen() {
        for lines in ["", "crc 1\n", "one\ntwo\n"] {
            let text = with_sum(lines);
            assert_eq!(without_sum(&text), Some(lines));
            for at in 0..text.len() {
                let mut damaged = text.clone().into_bytes();
                damaged[at] ^= 1;
                assert_eq!(without_sum(&String::from_utf8_lossy(&damaged)), None, "byte {at}");
                assert_eq!(without_sum(&text[..at]), None, "{at} bytes");
            }
        }
    }
}
