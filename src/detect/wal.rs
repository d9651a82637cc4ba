//! How a write-ahead log is recognised: by segments, by the marker of its head, or as any other file.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use super::site::{Site, sidecar_of_file};
use crate::sidecar::has_mark;
use crate::storage::{Disk, Lies, Storage};
use crate::wal::HEAD_NAME;
use crate::wal::codec::segment_index;

pub fn is_segment(name: &str) -> bool {
    segment_index(OsStr::new(name)).is_some()
}

pub fn evidence(site: &Site<'_>) -> Option<String> {
    site.first(is_segment)
}

/// The marker of the head; or any file: opening it reports whether its bytes are a log.
///
/// An empty file without a sidecar is none, because the writer of a new log makes it first; but one with a
/// segment's name is, and opening it says that its directory is the log.
pub fn may_be(site: &Site<'_>) -> bool {
    if !site.is_file() {
        return site.has(HEAD_NAME);
    }
    let has_sidecar = || sidecar_of_file(site.path).is_some_and(|sidecar| Disk.is_dir(&sidecar));
    let is_empty = matches!(Lies::behind(site.path), Ok(Lies::File(0)));
    !is_empty || is_segment(site.name()) || has_sidecar()
}

pub fn is_at(path: &Path) -> bool {
    match Disk.list(path) {
        Ok(names) => names.iter().any(|name| segment_index(name).is_some()),
        Err(e) if e.kind() == io::ErrorKind::NotADirectory => {
            sidecar_of_file(path).is_some_and(|sidecar| has_mark(&Disk, &sidecar))
        }
        Err(_) => false,
    }
}
