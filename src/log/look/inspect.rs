//! A look at a log that others may be changing.

use std::path::Path;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::ground::interrupt::asking;
use crate::log::format::{Format, Inspected};
use crate::log::options::Common;
use crate::log::space::Place;
use crate::mode::Depth;
use crate::scan::Verdict;
use crate::sidecar::MarkFile;
use crate::storage::{Access, located};

/// A reader may look while a writer drops a prefix or cuts the end.
pub const READER_TRIES: u32 = 5;
/// Half of the first pause between two tries.
pub const PAUSE: Duration = Duration::from_millis(1);
/// Errors that a reader may meet while a writer changes the log.
pub const CHANGING: [ErrorKind; 3] = [ErrorKind::Io, ErrorKind::Corrupt, ErrorKind::LostRecords];

/// Look at a log that others may be changing.
pub fn inspect_patiently<F: Format>(
    options: &F::Options,
    place: &Place,
    depth: Depth,
) -> Result<Inspected<F>> {
    let timeout = F::common(options)?.lock_timeout;
    asking(timeout.check(), &place.log, || {
        patiently::<F, _>(&CHANGING, || inspect_settled::<F>(options, place, depth))
    })
    .map_err(|e| e.of(F::NAME))
}

/// Damage counts only under an unchanged mark: a writer that appends, or cuts, changes the mark
/// before the log.
pub fn inspect_settled<F: Format>(
    options: &F::Options,
    place: &Place,
    depth: Depth,
) -> Result<Inspected<F>> {
    let storage = F::common(options)?.storage;
    let load = || MarkFile::load(&*storage, &place.sidecar).ok();
    let mut tries = 1;
    loop {
        let mark = load();
        let found = F::inspect(options, place, Access::Read, depth)?;
        let is_damaged = found.findings.verdict == Verdict::Corrupt;
        if !is_damaged || tries >= READER_TRIES || load() == mark {
            return Ok(found);
        }
        tries += 1;
    }
}

/// Read a log that others may be changing. An error of the given kinds may come from half a change,
/// so the read is tried again.
pub fn patiently<F: Format, T>(kinds: &[ErrorKind], read: impl Fn() -> Result<T>) -> Result<T> {
    with_patience(READER_TRIES, PAUSE, kinds, read).map_err(|e| e.of(F::NAME))
}

/// Try at most `tries` times while the error is of the given kinds. The pauses double.
pub fn with_patience<T>(
    tries_max: u32,
    pause: Duration,
    kinds: &[ErrorKind],
    read: impl Fn() -> Result<T>,
) -> Result<T> {
    let mut tries = 1;
    loop {
        match read() {
            Err(e) if tries < tries_max && kinds.contains(&e.kind()) => {
                std::thread::sleep(pause * (1 << tries));
                tries += 1;
            }
            done => return done,
        }
    }
}

/// The place of an existing log, for calls that open the log by themselves.
pub fn place_of<F: Format>(path: &Path, options: &F::Options) -> Result<(Place, Common)> {
    let find = || {
        let common = F::common(options)?;
        let place = F::place(options, &located(&*common.storage, path)?)?;
        Ok((place, common))
    };
    find().map_err(|e: Error| e.of(F::NAME))
}
