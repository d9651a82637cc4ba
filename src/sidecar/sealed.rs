//! Small text files that end with the checksum of their lines, `crc 1a2b3c4d`.

use std::io;
use std::path::Path;

use crate::checksum::crc32;
use crate::error::{Error, ErrorKind, Result};
use crate::storage::{Access, File, Storage, read_full};

/// The limit of a small file, which is held in memory. The longest is the intent of a commit, with at most
/// 128 bytes for each staged file: 131,072 of them fit.
const BYTES_MAX: u64 = 16 << 20;

/// Lines, and their checksum.
pub fn seal(lines: &str) -> String {
    format!("{lines}crc {:08x}\n", crc32(lines.as_bytes()))
}

/// The lines, if the checksum is theirs.
pub fn unseal(text: &str) -> Option<&str> {
    let (lines, _crc) = text.strip_suffix('\n')?.rsplit_once("crc ")?;
    (seal(lines) == text).then_some(lines)
}

/// The lines of a file; `None` if it is not there. `what` it is called in errors. One that may not be
/// read is an error: nothing else says what is in it.
pub fn load_sealed(storage: &dyn Storage, path: &Path, what: &str) -> Result<Option<String>> {
    let fail = |e| Error::io(&format!("read {what}"), path, e);
    let file = match storage.open(path, Access::Read) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        file => file.map_err(fail)?,
    };
    let bytes = read_small(&*file, path, what)?;
    let text = String::from_utf8(bytes).ok();
    let lines = text.as_deref().and_then(unseal);
    let damaged = || Error::new(ErrorKind::Corrupt, format!("{what} is damaged")).at(path);
    Ok(Some(lines.ok_or_else(damaged)?.to_string()))
}

/// The bytes of a small file; one beyond the limit is damaged.
pub fn read_small(file: &dyn File, path: &Path, what: &str) -> Result<Vec<u8>> {
    let fail = |e| Error::io(&format!("read {what}"), path, e);
    let len = file.len().map_err(fail)?;
    if len > BYTES_MAX {
        let message = format!("{what} is damaged: {len} bytes, limit {BYTES_MAX}");
        return Err(Error::new(ErrorKind::Corrupt, message).at(path));
    }
    let mut bytes = vec![0; len as usize];
    let read = read_full(file, &mut bytes, 0).map_err(fail)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Refuse lines that would not be read back.
pub fn check_small(lines: &str, path: &Path, what: &str) -> Result<()> {
    if lines.len() as u64 <= BYTES_MAX {
        return Ok(());
    }
    let message = format!("{what} would have {} bytes, limit {BYTES_MAX}", lines.len());
    Err(Error::new(ErrorKind::TooLarge, message).at(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_back_and_damage_is_seen() {
        for lines in ["", "crc 1\n", "one\ntwo\n"] {
            let text = seal(lines);
            assert_eq!(unseal(&text), Some(lines));
            for at in 0..text.len() {
                let mut damaged = text.clone().into_bytes();
                damaged[at] ^= 1;
                assert_eq!(unseal(&String::from_utf8_lossy(&damaged)), None, "byte {at}");
                assert_eq!(unseal(&text[..at]), None, "{at} bytes");
            }
        }
    }
}
