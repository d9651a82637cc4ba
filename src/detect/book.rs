//! How a book and a pier are recognised: by `book.log`, and by epochs `0iN`.

use std::io;
use std::path::Path;

use super::site::Site;
use crate::book::{LOG_NAME, MAGIC, epoch_in_name};
use crate::error::{Error, ErrorKind, Result};
use crate::storage::{Access, read_full};

/// The directory of a ship's epochs.
const BELOW: &str = ".urb/log";

pub fn evidence(site: &Site<'_>) -> Option<String> {
    let found = if site.is_file() { site.name() == LOG_NAME } else { site.has(LOG_NAME) };
    found.then(|| LOG_NAME.into())
}

/// Refuse the log of a book under another name.
pub fn refuse_renamed(site: &Site<'_>) -> Result<()> {
    use io::ErrorKind::{InvalidInput, NotADirectory, NotFound};
    let path = site.path;
    let fail = |e| Error::io("read the file", path, e);
    let file = match site.storage.open(path, Access::Read) {
        // No regular file.
        Err(e) if matches!(e.kind(), InvalidInput | NotADirectory | NotFound) => return Ok(()),
        opened => opened.map_err(fail)?,
    };
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

pub fn evidence_of_pier(site: &Site<'_>) -> Result<Option<String>> {
    let is_epoch = |dir: &Path, name: &str| {
        epoch_in_name(Path::new(name)).is_some() && site.storage.is_dir(&dir.join(name))
    };
    match site.first(|name| is_epoch(site.path, name)) {
        None if site.has(".urb") => {
            let below = site.path.join(BELOW);
            site.first_in(BELOW, |name| is_epoch(&below, name))
        }
        here => Ok(here),
    }
}
