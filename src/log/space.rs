//! The place of a log: its paths, and its bytes as one space.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::sidecar::{LoadedMark, Mark, MarkFile, refuse_linked, sidecar_dir};
use crate::storage::segmented::Segmented;
use crate::storage::segmented::head::Head;
use crate::storage::{Access, Closable, File, Storage, above, replace};

/// The paths of a log.
#[derive(Clone, Debug)]
pub struct Place {
    /// The directory that holds the log's files.
    pub dir: PathBuf,
    /// The log's single file, or its directory.
    pub log: PathBuf,
    /// `.deedbook`. A file that shares its directory with other logs has a directory in
    /// `.deedbook`.
    pub sidecar: PathBuf,
    /// Whether the log is one file.
    pub single: bool,
    /// The name of the files for saved cuts, less `.cut-BYTE`.
    pub saved: PathBuf,
    /// Whether the log is a saved tail: read only, without a header.
    pub is_tail: bool,
    /// The size of a segment, as a part of the log says it: counts where neither the caller nor the settings do.
    pub segment_bytes: Option<u64>,
}

impl Place {
    /// A file alone in its directory.
    pub fn file_in(dir: &Path, name: &str) -> Self {
        let log = dir.join(name);
        let (dir, sidecar, saved) = (dir.to_path_buf(), sidecar_dir(dir), log.clone());
        Self { dir, log, sidecar, single: true, saved, is_tail: false, segment_bytes: None }
    }

    /// A file among others.
    pub fn file(log: &Path) -> Self {
        let (dir, saved) = (above(log).to_path_buf(), log.to_path_buf());
        let sidecar = sidecar_dir(&dir).join(log.file_name().unwrap_or_default());
        Self {
            dir,
            log: saved.clone(),
            sidecar,
            single: true,
            saved,
            is_tail: false,
            segment_bytes: None,
        }
    }

    /// A directory of files.
    pub fn directory(dir: &Path) -> Self {
        let (log, sidecar, saved) = (dir.to_path_buf(), sidecar_dir(dir), dir.join("log"));
        Self {
            dir: log.clone(),
            log,
            sidecar,
            single: false,
            saved,
            is_tail: false,
            segment_bytes: None,
        }
    }

    /// Whether the log is a file among others.
    pub fn shares_dir(&self) -> bool {
        self.single && above(&self.sidecar) != self.dir
    }

    /// The path that a writer locks besides the sidecar: logs in a single file share a directory.
    pub(super) fn locked(&self) -> &Path {
        if self.single {
            seeded!(&self.log, "log-file-unlocked" => &self.sidecar)
        } else {
            &self.dir
        }
    }

    /// The log's mark, and whether an unreadable mark exists. A saved tail has no mark.
    pub fn load_mark(&self, storage: &dyn Storage) -> Result<(Option<Mark>, bool)> {
        if self.is_tail {
            return Ok((None, false));
        }
        refuse_linked(storage, &self.sidecar)?;
        let loaded = MarkFile::load(storage, &self.sidecar);
        Ok(match loaded.map_err(|e| Error::io("read the mark", &self.log, e))? {
            LoadedMark::Mark(mark) => (Some(mark), false),
            LoadedMark::Missing => (None, false),
            LoadedMark::Damaged => (None, true),
        })
    }

    /// Refuse to write to a saved tail.
    pub fn refuse_tail(&self) -> Result<()> {
        if !self.is_tail {
            return Ok(());
        }
        let message = "this is a saved tail, which can only be read and salvaged";
        Err(Error::new(ErrorKind::ReadOnly, message).at(&self.log))
    }

    /// Open the log's single file; a directory in its place is no log.
    pub fn open(&self, storage: &dyn Storage, access: Access) -> Result<Arc<dyn File>> {
        match storage.open(&self.log, access) {
            Ok(file) => Ok(Arc::from(file)),
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                Err(Error::new(ErrorKind::NotALog, e.to_string()).at(&self.log))
            }
            Err(e) => Err(Error::io("open the log", &self.log, e)),
        }
    }

    /// Create the log's single file with these bytes, whole or not at all.
    pub fn create(&self, storage: &dyn Storage, bytes: &[u8], mode: u32) -> Result<()> {
        replace(storage, &self.log, bytes, mode)
            .map_err(|e| Error::io("create the log", &self.log, e))
    }

    /// A tail that an opening or a repair saved.
    pub fn tail(path: &Path) -> Self {
        Self { is_tail: true, ..Self::file(path) }
    }
}

/// Whether a file's name is a saved tail's, `BASE.cut-BYTE` or `BASE.cut-BYTE.N`; returns the base.
pub fn base_of_tail(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    let (base, rest) = name.rsplit_once(".cut-")?;
    let numbers = rest.split('.').count() <= 2;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (numbers && rest.split('.').all(digits)).then_some(base)
}

/// The files of a log.
#[derive(Clone, Debug)]
pub enum Files {
    /// One.
    One,
    /// One after another.
    Segments(Arc<Segmented>),
}

impl Files {
    /// The segments, if these are some.
    pub fn segments(&self) -> Option<&Arc<Segmented>> {
        match self {
            Self::One => None,
            Self::Segments(segments) => Some(segments),
        }
    }

    /// Make durable whatever lies from byte `offset` of `file` on, written by any program.
    pub(super) fn sync_from(&self, file: &dyn File, offset: u64) -> io::Result<()> {
        match self {
            Self::One => file.sync_data(),
            Self::Segments(segments) => segments.sync_from(offset),
        }
    }

    /// Whether files lie after a gap, which a cut removes.
    pub(super) fn has_orphans(&self) -> bool {
        self.segments().is_some_and(|segments| segments.has_orphans())
    }

    /// The log's first byte by the present files, if movable.
    pub(super) fn head(&self) -> Result<Option<u64>> {
        Ok(match self.segments().map(|segments| segments.head()).transpose()? {
            Some(Head::At(head)) => Some(head),
            _ => None,
        })
    }
}

/// The bytes of a log, whatever files they lie in.
#[derive(Clone, Debug)]
pub struct Space {
    /// The bytes of the log.
    pub file: Arc<dyn File>,
    /// The files of the bytes.
    pub files: Files,
    /// The head is known from the mark alone: an opening for writing stores it again.
    pub head_is_lost: bool,
    /// Byte at which the first record begins.
    pub start: u64,
    /// Byte after the log's last byte.
    pub end: u64,
    /// Byte after the files' last byte: an unfinished cut leaves more bytes than the log has.
    pub files_end: u64,
    /// Why the files after `end` do not count, if there are any.
    pub gap: Option<String>,
    /// The bytes, and those after a gap; gaps read as zeros.
    pub beyond: Option<Beyond>,
    /// Space is reserved at most so far ahead.
    pub piece_bytes: Option<u64>,
}

/// The bytes after a gap between files, for reading past damage.
#[derive(Clone, Debug)]
pub struct Beyond {
    /// All bytes; gaps read as zeros.
    pub file: Arc<dyn File>,
    /// Byte after the last byte.
    pub end: u64,
}

impl Beyond {
    /// The same bytes through a closable file. `open` gets the file.
    pub(super) fn closable(self, open: &mut Vec<Arc<Closable>>) -> Self {
        let file = Arc::new(Closable::new(self.file));
        open.push(file.clone());
        Self { file, ..self }
    }
}

impl Space {
    /// One file from byte `start` to `end`.
    pub fn new(file: Arc<dyn File>, start: u64, end: u64) -> Self {
        Self {
            file,
            files: Files::One,
            head_is_lost: false,
            start,
            end,
            files_end: end,
            gap: None,
            beyond: None,
            piece_bytes: None,
        }
    }

    /// The bytes for reading past damage, and the byte after the last one.
    pub fn whole(&self) -> (&Arc<dyn File>, u64) {
        match &self.beyond {
            Some(beyond) => (&beyond.file, beyond.end),
            None => (&self.file, self.end),
        }
    }
}
