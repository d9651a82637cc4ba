//! `verify` notes damage next to the log if opening does not see that damage. The next opening for writing is
//! refused, until a repair or a check without a find.
//!
//! Opening does not read bytes that a mark vouches for. Without the note, a writer went on in a log whose damage
//! was known.

use std::path::Path;

use crate::error::{ErrorKind, Result};
use crate::log::format::Format;
use crate::log::notice::corrupt;
use crate::log::options::Common;
use crate::log::report::VerifyReport;
use crate::log::space::Place;
use crate::scan::{Damage, Verdict};
use crate::sidecar::{forget_damage, note_damage, noted_damage};
use crate::storage::Storage;

/// The advice in an error about noted damage.
pub const NOTED: &str =
    "an earlier check found this damage: repair the log, or restore the file and verify it";

/// Note the first damage that a check found, or delete the note of an earlier check. Returns whether there is a note
/// now: a log without a sidecar has none, nor has one that the caller may not write to. Damage that opening sees
/// needs no note.
pub fn keep(common: &Common, place: &Place, report: &VerifyReport, is_seen: bool) -> bool {
    let found = report.damages.first().filter(|_| report.verdict == Verdict::Corrupt);
    note_check(&*common.storage, &place.sidecar, found, is_seen)
}

/// As [`keep`], with the first damage; `None` means that the check found none.
pub fn note_check(
    storage: &dyn Storage,
    sidecar: &Path,
    found: Option<&Damage>,
    is_seen: bool,
) -> bool {
    // A damaged note also refuses.
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

/// Refuse to write to a log with noted damage.
pub fn refuse<F: Format>(common: &Common, place: &Place) -> Result<()> {
    let Some(damage) = noted_damage(&*common.storage, &place.sidecar)? else { return Ok(()) };
    Err(corrupt::<F>(&place.log, &damage, ErrorKind::Corrupt).with_advice(NOTED))
}
