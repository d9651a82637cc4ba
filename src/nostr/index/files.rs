//! The checks of an index's files before fjall opens them.
//!
//! fjall compares no checksum of some lengths before it asks for so much memory, and follows links. One
//! flipped bit there would end the process, so these lengths are held against their files first. This finds
//! accidents: a checksum can be forged. Bytes that somebody chose are not opened at all (`made_here.rs`).

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_128;

use super::table::damaged;
use crate::error::{Error, Result};
use crate::nostr::FORMAT;
use crate::slice::{u32_at, u64_at};

/// The name of the directory of a keyspace's tables, and the extension of a journal.
const TABLES_NAME: &str = "tables";
const JOURNAL_EXTENSION: &str = "jnl";
/// Where fjall has its keyspaces, and the file of one that names its newest version: number 8, checksum 16,
/// both little-endian.
const KEYSPACES_NAME: &str = "keyspaces";
const CURRENT_NAME: &str = "current";
/// The last bytes of a table and of a version: magic 4, version 1, kind of checksum 1, checksum 16, the
/// place and the length of the table of contents 8 each. There: magic 4, the number of entries 4, then the
/// entries.
const TRAILER_BYTES: u64 = 38;
const TRAILER_MAGIC: &[u8] = b"SFA!";
const CONTENTS_MAGIC: &[u8] = b"TOC!";
const ENTRY_BYTES_MIN: u64 = 18;
/// No value of ours is longer.
const VALUE_BYTES_MAX: u32 = 1 << 20;

/// Refuse files that would have fjall wait, leave the directory, or ask for more memory than they have bytes.
pub fn check(dir: &Path) -> Result<()> {
    let files = files(dir).map_err(|e| failed(dir, e))??;
    check_versions(dir)?;
    for path in files {
        let is_in = |name: &str| path.parent().is_some_and(|dir| dir.ends_with(name));
        let is_journal = path.extension().is_some_and(|name| name == JOURNAL_EXTENSION);
        let checked = match is_journal {
            true => check_journal(&path),
            false if is_in(TABLES_NAME) => check_contents(&path),
            false => Ok(Ok(())),
        };
        checked.map_err(|e| failed(&path, e))?.map_err(|e| e.at(&path))?;
    }
    Ok(())
}

fn failed(path: &Path, error: io::Error) -> Error {
    Error::io("look at the index", path, error).of(FORMAT)
}

/// The files. Links, FIFOs and the like are refused: fjall follows and waits for them.
fn files(dir: &Path) -> io::Result<Result<Vec<PathBuf>>> {
    let (mut left, mut files) = (vec![dir.to_path_buf()], Vec::new());
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(dir)? {
            let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
            match (kind.is_dir(), kind.is_file()) {
                (true, _) => left.push(path),
                (_, true) => files.push(path),
                _ => return Ok(Err(damaged("not a regular file").at(&path))),
            }
        }
    }
    Ok(Ok(files))
}

/// Compare the files that name the files of a table with their checksums, which fjall writes and does not
/// read.
fn check_versions(dir: &Path) -> Result<()> {
    for keyspace in std::fs::read_dir(dir.join(KEYSPACES_NAME)).into_iter().flatten().flatten() {
        let current = std::fs::read(keyspace.path().join(CURRENT_NAME)).unwrap_or_default();
        let Some((&version, rest)) = current.split_first_chunk() else { continue };
        let Some((&checksum, _)) = rest.split_first_chunk() else { continue };
        let name = format!("v{}", u64::from_le_bytes(version));
        // fjall itself reports a file that is missing.
        let Ok(bytes) = std::fs::read(keyspace.path().join(&name)) else { continue };
        if xxh3_128(&bytes) != u128::from_le_bytes(checksum) {
            return Err(damaged(&format!("the checksum of {name} is another")).at(dir));
        }
    }
    Ok(())
}

/// Hold the number of entries in the table of contents against the size of the file. fjall itself reports
/// what is too short or has another magic.
fn check_contents(path: &Path) -> io::Result<Result<()>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let Some(trailer_at) = size.checked_sub(TRAILER_BYTES) else { return Ok(Ok(())) };
    let (mut trailer, mut contents) = ([0; TRAILER_BYTES as usize], [0; 8]);
    file.seek(SeekFrom::Start(trailer_at))?;
    file.read_exact(&mut trailer)?;
    let at = u64_at(&trailer, 22).unwrap_or(u64::MAX);
    let room = trailer_at.checked_sub(at).and_then(|room| room.checked_sub(8));
    let Some(room) = room.filter(|_| trailer.starts_with(TRAILER_MAGIC)) else { return Ok(Ok(())) };
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut contents)?;
    let entries = u32_at(&contents, 4).unwrap_or_default();
    if contents.starts_with(CONTENTS_MAGIC) && u64::from(entries) > room / ENTRY_BYTES_MIN {
        let why = format!("{entries} entries of its table of contents in {room} bytes");
        return Ok(Err(damaged(&why)));
    }
    Ok(Ok(()))
}

/// Hold the lengths of values in a journal against the longest that there is.
fn check_journal(path: &Path) -> io::Result<Result<()>> {
    let mut journal = BufReader::new(File::open(path)?);
    loop {
        // Behind a kind: of the begin of a batch its number and count; of a value its kind 1, compression 1,
        // keyspace 8, the lengths of the key 2, the value 4 and its bytes here 4; of an end the checksum and
        // magic; of a keyspace that is emptied its number.
        let Some([kind]) = next(&mut journal)? else { return Ok(Ok(())) };
        let read = match kind {
            1 | 3 => next::<12>(&mut journal)?.map(|_| ()),
            4 => next::<8>(&mut journal)?.map(|_| ()),
            2 => {
                let Some(head) = next::<20>(&mut journal)? else { return Ok(Ok(())) };
                let [.., k0, k1, _, _, _, _, _, _, _, _] = head;
                let lengths = [12, 16].map(|at| u32_at(&head, at).unwrap_or_default());
                if let Some(len) = lengths.into_iter().find(|&len| len > VALUE_BYTES_MAX) {
                    let why = format!("a value of {len} bytes, limit {VALUE_BYTES_MAX}");
                    return Ok(Err(damaged(&why)));
                }
                let [_, here] = lengths;
                journal.seek_relative((u32::from(u16::from_le_bytes([k0, k1])) + here).into())?;
                Some(())
            }
            _ => None,
        };
        if read.is_none() {
            return Ok(Ok(()));
        }
    }
}

/// The next bytes; `None` at the end, also within them.
fn next<const N: usize>(reader: &mut impl Read) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    match reader.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
