//! Damage as an error, and as a line of the `log` facade. Damage that readers meet goes there once per cursor;
//! nothing of it where a report lists it anyway: in `verify`, `salvage` and `repair`.

use std::path::Path;

use crate::error::{Error, ErrorKind};
use crate::ground::lines;
use crate::log::format::Format;
use crate::scan::Damage;

/// Tell of the error, if damage is its reason.
pub fn raised(error: &Error) {
    if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::LostRecords) {
        lines::warn(format_args!("damage met: {error}"));
    }
}

/// Tell of damage after which the reader went on.
pub fn passed_over<F: Format>(log: &Path, damage: &Damage) {
    let error = corrupt::<F>(log, damage, ErrorKind::Corrupt);
    lines::warn(format_args!("damage passed over: {error}"));
}

/// The error of a damaged stretch.
pub fn corrupt<F: Format>(path: &Path, damage: &Damage, kind: ErrorKind) -> Error {
    let error = Error::new(kind, damage.reason.clone()).of(F::NAME).at(path);
    error.offset_at(damage.offset).with_next_intact(damage.next_intact)
}
