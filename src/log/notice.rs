//! Damage that readers meet goes to the `log` facade. Once per damage and cursor, and nothing of it
//! to those whose report lists it anyway: `verify`, `salvage` and `repair`.

use std::path::Path;

use crate::error::{Error, ErrorKind};
use crate::lines;
use crate::log::cursor::corrupt;
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
