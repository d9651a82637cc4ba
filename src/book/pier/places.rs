//! The epochs of a pier, and the joints between them.

use std::cmp::Ordering;
use std::io;
use std::path::{Path, PathBuf};

use super::super::epoch::epoch_in_name;
use super::super::names::LOG_NAME;
use crate::error::{Error, ErrorKind, Result};
use crate::saving::refuse_link;
use crate::storage::{Access, Storage, above, names_in, read_full};

/// Says which store an epoch is kept in.
pub const EPOC_NAME: &str = "epoc.txt";
/// Says which binary began the epoch.
pub const VERE_NAME: &str = "vere.txt";
/// The text of `epoc.txt` for a book.
pub const EPOC_BOOK: &str = "3";
/// The file of an LMDB environment.
pub const LMDB_NAME: &str = "data.mdb";
/// Vere's text files have a few bytes.
const TEXT_BYTES_MAX: usize = 4096;

/// An epoch, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub number: u64,
    pub dir: PathBuf,
}

/// The name of an epoch's directory.
pub fn name_of(number: u64) -> String {
    format!("0i{number}")
}

/// The directory of the epochs: `.urb/log` below a path, which may not be a link, or the path itself.
pub fn log_dir(storage: &dyn Storage, path: &Path) -> Result<PathBuf> {
    let below = path.join(".urb").join("log");
    let holds_epochs = || {
        let names = storage.list(path).unwrap_or_default();
        names.iter().any(|name| epoch_in_name(Path::new(name)).is_some())
    };
    if !storage.is_dir(&below) && (path.ends_with(".urb/log") || holds_epochs()) {
        return Ok(path.to_path_buf());
    }
    refuse_link(storage, above(&below))?;
    refuse_link(storage, &below)?;
    Ok(below)
}

/// The epochs in a directory in the order of their events; none without the directory. Epochs in
/// LMDB are refused: passing over them would lose their events.
pub fn list(storage: &dyn Storage, dir: &Path) -> Result<Vec<Named>> {
    let names = names_in(storage, dir)?;
    let mut found: Vec<Named> = names
        .iter()
        .map(|name| dir.join(name))
        .filter_map(|dir| epoch_in_name(&dir).map(|number| Named { number, dir }))
        .collect();
    found.sort_by_key(|named| named.number);
    for named in &found {
        check_store(storage, named)?;
    }
    if found.is_empty() && names.iter().any(|name| name == LMDB_NAME) {
        let message = format!("events in LMDB ({LMDB_NAME}) without epochs; {MIGRATE}");
        return Err(Error::new(ErrorKind::Unsupported, message).at(dir));
    }
    Ok(found)
}

const MIGRATE: &str = "'deedbook migrate' makes books of them";

/// Refuse an epoch that is no book.
fn check_store(storage: &dyn Storage, named: &Named) -> Result<()> {
    let Named { number, dir } = named;
    let name = name_of(*number);
    if storage.is_link(dir) || !storage.is_dir(dir) {
        let message = format!("epoch {name} must be a directory");
        return Err(Error::new(ErrorKind::NotALog, message).at(dir));
    }
    let files = storage.list(dir).map_err(|e| Error::io("list the directory", dir, e))?;
    let has = |name: &str| files.iter().any(|file| file == name);
    let version = text(storage, &dir.join(EPOC_NAME))?.unwrap_or_default();
    let version = String::from_utf8_lossy(&version).trim().to_string();
    let is_lmdb = match &*version {
        // Read a book without an environment, whatever version the text has.
        "1" | "2" => has(LMDB_NAME) || !has(LOG_NAME),
        "" | EPOC_BOOK => has(LMDB_NAME) && !has(LOG_NAME),
        _ => {
            let message = format!(
                "epoch {name} has version {version:?} by {EPOC_NAME}, must be 1 or 2 (LMDB) or 3 \
                 (Book)"
            );
            return Err(Error::new(ErrorKind::Unsupported, message).at(dir));
        }
    };
    if is_lmdb {
        let message = format!("epoch {name} is in LMDB ({LMDB_NAME}); {MIGRATE}");
        return Err(Error::new(ErrorKind::Unsupported, message).at(dir));
    }
    if !has(LOG_NAME) {
        let message = format!("epoch {name} has no {LOG_NAME}");
        return Err(Error::new(ErrorKind::Missing, message).at(dir));
    }
    Ok(())
}

/// The bytes of a short text file; `None` if there is none.
pub fn text(storage: &dyn Storage, path: &Path) -> Result<Option<Vec<u8>>> {
    small(storage, path, "text", TEXT_BYTES_MAX)
}

/// The bytes of a file of at most `bytes_max` bytes, which errors call a `noun`; `None` if there is
/// none.
pub fn small(
    storage: &dyn Storage,
    path: &Path,
    noun: &str,
    bytes_max: usize,
) -> Result<Option<Vec<u8>>> {
    let failed = |verb: &str, e| Error::io(&format!("{verb} the {noun}"), path, e);
    let file = match storage.open(path, Access::Read) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|e| failed("open", e))?,
    };
    let mut bytes = vec![0; bytes_max + 1];
    let read = read_full(&*file, &mut bytes, 0).map_err(|e| failed("read", e))?;
    if read > bytes_max {
        let name = path.file_name().unwrap_or_default().display();
        let message = format!("{name} has {read} bytes or more, limit {bytes_max}");
        return Err(Error::new(ErrorKind::NotALog, message).at(path));
    }
    bytes.truncate(read);
    Ok(Some(bytes))
}

/// The defect between two epochs. `next` is the next event of the epoch before.
pub fn check_joint(before: u64, next: u64, after: &Named) -> Result<()> {
    let first = after.number.saturating_add(1);
    let what = match first.cmp(&next) {
        Ordering::Equal => return Ok(()),
        Ordering::Greater => seeded!("missing", "epochs-with-a-gap" => return Ok(())),
        Ordering::Less => "in both",
    };
    let (low, high) = (first.min(next), first.max(next));
    let (which, be) = match high - 1 {
        last if last == low => (format!("event {low}"), "is"),
        last => (format!("events {low} to {last}"), "are"),
    };
    let message = format!(
        "epoch {} begins with event {first}, but epoch {} ends with event {}: {which} {be} {what}",
        name_of(after.number),
        name_of(before),
        next.saturating_sub(1),
    );
    Err(Error::new(ErrorKind::Contiguity, message).at(&after.dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_and_overlaps_are_named_with_their_events() {
        let after = Named { number: 60, dir: "/log/0i60".into() };
        assert!(check_joint(0, 61, &after).is_ok());
        let gap = check_joint(0, 55, &after).unwrap_err();
        assert_eq!(
            gap.message(),
            "epoch 0i60 begins with event 61, but epoch 0i0 ends with event 54: events 55 to 60 are \
             missing"
        );
        let both = check_joint(0, 64, &after).unwrap_err();
        assert_eq!(
            both.message(),
            "epoch 0i60 begins with event 61, but epoch 0i0 ends with event 63: events 61 to 63 are \
             in both"
        );
    }
}
