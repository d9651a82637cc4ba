//! Whether an index was made at this place by this user.
//!
//! fjall takes lengths from its files and asks for so much memory, so bytes that somebody chose can end the
//! process, whatever their checksums. The index is derived: one that came from elsewhere, in an archive or a
//! copy, is not opened but made again. A file in its directory tells: it holds its own inode number and
//! time of creation. The system gives both, and nobody who sends files knows them before. The file belongs to
//! the user: another one of the machine could read them there.

use std::path::Path;

use super::table::damaged;
use crate::error::{Error, ErrorKind, Result};
use crate::nostr::FORMAT;
use crate::sidecar::PRIVATE_MODE;
use crate::sidecar::sealed::{load_sealed, seal};
use crate::storage::{Access, Disk, FileId, Storage, is_own, write_full};

const MADE_NAME: &str = "made-here";

/// Refuse files of an index that were made elsewhere; note in an empty directory that one is made here.
pub fn check_or_note(dir: &Path) -> Result<()> {
    let fail = |e| Error::io("look at the index", dir, e).of(FORMAT);
    if Disk.list(dir).map_err(fail)?.is_empty() {
        return note(&dir.join(MADE_NAME)).map_err(fail);
    }
    match is_made_here(&dir.join(MADE_NAME))? {
        true => Ok(()),
        false => Err(damaged("it was made at another place, or by another user").at(dir)),
    }
}

fn note(path: &Path) -> std::io::Result<()> {
    let file = Disk.create_new(path, PRIVATE_MODE)?;
    write_full(&*file, seal(&lines(file.id()?)).as_bytes(), 0)
}

fn is_made_here(path: &Path) -> Result<bool> {
    let fail = |e| Error::io("look at the index", path, e).of(FORMAT);
    let noted = match load_sealed(&Disk, path, "the note of an index") {
        Err(error) if error.kind() == ErrorKind::Corrupt => None,
        noted => noted.map_err(|e| e.of(FORMAT))?,
    };
    let Some(noted) = noted else { return Ok(false) };
    let file = Disk.open(path, Access::Read).map_err(fail)?;
    Ok(noted == lines(file.id().map_err(fail)?) && is_own(path).map_err(fail)?)
}

/// Not the device: it may have another number after a start of the system. Where the file system knows no
/// time of creation, the inode alone has to tell.
fn lines(id: FileId) -> String {
    format!("inode {}\ncreated {}\n", id.inode, id.created_ns)
}
