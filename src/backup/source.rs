//! The log that is copied: which small files it has, and waiting until nothing is under way.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::copier::{Step, Stop, is_dir, is_file, read_small};
use crate::error::{Error, ErrorKind, Result};
use crate::interrupt;
use crate::log::space::base_of_tail;
use crate::sidecar::LOCK_NAME;
use crate::storage::{LockAttempt, Storage};

/// The small files of a sidecar that a backup has. What else lies there is not the log's.
pub const COPIED: [&str; 6] = ["settings", "mark", "index", "consumers", "loss", "transactions"];
/// A log that changes under the copy is looked at so often.
const ATTEMPTS: u32 = 25;
const WAITED: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);
/// Looks that find nobody who would end what is under way. A writer may begin, or end, between two of them.
const LOOKS: u32 = 5;

/// What the backup of a log has.
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

/// Wait until none of these files is there. Where nobody holds the writer's lock in `sidecar`, nobody removes them.
pub fn wait_until_none(
    storage: &dyn Storage,
    log: &Path,
    intents: &[PathBuf],
    sidecar: Option<&Path>,
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
        alone = if sidecar.map_or(Ok(false), |sidecar| is_free(storage, sidecar))? {
            alone + 1
        } else {
            0
        };
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

/// Whether nobody holds the writer's lock. A lock that its holder released names none, and is not tried: a writer that
/// opens the log at that moment would be refused.
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

/// Whether a file has what an opening or a repair cut off and saved.
pub fn names_saved(name: &str) -> bool {
    base_of_tail(Path::new(name)).is_some() || name.ends_with(".wal.cut")
}
