//! The index of an event store, as files.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// Have an index that was copied to a directory count as made there: it is opened, and its own checks say
/// what it is worth.
pub fn vouch_for(index: &Path) {
    let path = index.join("made-here");
    let _ = fs::remove_file(&path);
    let mut file = File::create_new(&path).unwrap();
    let metadata = file.metadata().unwrap();
    let created = metadata.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let created = created.map_or(0, |since| since.as_nanos());
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let inode = 0;
    let lines = format!("inode {inode}\ncreated {created}\n");
    writeln!(file, "{lines}crc {:08x}", crc32fast::hash(lines.as_bytes())).unwrap();
}
