//! How a write-ahead log is recognised: by segments, by the marker of its head, or as any other file.

use std::ffi::OsStr;

use super::site::{Site, sidecar_of_file};
use crate::sidecar::has_mark;
use crate::storage::Access;
use crate::wal::HEAD_NAME;
use crate::wal::codec::segment_index;

pub fn is_segment(name: &str) -> bool {
    segment_index(OsStr::new(name)).is_some()
}

/// A segment, or the mark next to a single file.
pub fn evidence(site: &Site<'_>) -> Option<String> {
    if !site.is_file() {
        return site.first(is_segment);
    }
    let sidecar = sidecar_of_file(&**site.storage, site.path)?;
    has_mark(&**site.storage, &sidecar).then(|| site.name().to_owned())
}

/// The head's marker, or any file: an opening reports whether the file is a log.
///
/// An empty file without a sidecar is no log, because the writer of a new log makes the sidecar
/// first. An empty file with a segment's name is: an opening reports that the directory is the log.
pub fn may_be(site: &Site<'_>) -> bool {
    if !site.is_file() {
        return site.has(HEAD_NAME);
    }
    let disk = &**site.storage;
    let has_sidecar =
        || sidecar_of_file(disk, site.path).is_some_and(|sidecar| disk.is_dir(&sidecar));
    let file = disk.canonical(site.path).and_then(|path| disk.open(&path, Access::Read));
    let is_empty = file.and_then(|file| file.is_empty()).unwrap_or(false);
    !is_empty || is_segment(site.name()) || has_sidecar()
}
