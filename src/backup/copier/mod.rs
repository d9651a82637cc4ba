//! Copying the files of a log: a file that grows is continued, a small file is replaced whole.
//!
//! A file's final name shows that the file is whole: the copier writes a new file under
//! `.NAME.new`, syncs, then renames. Only a growing file is written in place, after the durable
//! bytes there.

pub mod growing;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::source::{is_dir, is_file, read_small, sorted_names, unusable};
use super::target::Target;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::slice::{part, part_mut};
use crate::sidecar::{PRIVATE_MODE, SIDECAR_NAME};
use crate::storage::segmented::remove;
use crate::storage::{Access, File, Storage, above, read_full, write_full};

/// The number of tries, if a log changes under the copy.
const ATTEMPTS: u32 = 50;
const PIECE_BYTES: u64 = 4 << 20;
/// The ending of the name under which a whole file is written first.
const NEW: &str = ".new";

/// Why a copy ends early.
#[derive(Debug)]
pub enum Stop {
    /// The log became another one meanwhile, and why: the copy begins once more.
    Changed(String),
    /// It failed.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The result of a step of a copy.
pub type Step<T> = std::result::Result<T, Stop>;

/// The records of a backup.
#[derive(Clone, Copy, Debug, Default)]
pub struct Copied {
    /// Positions of the first and the last record.
    pub bounds: Option<(u64, u64)>,
    /// Records that were copied and read back; `None` where the whole backup was read.
    pub new_records: Option<u64>,
    /// Bytes up to the end of the last record.
    pub total_bytes: u64,
}

/// Copy again while the log changes under the copy.
pub fn once_more<T>(log: &Path, less: &str, mut copy: impl FnMut() -> Step<T>) -> Result<T> {
    let mut why = String::new();
    for _ in 0..ATTEMPTS {
        match copy() {
            Ok(copied) => return Ok(copied),
            Err(Stop::Failed(error)) => return Err(error),
            Err(Stop::Changed(changed)) => why = changed,
        }
    }
    let message = format!(
        "{} changed under the backup {ATTEMPTS} times, the last time because {why}: do it again when less is {less}",
        log.display()
    );
    Err(Error::new(ErrorKind::InvalidArgument, message))
}

/// Brings the files of a backup to the state of the log, and counts written files and bytes.
pub struct Copier<'a> {
    pub storage: &'a dyn Storage,
    pub target: &'a Target<'a>,
    /// Written files.
    pub files: u64,
    /// Written bytes.
    pub bytes: u64,
    progress: &'a mut dyn FnMut(u64) -> Result<()>,
    read: u64,
    /// Directories whose names are not synced.
    unsynced: BTreeSet<PathBuf>,
    /// Files written in place, and how many of their bytes were durable before.
    touched: BTreeMap<PathBuf, u64>,
    /// Bytes that were written since the last note.
    unnoted: u64,
}

impl<'a> Copier<'a> {
    pub fn new(target: &'a Target<'a>, progress: &'a mut dyn FnMut(u64) -> Result<()>) -> Self {
        let (unsynced, touched) = (BTreeSet::new(), BTreeMap::new());
        let (storage, files, bytes, read, unnoted) = (target.storage, 0, 0, 0, 0);
        Self { storage, target, files, bytes, progress, read, unsynced, touched, unnoted }
    }

    /// Report the copy's progress; an error ends the copy.
    pub fn tell(&mut self) -> Result<()> {
        (self.progress)(self.read)
    }

    /// Write the bytes of a small file; `None` removes the file. After a crash, the file is the old
    /// or the new file.
    pub fn whole(&mut self, source: &Path, target: &Path, bytes: Option<&[u8]>) -> Step<()> {
        let there = read_small(self.storage, target)?;
        match bytes {
            None if there.is_some() => self.remove(target)?,
            Some(bytes) if there.as_deref() != Some(bytes) => {
                let new = name_aside(target);
                let file = self.create(&new, source)?;
                write_full(&*file, bytes, 0).map_err(|e| Error::io("write the copy", &new, e))?;
                self.bytes += bytes.len() as u64;
                self.done(&*file, &new)?;
                self.give_name(&new, target)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Copy a file to `.NAME.new`, up to its present end; returns the new path. `None` if the
    /// target has the same bytes.
    pub fn stage(&mut self, source: &Path, target: &Path) -> Step<Option<PathBuf>> {
        if self.is_file(target)? && self.same(source, target)? {
            return Ok(None);
        }
        self.stage_to(source, target, u64::MAX).map(Some)
    }

    /// Copy the bytes of a file before byte `end` to `.NAME.new`; returns that path.
    pub fn stage_to(&mut self, source: &Path, target: &Path, end: u64) -> Step<PathBuf> {
        let read = open_source(self.storage, source)?;
        let new = name_aside(target);
        let written = self.create(&new, source)?;
        let (mut at, mut block) = (0, Vec::new());
        loop {
            let bytes = self.piece(&*read, at, end, &mut block, source)?;
            if bytes == 0 {
                break;
            }
            self.write(&*written, part(&block, ..bytes), at, &new)?;
            at += bytes as u64;
        }
        self.done(&*written, &new)?;
        Ok(new)
    }

    /// Copy a file that is written once.
    pub fn once(&mut self, source: &Path, target: &Path) -> Step<()> {
        match self.stage(source, target)? {
            Some(new) => self.give_name(&new, target),
            None => Ok(()),
        }
    }

    /// Give a staged file its name.
    pub fn give_name(&mut self, new: &Path, target: &Path) -> Step<()> {
        self.target.begin()?;
        self.storage.rename(new, target).map_err(|e| Error::io("name the copy", target, e))?;
        self.unsynced.insert(above(target).to_path_buf());
        Ok(())
    }

    /// Write some bytes in place, durably, if others are there, or if an interrupted copy left them.
    pub fn overwrite(&mut self, target: &Path, at: u64, bytes: &[u8]) -> Step<()> {
        let fail = |e| Error::io("write the copy", target, e);
        let file = self
            .storage
            .open(target, Access::Write)
            .map_err(|e| unusable("open the copy", target, e))?;
        let mut there = vec![0; bytes.len()];
        let read = read_full(&*file, &mut there, at).map_err(fail)?;
        let is_same = part(&there, ..read) == bytes;
        if is_same && !self.target.was_interrupted() {
            return Ok(());
        }
        self.target.begin()?;
        write_full(&*file, bytes, at).map_err(fail)?;
        file.sync_data().map_err(fail)?;
        if !is_same {
            (self.files, self.bytes) = (self.files + 1, self.bytes + bytes.len() as u64);
        }
        Ok(())
    }

    /// Remove a file that the log has no more.
    pub fn remove(&mut self, target: &Path) -> Step<()> {
        self.target.begin()?;
        remove(self.storage, target).map_err(|e| Error::io("remove from the backup", target, e))?;
        self.unsynced.insert(above(target).to_path_buf());
        Ok(())
    }

    /// Remove new files of an interrupted copy from a directory. `is_ours` chooses by name.
    pub fn sweep(&mut self, dir: &Path, is_ours: impl Fn(&str) -> bool) -> Step<()> {
        for name in sorted_names(self.storage, dir)? {
            let of = name.strip_prefix('.').and_then(|name| name.strip_suffix(NEW));
            if of.is_some_and(&is_ours) {
                self.remove(&dir.join(name))?;
            }
        }
        Ok(())
    }

    /// Sync the names of all files.
    pub fn sync_names(&mut self) -> Step<()> {
        for dir in std::mem::take(&mut self.unsynced) {
            self.storage.sync_dir(&dir).map_err(|e| Error::io("sync the directory", &dir, e))?;
        }
        Ok(())
    }

    /// Make a directory of the backup if missing, and the directories above.
    pub fn make_dir(&mut self, dir: &Path) -> Step<()> {
        if is_dir(self.storage, dir)? {
            return Ok(());
        }
        self.make_dir(above(dir))?;
        self.target.begin()?;
        let is_private = dir.components().any(|part| part.as_os_str() == SIDECAR_NAME);
        let made = self.storage.create_dir_as(dir, if is_private { 0o700 } else { 0o777 });
        made.map_err(|e| Error::io("create the directory", dir, e))?;
        self.unsynced.insert(above(dir).to_path_buf());
        Ok(())
    }

    /// Whether a file is there; anything else in its place is an error.
    pub fn is_file(&self, path: &Path) -> Step<bool> {
        is_file(self.storage, path).map_err(Stop::Failed)
    }

    /// Whether two files have the same bytes now.
    pub fn same(&mut self, source: &Path, target: &Path) -> Step<bool> {
        let one = open_source(self.storage, source)?;
        let other = self
            .storage
            .open(target, Access::Read)
            .map_err(|e| unusable("open the copy", target, e))?;
        let lens = one.len().and_then(|len| Ok((len, other.len()?)));
        let (len, there) = lens.map_err(|e| Error::io("compare the copy", target, e))?;
        if len != there {
            return Ok(false);
        }
        let mut at = 0;
        while at < len {
            let to = len.min(at + PIECE_BYTES);
            if !same_part(&*one, &*other, at, to, source)? {
                return Ok(false);
            }
            self.tell()?;
            at = to;
        }
        Ok(true)
    }

    fn piece(
        &mut self,
        read: &dyn File,
        at: u64,
        end: u64,
        block: &mut Vec<u8>,
        source: &Path,
    ) -> Step<usize> {
        block.resize((end - at).min(PIECE_BYTES).min(self.target.noted_every) as usize, 0);
        let bytes = read_full(read, block, at).map_err(|e| Error::io("read the log", source, e))?;
        self.read += bytes as u64;
        Ok(bytes)
    }

    fn write(&mut self, written: &dyn File, bytes: &[u8], at: u64, target: &Path) -> Step<()> {
        write_full(written, bytes, at).map_err(|e| Error::io("write the copy", target, e))?;
        self.bytes += bytes.len() as u64;
        self.unnoted += bytes.len() as u64;
        self.tell()?;
        Ok(())
    }

    fn done(&mut self, written: &dyn File, target: &Path) -> Step<()> {
        written.sync_data().map_err(|e| Error::io("sync the copy", target, e))?;
        self.files += 1;
        self.unsynced.insert(above(target).to_path_buf());
        Ok(())
    }

    /// Create a file with the permissions of the log's file. The owner may also write, because the
    /// next backup does.
    fn create(&mut self, path: &Path, source: &Path) -> Step<Box<dyn File>> {
        self.target.begin()?;
        self.make_dir(above(path))?;
        let fail = |e| Error::io("create the copy", path, e);
        remove(self.storage, path).map_err(fail)?;
        let file = self.storage.create_new(path, PRIVATE_MODE).map_err(fail)?;
        // If the source is gone, or the disk keeps no permissions, the file stays its owner's.
        if let Ok(Some(mode)) = self.storage.mode(source) {
            let _ = self.storage.set_mode(path, mode & 0o777 | PRIVATE_MODE);
        }
        self.unsynced.insert(above(path).to_path_buf());
        Ok(file)
    }
}

/// The name of a file under construction: no log has a file with such a name.
fn name_aside(target: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(NEW);
    target.with_file_name(name)
}

/// Open a file of the log. A missing file was dropped, or sent.
pub fn open_source(storage: &dyn Storage, path: &Path) -> Step<Box<dyn File>> {
    match storage.open(path, Access::Read) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            Err(Stop::Changed(format!("{} is gone", path.display())))
        }
        opened => Ok(opened.map_err(|e| unusable("open the log", path, e))?),
    }
}

/// Whether two files have the same bytes from one byte to another.
fn same_part(one: &dyn File, other: &dyn File, from: u64, to: u64, path: &Path) -> Result<bool> {
    let fail = |e| Error::io("compare the copy", path, e);
    let (mut here, mut there) = (vec![0; (to - from) as usize], vec![0; (to - from) as usize]);
    let ours = read_full(one, part_mut(&mut here, ..), from).map_err(fail)?;
    let theirs = read_full(other, part_mut(&mut there, ..), from).map_err(fail)?;
    Ok(part(&here, ..ours) == part(&there, ..theirs))
}
