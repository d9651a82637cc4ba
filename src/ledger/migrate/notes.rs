//! How far each file that is still there was migrated: `.deedbook/migrated`, text with a checksum.
//!
//! ```text
//! file INODE BORN END CRC        (CRC-32 of the first END bytes)
//! crc 1a2b3c4d                   (CRC-32 of the lines above)
//! ```

use std::path::{Path, PathBuf};

use super::old::unreadable;
use crate::checksum::{crc32, crc32_more};
use crate::error::{Error, Result};
use crate::lines;
use crate::sidecar::{is_absence, read_small};
use crate::slice::part_mut;
use crate::storage::{Access, File, FileId, Storage, read_full, replace};

const NAME: &str = "migrated";
const PIECE_BYTES: usize = 64 << 10;

/// Of one file: its first bytes, whose events are in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Note {
    inode: u64,
    born_ns: u64,
    end: u64,
    crc: u32,
}

/// The notes of a ledger. Without one, a file is migrated again, and nothing is lost.
#[derive(Debug)]
pub struct Notes {
    path: PathBuf,
    notes: Vec<Note>,
}

impl Notes {
    pub fn load(storage: &dyn Storage, sidecar: &Path) -> Result<Self> {
        let path = sidecar.join(NAME);
        let fail = |e| Error::io("read what was migrated", &path, e);
        let text = match storage.open(&path, Access::Read) {
            Ok(file) => read_small(&*file, &path, "the note of what was migrated")?,
            Err(e) if is_absence(&e) => return Ok(Self { path, notes: Vec::new() }),
            Err(e) => return Err(fail(e)),
        };
        let notes = std::str::from_utf8(&text).ok().and_then(decode);
        if notes.is_none() {
            lines::warn(format_args!("the notes of a migration are damaged ({})", path.display()));
        }
        Ok(Self { path, notes: notes.unwrap_or_default() })
    }

    /// The byte up to which the events of this very file are in the ledger already.
    pub fn end_of(&self, file: &dyn File, id: FileId, path: &Path) -> Result<u64> {
        let Some(note) = self.notes.iter().find(|note| note.is_of(id)) else { return Ok(0) };
        let crc = crc_of(file, note.end, path)?;
        Ok(if crc == Some(note.crc) { note.end } else { 0 })
    }

    /// Note that they are, durably. A file whose birth is unknown may be another one later, with the
    /// same inode and the same bytes: of such nothing is noted.
    pub fn keep(
        &mut self,
        storage: &dyn Storage,
        file: &dyn File,
        id: FileId,
        end: u64,
        path: &Path,
    ) -> Result<()> {
        self.notes.retain(|note| !note.is_of(id));
        if let Some(crc) = crc_of(file, end, path)?.filter(|_| id.created_ns != 0) {
            self.notes.push(Note { inode: id.inode, born_ns: id.created_ns, end, crc });
        }
        self.store(storage)
    }

    /// The file is gone.
    pub fn forget(&mut self, storage: &dyn Storage, id: FileId) -> Result<()> {
        let before = self.notes.len();
        self.notes.retain(|note| !note.is_of(id));
        if self.notes.len() == before { Ok(()) } else { self.store(storage) }
    }

    fn store(&self, storage: &dyn Storage) -> Result<()> {
        replace(storage, &self.path, encode(&self.notes).as_bytes(), 0o600)
            .map_err(|e| Error::io("note what was migrated", &self.path, e))
    }
}

impl Note {
    fn is_of(&self, id: FileId) -> bool {
        (self.inode, self.born_ns) == (id.inode, id.created_ns)
    }
}

fn encode(notes: &[Note]) -> String {
    let line = |note: &Note| {
        let Note { inode, born_ns, end, crc } = note;
        format!("file {inode} {born_ns} {end} {crc:08x}\n")
    };
    let text: String = notes.iter().map(line).collect();
    let crc = crc32(text.as_bytes());
    text + &format!("crc {crc:08x}\n")
}

fn decode(text: &str) -> Option<Vec<Note>> {
    let notes: Vec<_> = text.lines().filter_map(note).collect();
    (encode(&notes) == text).then_some(notes)
}

fn note(line: &str) -> Option<Note> {
    let mut words = line.strip_prefix("file ")?.split(' ');
    let mut number = || words.next()?.parse().ok();
    let (inode, born_ns, end) = (number()?, number()?, number()?);
    let crc = u32::from_str_radix(words.next()?, 16).ok()?;
    Some(Note { inode, born_ns, end, crc })
}

/// CRC-32 of the first bytes; `None` if there are fewer.
fn crc_of(file: &dyn File, end: u64, path: &Path) -> Result<Option<u32>> {
    let (mut piece, mut at, mut crc) = (vec![0; PIECE_BYTES], 0, 0);
    while at < end {
        let wanted = (end - at).min(PIECE_BYTES as u64) as usize;
        let there = part_mut(&mut piece, ..wanted);
        let read = read_full(file, there, at).map_err(|e| unreadable(path, e))?;
        if read < wanted {
            return Ok(None);
        }
        crc = crc32_more(crc, there);
        at += wanted as u64;
    }
    Ok(Some(crc))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_back_and_damage_is_seen() {
        let note = |inode| Note { inode, born_ns: 17, end: 1 << 40, crc: 0xABC };
        for notes in [vec![], vec![note(1)], vec![note(1), note(u64::MAX)]] {
            let text = encode(&notes);
            assert_eq!(decode(&text), Some(notes));
            for at in 0..text.len() {
                let mut damaged = text.clone().into_bytes();
                damaged[at] ^= 1;
                assert_eq!(decode(&String::from_utf8_lossy(&damaged)), None, "byte {at}");
            }
        }
    }

    #[test]
    fn a_note_is_of_no_later_file_with_the_same_inode() {
        let note = Note { inode: 7, born_ns: 40, end: 100, crc: 1 };
        let file = FileId { inode: 7, created_ns: 40, ..FileId::default() };
        assert!(note.is_of(file));
        assert!(!note.is_of(FileId { created_ns: 41, ..file }));
        assert!(!note.is_of(FileId { inode: 8, ..file }));
    }
}
