//! What a check found and opening does not see, noted beside the log: the next opening for writing is refused
//! until a repair, or a check that finds none.
//!
//! A mark vouches for bytes that opening does not read. Without the note, a log whose damage is known was
//! opened and went on.

use std::path::Path;

use crate::error::{ErrorKind, Result};
use crate::log::cursor::corrupt;
use crate::log::format::Format;
use crate::log::options::Common;
use crate::log::report::VerifyReport;
use crate::log::space::Place;
use crate::log::verify::check_rest;
use crate::scan::{Damage, Verdict};
use crate::sidecar::{forget_damage, note_damage, noted_damage};
use crate::storage::Storage;

/// What to do about noted damage.
pub const NOTED: &str =
    "an earlier check found it: repair the log, or put back what it was and verify it";

/// Note what a check found, or delete the note if it found none. Whether there is a note now: without a
/// sidecar, or where the caller may not write, there is none. Damage that opening sees needs no note.
pub fn keep(common: &Common, place: &Place, report: &VerifyReport, is_seen: bool) -> bool {
    let found = report.damages.first().filter(|_| report.verdict == Verdict::Corrupt);
    note(&*common.storage, &place.sidecar, found, is_seen)
}

/// The same of what was found; none is the first damage of a log without any.
pub fn note(storage: &dyn Storage, sidecar: &Path, found: Option<&Damage>, is_seen: bool) -> bool {
    // One that is damaged itself refuses, too.
    let is_noted = || !matches!(noted_damage(storage, sidecar), Ok(None));
    if storage.is_link(sidecar) || !storage.is_dir(sidecar) {
        return false;
    }
    match found {
        Some(_) if is_seen => is_noted(),
        Some(damage) => note_damage(storage, sidecar, damage).is_ok(),
        None => forget_damage(storage, sidecar).is_err() && is_noted(),
    }
}

/// Refuse to write to a log of which damage is noted.
pub fn refuse<F: Format>(common: &Common, place: &Place) -> Result<()> {
    let Some(damage) = noted_damage(&*common.storage, &place.sidecar)? else { return Ok(()) };
    Err(corrupt::<F>(&place.log, &damage, ErrorKind::Corrupt).with_advice(NOTED))
}

/// Read all of a log before it is opened. A torn end is no damage: opening for writing cuts it.
pub fn check_all<F: Format>(path: &Path, log: &Path, options: &F::Options) -> Result<()> {
    let report = match check_rest::<F>(path, options, &[], |_, _| Ok(())) {
        Err(error) if error.kind() == ErrorKind::Missing => return Ok(()),
        report => report?,
    };
    if report.verdict != Verdict::Corrupt {
        return Ok(());
    }
    let damage = report.damages.into_iter().next().unwrap_or_default();
    // The end of the log is missing: nothing comes after it.
    let kind = match report.lost_acknowledged && damage.next_intact.is_none() {
        true => ErrorKind::LostRecords,
        false => ErrorKind::Corrupt,
    };
    Err(corrupt::<F>(log, &damage, kind))
}
