//! The source log: looks at its files, and waiting for the end of a commit.

use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Result};
use crate::ground::interrupt;
use crate::log::base_of_tail;
use crate::sidecar::{LOCK_NAME, note};
use crate::storage::{Access, LockAttempt, Storage, names_in};

/// The small files of a sidecar that a backup has. Other files there are not the log's.
pub const COPIED: [&str; 6] = ["settings", "mark", "index", "consumers", "loss", "transactions"];
const WAITED: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);
/// The number of looks without a writer that could end the commit. Between two looks, a writer may
/// begin or end.
const LOOKS: u32 = 5;

/// Wait until none of the files exists. If `is_alone` reports that there is no writer, nobody would
/// remove the files, and waiting fails.
pub fn wait_until_none(
    storage: &dyn Storage,
    log: &Path,
    intents: &[PathBuf],
    is_alone: impl Fn() -> Result<bool>,
) -> Result<()> {
    let begun = Instant::now();
    let mut alone = 0;
    loop {
        let mut under_way = false;
        for intent in intents {
            under_way |= is_file(storage, intent)?;
        }
        if !under_way {
            return Ok(());
        }
        alone = if is_alone()? { alone + 1 } else { 0 };
        if alone == LOOKS || begun.elapsed() > WAITED {
            let message = format!(
                "{}: a commit or a cut has begun and does not end; open the log for writing once, which brings it to \
                 its end",
                log.display()
            );
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        interrupt::ask().map_err(|e| Error::io("wait for a commit", log, e))?;
        sleep(PAUSE);
    }
}

/// Whether nobody holds the writer's lock. A released lock file names no holder, and the function
/// does not try the lock: a writer that opens the log at the same moment would be refused.
pub fn is_free(storage: &dyn Storage, sidecar: &Path) -> Result<bool> {
    let path = sidecar.join(LOCK_NAME);
    if !is_dir(storage, sidecar)? {
        return Ok(true);
    }
    let holder = read_small(storage, &path)?;
    if holder.is_none_or(|holder| holder.is_empty()) {
        return Ok(true);
    }
    match storage.lock(&path, false) {
        Ok(LockAttempt::Held(_)) => Ok(cfg!(unix)),
        Ok(LockAttempt::Busy(_)) => Ok(false),
        Err(e) => Err(Error::io("look at the lock", &path, e)),
    }
}

/// Whether a file has such a name because an opening or a repair saved cut bytes.
pub fn names_saved(name: &str) -> bool {
    base_of_tail(Path::new(name)).is_some() || name.ends_with(".wal.cut")
}

/// The bytes of a small file; `None` if there is none.
pub fn read_small(storage: &dyn Storage, path: &Path) -> Result<Option<Vec<u8>>> {
    match storage.open(path, Access::Read) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => {
            let file = opened.map_err(|e| unusable("open the file", path, e))?;
            note::read_small(&*file, path, "the file").map(Some)
        }
    }
}

/// The bytes of a small file in a sidecar; also `None` for an index that does not fit in memory. Opening the copy
/// makes the index again.
pub fn read_beside(storage: &dyn Storage, path: &Path) -> Result<Option<Vec<u8>>> {
    match read_small(storage, path) {
        Err(e) if e.kind() == ErrorKind::Corrupt && path.ends_with("index") => Ok(None),
        found => found,
    }
}

/// Whether a regular file is there; anything else in its place is an error.
pub fn is_file(storage: &dyn Storage, path: &Path) -> Result<bool> {
    match storage.open(path, Access::Read) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(true),
        Err(e) => Err(unusable("open the file", path, e)),
    }
}

/// Whether a directory is there; a link or a file in its place is an error.
pub fn is_dir(storage: &dyn Storage, dir: &Path) -> Result<bool> {
    crate::saving::refuse_link(storage, dir)?;
    if storage.is_dir(dir) {
        return Ok(true);
    }
    match storage.open(dir, Access::Read) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        // A writer made it between the two looks.
        _ if storage.is_dir(dir) => Ok(true),
        _ => Err(Error::new(ErrorKind::NotALog, "must be a directory").at(dir)),
    }
}

/// The sorted names in a log's directory; none without a directory. A link in the directory's place
/// is an error.
pub fn sorted_names(storage: &dyn Storage, dir: &Path) -> Result<Vec<String>> {
    if !is_dir(storage, dir)? {
        return Ok(Vec::new());
    }
    let mut names: Vec<String> =
        names_in(storage, dir)?.into_iter().filter_map(|name| name.into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// The error of an opening. Only regular files are parts of a log.
pub fn unusable(doing: &str, path: &Path, e: io::Error) -> Error {
    match e.kind() {
        io::ErrorKind::InvalidInput => {
            Error::new(ErrorKind::NotALog, format!("{e}, must be a regular file")).at(path)
        }
        _ => Error::io(doing, path, e),
    }
}
