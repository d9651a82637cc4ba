//! Whole reads and writes over [`File`] and [`Storage`]: fill a buffer, find the end of the data, write
//! all.

use std::ffi::OsString;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::{File, Storage};
use crate::error::{Error, ErrorKind, Result};
use crate::ground::interrupt;
use crate::ground::slice::{part, part_mut};

/// Bytes read at a time: small enough to stay in the processor's cache until they are checked.
pub const READ_BYTES: usize = 256 << 10;

/// The absolute path of a log.
pub fn located(storage: &dyn Storage, path: &Path) -> Result<PathBuf> {
    if path.as_os_str().is_empty() {
        return Err(Error::new(ErrorKind::InvalidArgument, "the path of the log is empty"));
    }
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        let message = "the path of the log has a zero byte";
        return Err(Error::new(ErrorKind::InvalidArgument, message).at(path));
    }
    storage.absolute(path).map_err(|e| Error::io("find the place of the log", path, e))
}

/// The names in a directory, in no order; none if it is not there.
pub fn names_in(storage: &dyn Storage, dir: &Path) -> Result<Vec<OsString>> {
    match storage.list(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        names => names.map_err(|e| Error::io("list the directory", dir, e)),
    }
}

/// Fill `buf` from `offset`, or as much as there is before the end of the file; returns the count.
pub fn read_full(file: &dyn File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    interrupt::ask()?;
    let mut done = 0;
    while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

/// The checksum of some bytes of a file, continuing from the checksum of the bytes before; `None`
/// if the file ends too early.
pub fn sum_of(
    file: &dyn File,
    bytes: Range<u64>,
    before: u32,
    more: fn(u32, &[u8]) -> u32,
) -> io::Result<Option<u32>> {
    let mut block = vec![0; bytes.end.saturating_sub(bytes.start).min(1 << 20) as usize];
    let (mut sum, mut at) = (before, bytes.start);
    while at < bytes.end {
        let want = (bytes.end - at).min(block.len() as u64) as usize;
        let read = read_full(file, part_mut(&mut block, ..want), at)?;
        if read == 0 {
            return Ok(None);
        }
        sum = more(sum, part(&block, ..read));
        at += read as u64;
    }
    Ok(Some(sum))
}

/// The last byte of `start..end` that is not zero, plus one; `start` if all are zero.
pub fn end_of_data(file: &dyn File, start: u64, end: u64) -> io::Result<u64> {
    let mut block = vec![0; end.saturating_sub(start).min(READ_BYTES as u64) as usize];
    let mut stop = end;
    while stop > start {
        let from = stop.saturating_sub(READ_BYTES as u64).max(start);
        if file.data_from(from)? >= stop {
            stop = from;
            continue;
        }
        let target = part_mut(&mut block, ..(stop - from) as usize);
        let read = read_full(file, target, from)?;
        let seen = part(target, ..read);
        if let Some(at) = seen.iter().rposition(|&byte| byte != 0) {
            return Ok(from + at as u64 + 1);
        }
        stop = from;
    }
    Ok(start)
}

/// Write all of `buf` at `offset`. Continues after short writes; a write of 0 bytes is an error.
pub fn write_full(file: &dyn File, buf: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while let Some(rest) = buf.get(done..).filter(|rest| !rest.is_empty()) {
        match file.write_at(rest, offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => done += seeded!(n, "short-write-is-whole" => rest.len()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, clippy::unwrap_used)]

    use super::*;
    use crate::storage::counted::Counted;

    const BLOCK: usize = READ_BYTES;

    /// A file of `len` bytes, each of them `byte`, but for these parts.
    fn file(len: usize, byte: u8, parts: &[(usize, &[u8])]) -> Counted {
        let mut file = Counted::of(vec![byte; len]);
        for (at, part) in parts {
            file.bytes[*at..*at + part.len()].copy_from_slice(part);
        }
        file
    }

    #[test]
    fn data_ends_after_the_last_nonzero_byte() {
        let len = 3 * BLOCK + 100;
        for last in [0, 1, 99, 100, BLOCK - 1, BLOCK, BLOCK + 100, 2 * BLOCK + 99, len - 1] {
            let file = file(len, 0, &[(0, &[1]), (last, &[1])]);
            let end = |start: usize, end: usize| {
                end_of_data(&file, start as u64, end as u64).unwrap() as usize
            };
            assert_eq!(end(0, len), last + 1);
            assert_eq!(end(last, len), last + 1);
            assert_eq!(end(last + 1, len), last + 1, "only zeros");
            assert_eq!(end(0, last.max(1)), 1, "only the first byte");
            assert_eq!(end(5, 5), 5, "nothing");
        }
    }

    #[test]
    fn zeros_are_read_once_and_holes_never() {
        let mut file = file(9 * BLOCK, 0, &[(BLOCK / 2, &[1])]);
        assert_eq!(end_of_data(&file, 0, 9 * BLOCK as u64).unwrap(), BLOCK as u64 / 2 + 1);
        assert_eq!((file.read(), file.reads()), (9 * BLOCK as u64, 9));
        file.has_holes = true;
        assert_eq!(end_of_data(&file, 0, 9 * BLOCK as u64).unwrap(), BLOCK as u64 / 2 + 1);
        assert_eq!((file.read(), file.reads()), (10 * BLOCK as u64, 10));
    }
}
