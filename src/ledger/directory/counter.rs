//! The lowest index that no file had yet: `.deedbook/next-BASE`, text with a checksum. It outlives
//! the files, so that no index comes twice: a sender may name its batches by them.
//!
//! ```text
//! next 17
//! crc 1a2b3c4d                  (CRC-32 of the line above)
//! ```

use std::path::Path;

use crate::checksum::crc32;
use crate::error::{Error, Result};
use crate::lines;
use crate::sidecar::{PRIVATE_MODE, is_missing};
use crate::storage::{Access, Storage, read_full, replace_through};

const BYTES_MAX: usize = 256;

fn name(base: &str) -> String {
    format!("next-{base}")
}

fn encode(next: u64) -> String {
    let text = format!("next {next}\n");
    let crc = crc32(text.as_bytes());
    text + &format!("crc {crc:08x}\n")
}

fn decode(text: &str) -> Option<u64> {
    let next = text.lines().next()?.strip_prefix("next ")?.parse().ok()?;
    (encode(next) == text).then_some(next)
}

/// Read it; 0 if there is none. A damaged one is as good as none: numbering goes by the files. One that
/// may not be read is an error, or numbers that were given would be given again.
pub fn load(storage: &dyn Storage, sidecar: &Path, base: &str) -> Result<u64> {
    let path = sidecar.join(name(base));
    let Some(bytes) = read(storage, &path)? else { return Ok(0) };
    let next = std::str::from_utf8(&bytes).ok().and_then(decode);
    if next.is_none() {
        lines::warn(format_args!("the next index is damaged ({})", path.display()));
    }
    Ok(next.unwrap_or(0))
}

/// Whether there is one, intact: then a store wrote files with that base here.
pub fn is_there(storage: &dyn Storage, sidecar: &Path, base: &str) -> bool {
    let bytes = read(storage, &sidecar.join(name(base))).ok().flatten();
    bytes.is_some_and(|bytes| std::str::from_utf8(&bytes).ok().and_then(decode).is_some())
}

fn read(storage: &dyn Storage, path: &Path) -> Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; BYTES_MAX];
    let read = match storage.open(path, Access::Read) {
        Ok(file) => read_full(&*file, &mut bytes, 0),
        Err(e) if is_missing(&e) => return Ok(None),
        Err(e) => Err(e),
    };
    let read = read.map_err(|e| Error::io("read the next index", path, e))?;
    bytes.truncate(read);
    Ok(Some(bytes))
}

/// Write it, durably.
pub fn store(storage: &dyn Storage, sidecar: &Path, base: &str, next: u64) -> Result<()> {
    let path = sidecar.join(name(base));
    // No counter's name: what a kill leaves of it is no second ledger, and a ledger whose base ends with
    // `.tmp` keeps its own.
    let temporary = sidecar.join(format!(".{}.tmp", name(base)));
    replace_through(storage, &path, &temporary, encode(next).as_bytes(), PRIVATE_MODE)
        .map_err(|e| Error::io("store the next index", &path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_index_is_read_back_and_damage_is_seen() {
        let text = encode(4_294_967_296);
        assert_eq!(decode(&text), Some(4_294_967_296));
        for at in 0..text.len() {
            let mut damaged = text.clone().into_bytes();
            damaged[at] ^= 1;
            assert_eq!(decode(&String::from_utf8_lossy(&damaged)), None, "byte {at}");
        }
    }
}
