//! The checks of an index's files before fjall opens them.
//!
//! fjall trusts some lengths before it compares a checksum, and allocates that much memory: one flipped bit
//! there ends the process. fjall also follows links and waits for FIFOs. These checks find accidents, because
//! anybody can make a checksum. `files/made_here.rs` keeps foreign bytes away from fjall.

pub mod lent;
pub mod made_here;

use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_128;

use crate::error::{Error, ErrorKind, Result};
use crate::ground::slice::{u32_at, u64_at};
use crate::nostr::bytes::format::FORMAT;
use crate::sidecar::note::read_small;
use crate::storage::{Access, Disk, File, Storage, read_full};

/// The directory of a keyspace's tables, and the extension of a journal.
const TABLES_NAME: &str = "tables";
const JOURNAL_EXTENSION: &str = "jnl";
/// The file with the name of a keyspace's newest version: number 8, checksum 16, both little-endian, and the kind
/// of checksum 1.
const CURRENT_NAME: &str = "current";
const CURRENT_BYTES: usize = 25;
/// A table ends with: magic 4, version 1, kind of checksum 1, checksum 16, place and length of the table of
/// contents 8 each. The table of contents begins with: magic 4, number of entries 4.
const TRAILER_BYTES: usize = 38;
const TRAILER_MAGIC: &[u8] = b"SFA!";
const CONTENTS_AT: usize = 22;
const CONTENTS_MAGIC: &[u8] = b"TOC!";
const CONTENTS_HEAD_BYTES: usize = 8;
const ENTRY_BYTES_MIN: u64 = 18;
/// The index writes no longer value.
const VALUE_BYTES_MAX: u32 = 1 << 20;

/// The error that makes the store rebuild the index.
pub fn damaged(why: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("damaged index: {why}")).of(FORMAT)
}

/// Refuse links, FIFOs, another checksum, and lengths that the files do not have.
pub fn check(dir: &Path) -> Result<()> {
    for path in files(dir).map_err(|e| failed(dir, e))? {
        let file = match Disk.open(&path, Access::Read) {
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                return Err(damaged("not a regular file").at(&path));
            }
            file => file.map_err(|e| failed(&path, e))?,
        };
        let is_in = |name: &str| path.parent().is_some_and(|dir| dir.ends_with(name));
        let is_journal = path.extension().is_some_and(|name| name == JOURNAL_EXTENSION);
        let wrong = match is_journal {
            true => wrong_in_journal(&*file).map_err(|e| failed(&path, e))?,
            false if is_in(TABLES_NAME) => wrong_in_table(&*file).map_err(|e| failed(&path, e))?,
            false if path.ends_with(CURRENT_NAME) => wrong_version(&*file, &path)?,
            false => None,
        };
        if let Some(why) = wrong {
            return Err(damaged(&why).at(&path));
        }
    }
    Ok(())
}

fn failed(path: &Path, error: io::Error) -> Error {
    Error::io("look at the index", path, error).of(FORMAT)
}

/// All names below a directory, without directories.
fn files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut left, mut files) = (vec![dir.to_path_buf()], Vec::new());
    while let Some(dir) = left.pop() {
        for name in Disk.list(&dir)? {
            let path = dir.join(name);
            match Disk.is_dir(&path) && !Disk.is_link(&path) {
                true => left.push(path),
                false => files.push(path),
            }
        }
    }
    Ok(files)
}

/// fjall writes the checksum of a version, and does not compare it. fjall ends the process if a version says what
/// fjall does not expect.
fn wrong_version(current: &dyn File, path: &Path) -> Result<Option<String>> {
    let small = |file: &dyn File, path: &Path| match read_small(file, path, "the index") {
        Err(error) if error.kind() == ErrorKind::Corrupt => Err(damaged(error.message()).at(path)),
        read => read.map_err(|e| e.of(FORMAT)),
    };
    let current = small(current, path)?;
    let parts = current.split_first_chunk().and_then(|(version, rest)| {
        rest.split_first_chunk().map(|(checksum, _)| (*version, *checksum))
    });
    let Some((version, checksum)) = parts else {
        return Ok(Some(format!("{} bytes, must be {CURRENT_BYTES}", current.len())));
    };
    let name = format!("v{}", u64::from_le_bytes(version));
    let path = path.with_file_name(&name);
    let bytes = match Disk.open(&path, Access::Read) {
        Ok(file) => small(&*file, &path)?,
        // fjall itself reports a missing file.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(&path, e)),
    };
    let is_right = xxh3_128(&bytes) == u128::from_le_bytes(checksum);
    Ok((!is_right).then(|| format!("the checksum of {name} is another")))
}

/// Compare the number of entries in the table of contents with the size of the file. fjall itself reports
/// short files and wrong magic.
fn wrong_in_table(file: &dyn File) -> io::Result<Option<String>> {
    let Some(trailer_at) = file.len()?.checked_sub(TRAILER_BYTES as u64) else { return Ok(None) };
    let (mut trailer, mut contents) = ([0; TRAILER_BYTES], [0; CONTENTS_HEAD_BYTES]);
    read_full(file, &mut trailer, trailer_at)?;
    let at = u64_at(&trailer, CONTENTS_AT).filter(|_| trailer.starts_with(TRAILER_MAGIC));
    let room =
        at.and_then(|at| trailer_at.checked_sub(at)?.checked_sub(CONTENTS_HEAD_BYTES as u64));
    let (Some(at), Some(room)) = (at, room) else { return Ok(None) };
    read_full(file, &mut contents, at)?;
    let entries = u32_at(&contents, 4).unwrap_or_default();
    let is_wrong =
        contents.starts_with(CONTENTS_MAGIC) && u64::from(entries) > room / ENTRY_BYTES_MIN;
    Ok(is_wrong.then(|| format!("{entries} entries of its table of contents in {room} bytes")))
}

/// Compare the lengths of values in a journal with the longest one that the index writes.
fn wrong_in_journal(file: &dyn File) -> io::Result<Option<String>> {
    let mut journal = BufReader::new(FromStart { file, at: 0 });
    while let Some([kind]) = next(&mut journal)? {
        let after_head = match kind {
            // The begin of a batch: number, count. The end of one: checksum, magic.
            1 | 3 => next::<12>(&mut journal)?.map(|_| 0),
            // A keyspace that is emptied: its number.
            4 => next::<8>(&mut journal)?.map(|_| 0),
            // A value: kind 1, compression 1, keyspace 8, and the lengths of the key 2, the value 4, and the
            // value in the journal 4.
            2 => match next::<20>(&mut journal)? {
                Some([.., k0, k1, a, b, c, d, e, f, g, h]) => {
                    let key = u16::from_le_bytes([k0, k1]);
                    let (value, here) =
                        (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
                    let len = value.max(here);
                    if len > VALUE_BYTES_MAX {
                        let why = format!("a value of {len} bytes, limit {VALUE_BYTES_MAX}");
                        return Ok(Some(why));
                    }
                    Some(u64::from(key) + u64::from(here))
                }
                None => None,
            },
            // The zeros after the last batch, or damage, which fjall reports.
            _ => None,
        };
        let Some(bytes) = after_head else { break };
        io::copy(&mut journal.by_ref().take(bytes), &mut io::sink())?;
    }
    Ok(None)
}

/// The next bytes; `None` if fewer are left.
fn next<const N: usize>(reader: &mut impl Read) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    match reader.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// A file, read from its first byte on.
struct FromStart<'a> {
    file: &'a dyn File,
    at: u64,
}

impl Read for FromStart<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buf, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
