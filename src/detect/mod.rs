//! Which format lies at a path.
//!
//! ```
//! use deedbook::detect::{Kind, detect};
//! # fn main() -> deedbook::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("log");
//! deedbook::book::Book::create(&path)?.close()?;
//! assert_eq!(detect(&path, None)?.map(|found| found.kind), Some(Kind::Book));
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

use crate::book::LOG_NAME;
use crate::error::{Error, ErrorKind, Result};
use crate::log::space::base_of_tail;
use crate::sidecar::{first_setting, has_mark, sidecar_dir};
use crate::storage::{Disk, Lies};
use site::{Site, is_file, name_of, sidecar_of_file};

/// The names that detection looks for, for an error that nothing was found.
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
    /// A ledger: a directory with files `N-BASE`, of which one holds an intact record, or with a counter
    /// `.deedbook/next-BASE`; or such a file.
    Ledger,
    /// An event store: a directory with segments `data/segments/data.N.seg`.
    #[cfg(feature = "nostr")]
    Nostr,
}

/// What lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// Its format.
    pub kind: Kind,
    /// Whether it is the end of a log, saved in a file of its own before it was cut.
    pub saved: bool,
    /// The byte of that log at which it began, if its name says so.
    pub saved_offset: Option<u64>,
}

impl From<Kind> for Found {
    fn from(kind: Kind) -> Self {
        Self { kind, saved: false, saved_offset: None }
    }
}

impl Kind {
    /// All formats, in the order in which detection tries them.
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

    /// Whether this format certainly lies at a path, by a quick look.
    pub fn is_at(self, path: impl AsRef<Path>) -> bool {
        let path = path.as_ref();
        match self {
            Self::Book => book::is_at(path),
            Self::Pier => book::is_pier_at(path),
            Self::Wal => wal::is_at(path),
            Self::Ledger => ledger::is_at(path),
            #[cfg(feature = "nostr")]
            Self::Nostr => nostr::is_at(path),
        }
    }

    /// Another format at a path, or the saved end of another's log: this format is not opened there. Looks
    /// as little as it can, because every opening may ask.
    pub fn other_at(self, path: impl AsRef<Path>) -> Option<Found> {
        let path = path.as_ref();
        let other = |kind: &&Self| **kind != self && kind.is_at(path);
        if !self.is_at(path)
            && let Some(&kind) = Self::ALL.iter().find(other)
        {
            return Some(kind.into());
        }
        saved(name_of(path)).filter(|found| found.kind != self && is_file(path))
    }

    /// The name of a file that only this format has.
    fn evidence(self, site: &Site<'_>) -> Option<String> {
        match self {
            Self::Book => book::evidence(site),
            Self::Pier => book::evidence_of_pier(site),
            Self::Wal => wal::evidence(site),
            Self::Ledger => ledger::evidence(site),
            #[cfg(feature = "nostr")]
            Self::Nostr => nostr::evidence(site),
        }
    }
}

/// The format of what lies at a path; `None` if nothing of any format does.
///
/// The sidecar tells the format of a log that is gone, so that opening it says what was lost. The name tells
/// the format of what a repair or an opening saved before it cut a log. `base` names the ledger that is
/// meant: then damage may hide all its records.
///
/// Fails if the directory cannot be listed, for a book's log under another name ([`ErrorKind::NotALog`]),
/// and for a directory that holds several formats ([`ErrorKind::InvalidArgument`]).
pub fn detect(path: impl AsRef<Path>, base: Option<&str>) -> Result<Option<Found>> {
    let path = path.as_ref();
    let Some(site) = Site::at(path)? else {
        return Ok(sidecar_of_file(path).and_then(|sidecar| of_sidecar(&sidecar)));
    };
    let shown = |&kind: &Kind| Some((kind, kind.evidence(&site)?));
    let shown: Vec<(Kind, String)> = Kind::ALL.iter().filter_map(shown).collect();
    match shown[..] {
        [] => {}
        [(kind, _)] => return Ok(Some(kind.into())),
        _ => return Err(several(path, &shown)),
    }
    if base.is_some_and(|base| ledger::is_meant(&site, base)) {
        return Ok(Some(Kind::Ledger.into()));
    }
    if site.is_file()
        && let Some(found) = saved(site.name())
    {
        return Ok(Some(found));
    }
    book::refuse_renamed(&site)?;
    if wal::may_be(&site) {
        return Ok(Some(Kind::Wal.into()));
    }
    Ok(of_sidecar(&sidecar_dir(path)))
}

/// As [`detect`], but fails with [`ErrorKind::Missing`] if there is nothing.
pub fn require(path: impl AsRef<Path>, base: Option<&str>) -> Result<Found> {
    let path = path.as_ref();
    if let Some(found) = detect(path, base)? {
        return Ok(found);
    }
    let missing = |reason: String| Err(Error::new(ErrorKind::Missing, reason).at(path));
    if Lies::at(path).is_err() {
        return missing("No such file or directory".into());
    }
    let mut reason = format!("no log there (looked for {LOOKED_FOR})");
    if let Some(site) = Site::at(path)?.filter(|site| !site.is_file())
        && let Some(resembling) = ledger::resembling(&site)?
    {
        reason = format!("{reason}; {resembling}");
    }
    missing(reason)
}

fn several(path: &Path, shown: &[(Kind, String)]) -> Error {
    let shown = shown.iter().map(|(kind, file)| format!("a {} ({file})", kind.title()));
    let shown = shown.collect::<Vec<_>>().join(" and ");
    let path = path.display();
    let message = format!("{path} holds both {shown}: move one of them to a directory of its own");
    Error::new(ErrorKind::InvalidArgument, message)
}

/// The saved end of a log, by a file's name: a saved tail, or `SEGMENT.cut` with a number if there were several.
fn saved(name: &str) -> Option<Found> {
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

/// The format of a log of which only the sidecar is left. That of an older book names none.
fn of_sidecar(sidecar: &Path) -> Option<Found> {
    let Some(line) = first_setting(&Disk, sidecar) else {
        return has_mark(&Disk, sidecar).then(|| Kind::Book.into());
    };
    let named = |kind: &&Kind| line == format!("format {}\n", kind.name()).as_bytes();
    Kind::ALL.iter().find(named).map(|&kind| kind.into())
}
