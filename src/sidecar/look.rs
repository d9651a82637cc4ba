//! A look at the names in a directory and in its sidecar, before a log is created there.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use super::index::INDEX_NAME;
use super::lock::LOCK_NAME;
use super::mark::{LoadedMark, MARK_NAME, MarkFile};
use super::settings::SETTINGS_NAME;
use crate::error::{Error, ErrorKind, Result};
use crate::storage::{Access, Storage, read_full};

/// Whether the sidecar's files fit a log without records. Then no log is missing next to the
/// sidecar.
pub fn tells_of_no_record(storage: &dyn Storage, sidecar: &Path) -> Result<bool> {
    if storage.is_link(sidecar) || !storage.is_dir(sidecar) {
        return Ok(false);
    }
    let names = storage.list(sidecar).map_err(|e| Error::io("list the directory", sidecar, e))?;
    let derived = [LOCK_NAME, MARK_NAME, INDEX_NAME, SETTINGS_NAME];
    let all_derived = names.iter().all(|name| derived.iter().any(|derived| name == derived));
    let loaded = MarkFile::load(storage, sidecar);
    Ok(match loaded.map_err(|e| Error::io("read the mark", sidecar, e))? {
        LoadedMark::Mark(mark) => all_derived && mark.records == 0,
        LoadedMark::Missing => all_derived,
        LoadedMark::Damaged => false,
    })
}

/// Refuse to create a log next to a log of another format: a directory has one sidecar.
pub fn refuse_other_format(storage: &dyn Storage, dir: &Path, ours: &str) -> Result<()> {
    let names = match storage.list(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        names => names.map_err(|e| Error::io("list the directory", dir, e))?,
    };
    let format_of = |name: &OsStr| match name.to_str()? {
        "book.log" => Some("book"),
        name => {
            let digits = name.strip_suffix(".wal")?;
            let segment = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
            segment.then_some("wal")
        }
    };
    for name in &names {
        if let Some(theirs) = format_of(name).filter(|&format| format != ours) {
            let message = format!("the directory holds a {theirs}: {}", name.to_string_lossy());
            return Err(Error::new(ErrorKind::NotALog, message).at(dir));
        }
    }
    Ok(())
}

/// The longest first line that is read of the settings.
const SETTING_BYTES_MAX: usize = 64;

/// The first line of the settings in a sidecar. `None` if they cannot be read.
pub fn first_setting(storage: &dyn Storage, sidecar: &Path) -> Option<Vec<u8>> {
    if storage.is_link(sidecar) {
        return None;
    }
    let file = storage.open(&sidecar.join(SETTINGS_NAME), Access::Read).ok()?;
    let mut bytes = vec![0; SETTING_BYTES_MAX];
    let read = read_full(&*file, &mut bytes, 0).ok()?;
    bytes.truncate(read);
    if let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
        bytes.truncate(end + 1);
    }
    Some(bytes)
}

/// Whether a sidecar has a mark, whatever the mark says.
pub fn has_mark(storage: &dyn Storage, sidecar: &Path) -> bool {
    storage.list(sidecar).unwrap_or_default().iter().any(|name| name == MARK_NAME)
}
