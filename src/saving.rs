//! Steps to settle the end of a log: save the cut bytes, write a tail again, make names durable.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::ground::slice::{part, part_mut};
use crate::storage::{File, Storage, above, end_of_data, read_full, sync_dir, write_full};

const COPY_BYTES: usize = 1 << 20;
const PAGE_BYTES: u64 = 4096;

/// Unix permissions of a directory for files with `file_mode`: a user that may read the files may
/// list them.
fn dir_mode(file_mode: u32) -> u32 {
    0o700 | file_mode | ((file_mode & 0o444) >> 2)
}

/// Create a directory, durably, if missing; its files get `file_mode`.
pub fn make_dir(storage: &dyn Storage, dir: &Path, file_mode: u32) -> Result<()> {
    if storage.is_dir(dir) {
        return Ok(());
    }
    let made = storage.create_dir_as(dir, dir_mode(file_mode));
    made.map_err(|e| Error::io("create the directory", dir, e))?;
    sync_dir(storage, above(dir))
}

/// Create a directory, or make the name of an existing directory durable. A killed run may have made the directory
/// without a sync.
pub fn ensure_dir(storage: &dyn Storage, dir: &Path, file_mode: u32) -> Result<()> {
    match storage.is_dir(dir) {
        true => sync_above(storage, dir),
        false => make_dir(storage, dir, file_mode),
    }
}

/// Refuse a symbolic link in place of a directory below a log: files outside would be listed, removed
/// and written. Only the log's own directory may be reached through one.
pub fn refuse_link(storage: &dyn Storage, dir: &Path) -> Result<()> {
    if !storage.is_link(dir) {
        return Ok(());
    }
    let message = "this is a symbolic link and must be a directory: nothing is written through it";
    Err(Error::new(ErrorKind::NotALog, message).at(dir))
}

/// Create a directory below a log, durably, if it is not there.
pub fn make_own_dir(storage: &dyn Storage, dir: &Path, file_mode: u32) -> Result<()> {
    refuse_link(storage, dir)?;
    make_dir(storage, dir, file_mode)
}

/// Make the names of log, sidecar and directory durable. A writer that crashed between a creation
/// and the sync of the directory leaves names only in the cache, and nobody else would sync them.
pub fn sync_names(storage: &dyn Storage, sidecar: &Path, dir: &Path) -> Result<()> {
    for dir in [sidecar, dir] {
        sync_dir(storage, dir)?;
    }
    sync_above(storage, dir)
}

/// Make the name of a directory durable.
pub fn sync_above(storage: &dyn Storage, dir: &Path) -> Result<()> {
    let above = above(dir);
    match storage.sync_dir(above) {
        // The directory may belong to another user. If we made a directory there, we may read it.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced.map_err(|e| Error::io("sync the directory", above, e)),
    }
}

/// Write a stretch of a file again, unchanged, so that the next sync writes the stretch to the
/// disk.
pub fn rewrite(file: &dyn File, from: u64, to: u64) -> io::Result<()> {
    let mut block = vec![0; (to - from).min(COPY_BYTES as u64) as usize];
    let mut at = from;
    while at < to {
        let want = (to - at).min(block.len() as u64) as usize;
        let target = part_mut(&mut block, ..want);
        let read = read_full(file, target, at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        write_full(file, part(target, ..read), at)?;
        at += read as u64;
    }
    Ok(())
}

/// Copy the bytes of `file` from `from` on to a new file `BASE.cut-FROM`, durably, but not whole
/// pages of zeros at the end: these were reserved and never written. `None` if there are only
/// zeros.
pub fn save_tail(
    storage: &dyn Storage,
    file: &dyn File,
    base: &Path,
    mode: u32,
    from: u64,
) -> Result<Option<PathBuf>> {
    let end = file.len().map_err(|e| Error::io("look at the log", base, e))?;
    save_part(storage, file, base, mode, from..end)
}

/// Save a part of the file, like [`save_tail`].
pub fn save_part(
    storage: &dyn Storage,
    file: &dyn File,
    base: &Path,
    mode: u32,
    Range { start: from, end }: Range<u64>,
) -> Result<Option<PathBuf>> {
    let fail = |doing: &str, path: &Path, e: io::Error| Error::io(doing, path, e);
    let data = end_of_data(file, from, end).map_err(|e| fail("read the log", base, e))?;
    if data == from {
        return Ok(None);
    }
    let end = end.min(data.next_multiple_of(PAGE_BYTES));
    let name = base.file_name().unwrap_or_default().to_string_lossy();
    let mut path = base.with_file_name(format!("{name}.cut-{from}"));
    let mut tries = 1;
    let copy = loop {
        match storage.create_new(&path, mode) {
            Ok(copy) => break copy,
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && tries < 1000 => {
                tries += 1;
                path.set_file_name(format!("{name}.cut-{from}.{tries}"));
            }
            Err(e) => return Err(fail("save the tail", &path, e)),
        }
    };
    let mut block = vec![0; COPY_BYTES];
    let mut at = from;
    while at < end {
        let want = (end - at).min(COPY_BYTES as u64) as usize;
        let target = part_mut(&mut block, ..want);
        let read = read_full(file, target, at).map_err(|e| fail("read the log", base, e))?;
        let there = part(target, ..read);
        if there.is_empty() {
            if at < data {
                // Somebody cut the file meanwhile: the copy would lack bytes that the caller is
                // about to remove.
                return Err(fail("read the log", base, io::ErrorKind::UnexpectedEof.into()));
            }
            break;
        }
        write_full(&*copy, there, at - from).map_err(|e| fail("save the tail", &path, e))?;
        at += there.len() as u64;
    }
    copy.sync_data().map_err(|e| fail("save the tail", &path, e))?;
    storage.sync_dir(above(&path)).map_err(|e| fail("save the tail", &path, e))?;
    Ok(Some(path))
}
