//! Finds the ledgers at a path, for readers that have only the path. Goes by the names of the files
//! and their content, because any program may use such names.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::{FileInfo, list};
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::codec::{FORMAT, file_parts};
use crate::ledger::directory::{Directory, counter};
use crate::ledger::format::LedgerFormat;
use crate::ledger::limits::kept_limit;
use crate::ledger::options::Options;
use crate::ledger::record::Record;
use crate::ledger::{Files, Iter};
use crate::log::Place;
use crate::mode::Depth;
use crate::scan::OnCorrupt;
use crate::sidecar::sidecar_dir;
use crate::storage::{Access, File, Storage, above, located};

/// The number of files of a base to search for a record, the oldest first.
const FILES_LOOKED_INTO: usize = 16;
/// The number of bytes to search in each file: a file is seldom longer than its cap and one record.
const BYTES_LOOKED_INTO: u64 = 4 << 20;

/// The files of a ledger, or one file, at the time of the look.
///
/// ```
/// use deedbook::ledger::{LedgerConfig, LedgerStore, Options};
///
/// # fn main() -> deedbook::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("spool");
/// let ledger = LedgerStore::new(LedgerConfig::lines(&path, "events"))?;
/// ledger.append(b"one")?;
/// ledger.append(b"two")?;
/// let mut payloads = Vec::new();
/// for record in &Options::new().contents(&path, None)? {
///     payloads.push(record?.payload);
/// }
/// assert_eq!(payloads, [b"one", b"two"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Contents {
    /// The directory, or the file, absolute.
    pub path: PathBuf,
    /// The ending of the files' names.
    pub base: String,
    /// The files, the oldest first, including files being written. A file that cannot be opened has 0 bytes here, and
    /// reading the file fails.
    pub files: Vec<FileInfo>,
    /// The options for reading.
    pub(in crate::ledger) options: Options,
}

impl PartialEq for Contents {
    fn eq(&self, other: &Self) -> bool {
        (&self.path, &self.base, &self.files) == (&other.path, &other.base, &other.files)
    }
}

impl Eq for Contents {}

/// The records of all files, the oldest first. A file that was sent meanwhile has none.
impl IntoIterator for &Contents {
    type Item = Result<Record>;
    type IntoIter = Iter;

    fn into_iter(self) -> Iter {
        Iter::new(self.cursor(OnCorrupt::Raise))
    }
}

impl Contents {
    /// The records of all files, the oldest first. Each file is opened in its turn. Damage is
    /// raised, or passed over within its file. A file that was sent meanwhile has no records.
    pub fn cursor(&self, on_corrupt: OnCorrupt) -> Files {
        let contents = self.clone();
        let begin = move |file: FileInfo| {
            let log = contents.open(&file).transpose()?;
            let cursor = log.and_then(|log| log.cursor(on_corrupt));
            Some(cursor.map(|cursor| (file.index.into(), cursor)))
        };
        Files::new(self.files.clone().into_iter().filter_map(begin))
    }

    /// The directory of the ledger, also of a single file.
    pub(in crate::ledger) fn directory(&self, options: &Options) -> Result<Directory> {
        let dir = if self.single().is_some() { above(&self.path) } else { &self.path };
        Directory::at(options, dir, &self.base)
    }

    /// The file, if the path names one.
    pub(super) fn single(&self) -> Option<u32> {
        self.files.iter().find(|file| file.path == self.path).map(|file| file.index)
    }

    /// The lowest index that the next file of the directory can get, by the files there were and by the
    /// counter of those that were sent before; `None` where neither says. No ledger has a lower one
    /// than before: it is another one, or its numbers began again.
    ///
    /// # Errors
    ///
    /// Fails if the files cannot be read; see [Errors](crate#errors).
    pub fn next_index(&self) -> Result<Option<u64>> {
        let storage = &*self.options.storage;
        let sidecar = match storage.is_dir(&self.path) {
            true => sidecar_dir(&self.path),
            false => sidecar_dir(&Place::file(&self.path).dir),
        };
        // Ignore a damaged counter here: a store opened for writing reports the damage.
        let counted = match counter::is_there(storage, &sidecar, &self.base) {
            true => counter::load(storage, &sidecar, &self.base).map_err(|e| e.of(FORMAT))?,
            false => 0,
        };
        let after_last = self.files.last().map_or(0, |file| u64::from(file.index) + 1);
        Ok(Some(counted.max(after_last)).filter(|&next| next > 0))
    }
}

impl Options {
    /// The ledger at a path: a directory, or one file of a ledger. In a directory, `base` names the ledger; without
    /// `base`, the directory must have just one ledger.
    ///
    /// # Errors
    ///
    /// Fails with [`Missing`](crate::ErrorKind::Missing) where there is no ledger,
    /// [`NotALog`](crate::ErrorKind::NotALog) for other files, and
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for several ledgers without a base; see
    /// [Errors](crate#errors).
    pub fn contents(&self, path: impl AsRef<Path>, base: Option<&str>) -> Result<Contents> {
        let storage = &*self.storage;
        let path = located(storage, path.as_ref())?;
        if storage.is_dir(&path) {
            let base = match base {
                Some(base) => base.into(),
                None => only_base(&path, self)?,
            };
            let files = list(&path, &base, self, |_| Ok(()))?;
            return Ok(Contents { path, base, files, options: self.clone() });
        }
        let refused = |kind, message: String| Err(Error::new(kind, message).of(FORMAT).at(&path));
        if let Err(e) = storage.open(&path, Access::Read)
            && e.kind() != io::ErrorKind::InvalidInput
        {
            return Err(Error::io("open the file", &path, e).of(FORMAT));
        }
        let Some((index, found)) = path.file_name().and_then(file_parts) else {
            return refused(
                ErrorKind::NotALog,
                "no file of a ledger: its name is not N-BASE".into(),
            );
        };
        if base.is_some_and(|base| base != found) {
            return refused(ErrorKind::InvalidArgument, format!("a file of the base {found:?}"));
        }
        let mut files = list(path.parent().unwrap_or(&path), found, self, |_| Ok(()))?;
        files.retain(|file| file.index == index);
        Ok(Contents { base: found.into(), files, path: path.clone(), options: self.clone() })
    }
}

fn only_base(path: &Path, options: &Options) -> Result<String> {
    let mut found = bases(path, options)?;
    let refused = |kind, message| Err(Error::new(kind, message).of(FORMAT).at(path));
    match (found.pop(), found.is_empty()) {
        (Some(base), true) => Ok(base),
        (Some(base), false) => {
            found.push(base);
            let message = format!("several ledgers, by the bases {}: say which", found.join(", "));
            refused(ErrorKind::InvalidArgument, message)
        }
        (None, _) => refused(ErrorKind::Missing, "no ledger: no file N-BASE holds a record".into()),
    }
}

/// The bases of the ledgers in a directory, in order; none if there is no such directory.
///
/// A file's name is no proof, and a file has no header. A ledger has a counter in `.deedbook/`, or a file with an
/// intact record. A file that cannot be read is an error only if no ledger is found.
///
/// # Errors
///
/// Fails if the files cannot be read; see [Errors](crate#errors).
pub fn bases(location: impl AsRef<Path>, options: &Options) -> Result<Vec<String>> {
    let storage = &*options.storage;
    let path = located(storage, location.as_ref())?;
    let fail = |e| Error::io("list the files", &path, e).of(FORMAT);
    let names = match storage.list(&path) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        names => names.map_err(fail)?,
    };
    let mut named: BTreeMap<&str, Vec<(u32, PathBuf)>> = BTreeMap::new();
    for name in &names {
        if let Some((index, base)) = file_parts(name) {
            named.entry(base).or_default().push((index, path.join(name)));
        }
    }
    let sidecar = sidecar_dir(&path);
    let beside = storage.list(&sidecar).unwrap_or_default();
    let counted = beside.iter().filter_map(|name| name.to_str()?.strip_prefix(counter::PREFIX));
    for base in counted {
        named.entry(base).or_default();
    }
    let (mut found, mut unreadable) = (Vec::new(), None);
    for (base, mut files) in named {
        files.sort_unstable();
        let is_counted = || counter::is_there(storage, &sidecar, base);
        // A sender that removes the files meanwhile stores the counter first.
        if is_counted() || any_holds_records(storage, &files, &mut unreadable) || is_counted() {
            found.push(base.to_owned());
        }
    }
    match unreadable {
        Some(error) if found.is_empty() => Err(error),
        _ => Ok(found),
    }
}

/// Whether a file has the name of a ledger's file, and holds an intact record.
///
/// # Errors
///
/// Fails if the files cannot be read; see [Errors](crate#errors).
pub fn is_ledger_file(path: impl AsRef<Path>, options: &Options) -> Result<bool> {
    let path = path.as_ref();
    let named = path.file_name().and_then(file_parts).is_some();
    match named {
        true => holds_records(&*options.storage, path),
        false => Ok(false),
    }
}

fn any_holds_records(
    storage: &dyn Storage,
    files: &[(u32, PathBuf)],
    unreadable: &mut Option<Error>,
) -> bool {
    files.iter().take(FILES_LOOKED_INTO).any(|(_, path)| match holds_records(storage, path) {
        Ok(holds) => holds,
        Err(e) => {
            unreadable.get_or_insert(e);
            false
        }
    })
}

/// Whether the beginning of a file has an intact record, before or after damage.
fn holds_records(storage: &dyn Storage, path: &Path) -> Result<bool> {
    let fail = |e| Error::io("read the file", path, e).of(FORMAT);
    let file: Arc<dyn File> = match storage.open(path, Access::Read) {
        Ok(file) => Arc::from(file),
        // Sent meanwhile, or no regular file.
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => {
            return Ok(false);
        }
        Err(e) => return Err(Error::io("open the file", path, e).of(FORMAT)),
    };
    let len = file.len().map_err(fail)?.min(BYTES_LOOKED_INTO);
    let limit = kept_limit(storage, &Place::file(path).dir)?;
    let found = LedgerFormat::new(limit).inspect_file(file, len, Depth::Full).map_err(fail)?;
    let after = found.findings.damage.as_ref().and_then(|damage| damage.next_intact);
    Ok(found.findings.extent.records > 0 || after.is_some())
}
