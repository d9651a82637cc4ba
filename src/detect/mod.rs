//! Detects the format of a log.
//!
//! ```
//! use deedbook::detect::Kind;
//! # fn main() -> deedbook::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("log");
//! deedbook::book::Book::create(&path)?.close()?;
//! assert_eq!(Kind::detect(&path, None)?, Some(Kind::Book));
//! # Ok(())
//! # }
//! ```

mod book;
mod ledger;
#[cfg(feature = "nostr")]
mod nostr;
mod site;
mod wal;

use std::path::Path;
use std::sync::Arc;

use crate::book::LOG_NAME;
use crate::error::{Error, ErrorKind, Result};
use crate::log::base_of_tail;
use crate::sidecar::{first_setting, has_mark, sidecar_dir};
use crate::storage::{Disk, Storage};
use site::{Site, sidecar_of_file};

/// The names that detection looks for, for an error that nothing was found.
#[doc(hidden)]
pub const LOOKED_FOR: &str = "book.log, epochs 0iN of a pier, WAL segments, files N-BASE of a ledger and \
                          data/segments of an event store";

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Urbit's Book: a directory with `book.log`, or that file.
    Book,
    /// A pier: a directory with epochs `0iN` or with `.urb/log`.
    Pier,
    /// A write-ahead log: a directory with segments or a `head`, or any other file.
    Wal,
    /// A ledger: a directory with a counter `.deedbook/next-BASE`, or with files `N-BASE`, at least
    /// one with an intact record; or such a file.
    Ledger,
    /// An event store: a directory with segments `data/segments/data.N.seg`.
    #[cfg(feature = "nostr")]
    Nostr,
}

/// A detected log.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its format.
    pub kind: Kind,
    /// Whether the path is the saved end of a log, cut off into a file.
    pub saved: bool,
    /// The byte of the log at which the saved end began, if the name has the byte.
    pub saved_offset: Option<u64>,
}

impl From<Kind> for Found {
    fn from(kind: Kind) -> Self {
        Self { kind, saved: false, saved_offset: None }
    }
}

impl Kind {
    /// All formats, in detection's order.
    pub const ALL: &[Self] = &[
        Self::Book,
        Self::Pier,
        Self::Wal,
        Self::Ledger,
        #[cfg(feature = "nostr")]
        Self::Nostr,
    ];

    /// The name, as in the shell and in `.deedbook/settings`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Book => "book",
            Self::Pier => "pier",
            Self::Wal => "wal",
            Self::Ledger => "ledger",
            #[cfg(feature = "nostr")]
            Self::Nostr => "nostr",
        }
    }

    /// The name in a sentence.
    pub fn title(self) -> &'static str {
        match self {
            Self::Wal => "write-ahead log",
            #[cfg(feature = "nostr")]
            Self::Nostr => "Nostr event store",
            other => other.name(),
        }
    }

    /// The format of the log at a path; `None` if there is no log of any format.
    ///
    /// If the log is missing, the sidecar still gives the format, so that an opening can report the
    /// loss. A saved end has the format in its name. `base` names the intended ledger: then damage may
    /// hide all of its records.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be listed, with [`NotALog`](crate::ErrorKind::NotALog) for a book under another
    /// name, and with [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a directory that holds several formats.
    pub fn detect(path: impl AsRef<Path>, base: Option<&str>) -> Result<Option<Self>> {
        Ok(detect(path, base)?.map(|found| found.kind))
    }

    /// Whether this format certainly lies at a path, by a quick look.
    pub fn is_at(self, path: impl AsRef<Path>) -> bool {
        let disk = disk();
        let site = Site::at(&disk, path.as_ref());
        matches!(site, Ok(Some(site)) if self.is_shown(&site))
    }

    /// Another format at a path, or the saved end of another format's log: this format refuses to
    /// open the path. Looks at as little as possible, because every opening may ask.
    pub fn other_at(self, path: impl AsRef<Path>) -> Option<Found> {
        let disk = disk();
        let site = Site::at(&disk, path.as_ref()).ok()??;
        let other = |kind: &&Self| **kind != self && kind.is_shown(&site);
        if !self.is_shown(&site)
            && let Some(&kind) = Self::ALL.iter().find(other)
        {
            return Some(kind.into());
        }
        saved(&site).filter(|found| found.kind != self)
    }

    fn is_shown(self, site: &Site<'_>) -> bool {
        matches!(self.evidence(site), Ok(Some(_)))
    }

    /// The name of a file that only this format has.
    fn evidence(self, site: &Site<'_>) -> Result<Option<String>> {
        match self {
            Self::Book => Ok(book::evidence(site)),
            Self::Pier => book::evidence_of_pier(site),
            Self::Wal => Ok(wal::evidence(site)),
            Self::Ledger => ledger::evidence(site),
            #[cfg(feature = "nostr")]
            Self::Nostr => nostr::evidence(site),
        }
    }
}

fn disk() -> Arc<dyn Storage> {
    Arc::new(Disk)
}

/// As [`Kind::detect`], with the byte at which a saved end began.
#[doc(hidden)]
pub fn detect(path: impl AsRef<Path>, base: Option<&str>) -> Result<Option<Found>> {
    Ok(detect_on(&disk(), path.as_ref(), base)?.0)
}

/// As [`detect`], but fails with [`ErrorKind::Missing`] if there is nothing, or with the error that may hide a log.
#[doc(hidden)]
pub fn require(path: impl AsRef<Path>, base: Option<&str>) -> Result<Found> {
    require_on(&disk(), path.as_ref(), base)
}

/// As [`detect`], on any storage; also the first error of a look that may hide a log.
fn detect_on(
    storage: &Arc<dyn Storage>,
    path: &Path,
    base: Option<&str>,
) -> Result<(Option<Found>, Option<Error>)> {
    let surely = |kind: Kind| Ok((Some(kind.into()), None));
    let Some(site) = Site::at(storage, path)? else {
        let sidecar = sidecar_of_file(&**storage, path);
        return Ok((sidecar.and_then(|sidecar| of_sidecar(&**storage, &sidecar)), None));
    };
    let (mut shown, mut hidden) = (Vec::new(), None);
    for &kind in Kind::ALL {
        match kind.evidence(&site) {
            Ok(file) => shown.extend(file.map(|file| (kind, file))),
            Err(e) => hidden = hidden.or(Some(e)),
        }
    }
    match shown[..] {
        [] => {}
        [(kind, _)] => return surely(kind),
        _ => return Err(several(path, &shown)),
    }
    if base.is_some_and(|base| ledger::is_meant(&site, base)) {
        return surely(Kind::Ledger);
    }
    if let Some(found) = saved(&site) {
        return Ok((Some(found), None));
    }
    if site.is_file() {
        book::refuse_renamed(&site)?;
    }
    if wal::may_be(&site) {
        return surely(Kind::Wal);
    }
    Ok((of_sidecar(&**storage, &sidecar_dir(path)), hidden))
}

/// As [`require`], on any storage.
pub(crate) fn require_on(
    storage: &Arc<dyn Storage>,
    path: &Path,
    base: Option<&str>,
) -> Result<Found> {
    let missing = |reason: String| Err(Error::new(ErrorKind::Missing, reason).at(path));
    match detect_on(storage, path, base)? {
        (Some(found), _) => return Ok(found),
        (None, Some(hidden)) => return Err(hidden),
        (None, None) => {}
    }
    match Site::at(storage, path)? {
        None if !storage.is_link(path) => missing("No such file or directory".into()),
        site => {
            let resembling = site.and_then(|site| ledger::resembling(&site));
            let resembling = resembling.map_or(String::new(), |name| format!("; {name}"));
            missing(format!("no log there (looked for {LOOKED_FOR}){resembling}"))
        }
    }
}

fn several(path: &Path, shown: &[(Kind, String)]) -> Error {
    let shown = shown.iter().map(|(kind, file)| format!("a {} ({file})", kind.title()));
    let shown = shown.collect::<Vec<_>>().join(" and ");
    let path = path.display();
    let message = format!("{path} holds both {shown}: move one of them to a directory of its own");
    Error::new(ErrorKind::InvalidArgument, message)
}

/// The saved end of a log, by a file's name: a saved tail, or `SEGMENT.cut` with a number if there were several.
fn saved(site: &Site<'_>) -> Option<Found> {
    let name = Some(site.name()).filter(|_| site.is_file())?;
    if let Some(base) = base_of_tail(Path::new(name)) {
        let kind = if base == LOG_NAME { Kind::Book } else { Kind::Wal };
        let offset = name.strip_prefix(base)?.strip_prefix(".cut-")?.split('.').next()?;
        return Some(Found { kind, saved: true, saved_offset: offset.parse().ok() });
    }
    let (segment, number) = name.split_once(".cut")?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_cut = number.is_empty() || number.strip_prefix('.').is_some_and(is_number);
    let found = Found { kind: Kind::Wal, saved: true, saved_offset: None };
    (is_cut && wal::is_segment(segment)).then_some(found)
}

/// The format of a log with only the sidecar left. The sidecar of an older book names no format.
fn of_sidecar(storage: &dyn Storage, sidecar: &Path) -> Option<Found> {
    let Some(line) = first_setting(storage, sidecar) else {
        return has_mark(storage, sidecar).then(|| Kind::Book.into());
    };
    let named = |kind: &&Kind| line == format!("format {}\n", kind.name()).as_bytes();
    Kind::ALL.iter().find(named).map(|&kind| kind.into())
}
