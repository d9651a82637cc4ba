//! The names of the segments' files.

use std::path::{Path, PathBuf};

const DATA_NAME: &str = "data";
const SEGMENTS_NAME: &str = "segments";
/// The end of an unfinished segment's name: a compaction fills the segment.
const UNFINISHED: &str = ".compacting";

/// The directory of a store's segments.
pub fn segments_dir(store: &Path) -> PathBuf {
    store.join(DATA_NAME).join(SEGMENTS_NAME)
}

/// The final name of a segment.
pub fn path_of(dir: &Path, id: u32) -> PathBuf {
    dir.join(format!("data.{id}.seg"))
}

/// The unfinished name of a segment, given the final name.
pub fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(UNFINISHED);
    name.into()
}

/// The final name of a segment with an unfinished name.
pub fn finished(path: &Path) -> Option<PathBuf> {
    path.to_str()?.strip_suffix(UNFINISHED).map(PathBuf::from)
}

/// The number in `data.N.seg`, or `data.N` of other programs.
pub fn parse_name(name: &str) -> Option<u32> {
    let rest = name.strip_prefix("data.")?;
    let digits = rest.strip_suffix(".seg").unwrap_or(rest);
    let id: u32 = digits.parse().ok()?;
    (id.to_string() == digits).then_some(id)
}

/// The number in an unfinished name.
pub fn parse_unfinished(name: &str) -> Option<u32> {
    parse_name(name.strip_suffix(UNFINISHED)?)
}
