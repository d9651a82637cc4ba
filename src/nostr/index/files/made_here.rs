//! Detect index files made elsewhere, or by another user.
//!
//! fjall allocates memory by the lengths in its files, so foreign bytes can end the process,
//! whatever their checksums. An index is derived data. The store rebuilds an index from elsewhere,
//! for example from an archive or a copy. The file `made-here` in the index holds its own inode
//! number and time of creation. Linux chooses both, so a sender of files cannot know them in
//! advance. The file must belong to the user, because another user of the machine could look the
//! numbers up.

use std::path::Path;

use super::damaged;
use crate::error::{Error, ErrorKind, Result};
use crate::nostr::bytes::format::FORMAT;
use crate::sidecar::{Note, PRIVATE_MODE, with_sum};
use crate::storage::{Access, Disk, FileId, Storage, is_own, write_full};

pub const MADE_NAME: &str = "made-here";

/// Refuse index files made elsewhere; mark an empty directory as made here.
pub fn check_or_note(dir: &Path) -> Result<()> {
    let fail = |e| Error::io("look at the index", dir, e).of(FORMAT);
    if Disk.list(dir).map_err(fail)?.is_empty() {
        return note(dir).map_err(fail);
    }
    match is_made_here(&dir.join(MADE_NAME))? {
        true => Ok(()),
        false => Err(damaged("it was made at another place, or by another user").at(dir)),
    }
}

/// Mark a directory as made here.
pub fn note(dir: &Path) -> std::io::Result<()> {
    let file = Disk.create_new(&dir.join(MADE_NAME), PRIVATE_MODE)?;
    write_full(&*file, with_sum(&lines(file.id()?)).as_bytes(), 0)
}

/// Whether this user made the note of an index, on this machine.
pub fn is_made_here(path: &Path) -> Result<bool> {
    let fail = |e| Error::io("look at the index", path, e).of(FORMAT);
    let note = Note { storage: &Disk, path: path.to_owned(), what: "the note of an index" };
    let noted = match note.load() {
        Err(error) if error.kind() == ErrorKind::Corrupt => None,
        noted => noted.map_err(|e| e.of(FORMAT))?,
    };
    let Some(noted) = noted else { return Ok(false) };
    let file = Disk.open(path, Access::Read).map_err(fail)?;
    Ok(noted == lines(file.id().map_err(fail)?) && is_own(path).map_err(fail)?)
}

/// Without the device, whose number may change when the system starts. On a file system without times of creation,
/// only the inode number protects.
fn lines(id: FileId) -> String {
    format!("inode {}\ncreated {}\n", id.inode, id.created_ns)
}
