//! How a book and a pier are recognised: by `book.log`, and by epochs `0iN`.

use std::path::Path;

use super::site::{Site, is_file, name_of, names_in};
use crate::book::{LOG_NAME, MAGIC, epoch_in_name};
use crate::error::{Error, ErrorKind, Result};
use crate::storage::{Access, Disk, Lies, Storage, read_full};

/// Where a ship has its epochs.
const BELOW: &str = ".urb/log";

pub fn evidence(site: &Site<'_>) -> Option<String> {
    let found = if site.is_file() { site.name() == LOG_NAME } else { site.has(LOG_NAME) };
    found.then(|| LOG_NAME.into())
}

/// Refuse the log of a book under another name.
pub fn refuse_renamed(site: &Site<'_>) -> Result<()> {
    let path = site.path;
    // Opening anything else than a regular file could wait for a writer.
    if !site.is_file() || !matches!(Lies::at(path), Ok(Lies::File(_))) {
        return Ok(());
    }
    let fail = |e| Error::io("read the file", path, e);
    let file = Disk.open(path, Access::Read).map_err(fail)?;
    let mut magic = [0; 4];
    read_full(&*file, &mut magic, 0).map_err(fail)?;
    if u32::from_le_bytes(magic) != MAGIC {
        return Ok(());
    }
    let path = path.display();
    let message =
        format!("{path} is the log of a book, but not named {LOG_NAME}; a book is a directory");
    Err(Error::new(ErrorKind::NotALog, message))
}

pub fn is_at(path: &Path) -> bool {
    (name_of(path) == LOG_NAME && is_file(path)) || Lies::at(&path.join(LOG_NAME)).is_ok()
}

pub fn evidence_of_pier(site: &Site<'_>) -> Option<String> {
    let below = || first_epoch(&site.path.join(BELOW), &names_in(&site.path.join(BELOW)));
    let found = if site.has(".urb") { below() } else { None };
    match found {
        Some(epoch) => Some(format!("{BELOW}/{epoch}")),
        None => first_epoch(site.path, site.names.as_deref().unwrap_or_default()),
    }
}

pub fn is_pier_at(path: &Path) -> bool {
    let below = path.join(BELOW);
    [&below, path].iter().any(|dir| first_epoch(dir, &names_in(dir)).is_some())
}

fn first_epoch(dir: &Path, names: &[String]) -> Option<String> {
    let is_epoch =
        |name: &&String| epoch_in_name(Path::new(name)).is_some() && Disk.is_dir(&dir.join(name));
    names.iter().find(is_epoch).cloned()
}
