//! Where a log lies: one file or a directory of segments, its head marker, its sidecar.

use std::io;
use std::path::{Path, PathBuf};

use super::format::{HEAD_BYTES, HEAD_NAME, encode_head, parse_head, segment_index, segment_name};
use super::options::{Layout, Options};
use super::segments::Extent;
use crate::error::{Error, ErrorKind, Result};
use crate::mend::above;
use crate::sidecar::sidecar_dir;
use crate::storage::{Access, Storage, read_full, replace};

/// Beyond it no log lies: counting on from a head or segment up there would overflow.
const END_MAX: u64 = 1 << 63;

/// A log's files.
#[derive(Clone, Debug)]
pub struct Place {
    /// Directory of the segments, or of the single file.
    pub dir: PathBuf,
    /// The single file, or the directory.
    pub log: PathBuf,
    /// `.deedbook`, and for a single file a directory of the file's name in it.
    pub sidecar: PathBuf,
    /// Whether the log is one file.
    pub single: bool,
}

/// The head marker as found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// No prefix was dropped, or nobody knows.
    Absent,
    /// Byte of the first record.
    At(u64),
    /// Not a marker, and why.
    Damaged(String),
}

impl Place {
    /// What a path names; for a new log what the options ask for.
    pub fn of(path: &Path, options: &Options) -> Result<Self> {
        let storage = &*options.storage;
        let single = match storage.is_dir(path) {
            true => false,
            false => match storage.open(path, Access::Read) {
                Ok(_) => true,
                Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                    return Err(Error::new(ErrorKind::NotALog, e.to_string()).at(path));
                }
                // What lies beside a file that is gone says that there was one.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    options.layout == Some(Layout::Single)
                        || storage.is_dir(&sidecar_of_single(path))
                }
                Err(e) => return Err(Error::io("open the log", path, e)),
            },
        };
        let asked = options.layout.map(Layout::name);
        let has = if single { "single" } else { "segmented" };
        if asked.is_some_and(|asked| asked != has) {
            let message = format!("layout {} asked for, the log is {has}", asked.unwrap_or(""));
            return Err(Error::new(ErrorKind::InvalidArgument, message).at(path));
        }
        let name = path.file_name().unwrap_or_default();
        if !storage.is_dir(path) && segment_index(name).is_some() {
            let message = "a segment of a log; name its directory";
            return Err(Error::new(ErrorKind::InvalidArgument, message).at(path));
        }
        let log = if path.as_os_str().is_empty() { Path::new(".") } else { path }.to_path_buf();
        Ok(match single {
            true => {
                let (dir, sidecar) = (above(&log).to_path_buf(), sidecar_of_single(&log));
                Self { dir, log, sidecar, single }
            }
            false => Self { dir: log.clone(), sidecar: sidecar_dir(&log), log, single },
        })
    }

    /// The segments in the directory, sorted.
    pub fn indices(&self, storage: &dyn Storage) -> Result<Vec<u64>> {
        let names = match storage.list(&self.dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            names => names.map_err(|e| Error::io("list the directory", &self.dir, e))?,
        };
        let mut indices: Vec<_> = names.iter().filter_map(|name| segment_index(name)).collect();
        indices.sort_unstable();
        Ok(indices)
    }

    /// Read the head marker.
    pub fn head(&self, storage: &dyn Storage) -> Result<Head> {
        if self.single {
            return Ok(Head::Absent);
        }
        let path = self.dir.join(HEAD_NAME);
        let fail = |e| Error::io("read the head marker", &path, e);
        let mut bytes = [0; HEAD_BYTES + 1];
        let read = match storage.open(&path, Access::Read) {
            Ok(file) => read_full(&*file, &mut bytes, 0).map_err(fail)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Head::Absent),
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                return Ok(Head::Damaged(e.to_string()));
            }
            Err(e) => return Err(fail(e)),
        };
        Ok(match parse_head(bytes.get(..read).unwrap_or_default()) {
            Ok(head) => Head::At(head),
            Err(why) => Head::Damaged(why),
        })
    }

    /// Write the head marker, durably, before anything below it is removed.
    pub fn store_head(&self, options: &Options, head: u64) -> Result<()> {
        let path = self.dir.join(HEAD_NAME);
        replace(&*options.storage, &path, &encode_head(head), options.file_mode)
            .map_err(|e| Error::io("store the head marker", &path, e))
    }
}

fn sidecar_of_single(log: &Path) -> PathBuf {
    sidecar_dir(above(log)).join(log.file_name().unwrap_or_default())
}

/// The size of a segment, from the files: that of the first one that is followed by another.
pub fn segment_bytes_of(
    place: &Place,
    storage: &dyn Storage,
    indices: &[u64],
    default: u64,
) -> Result<u64> {
    let len = |index: u64| segment_len(place, storage, index);
    match *indices {
        [] => Ok(default),
        [first, second, ..] if second == first + 1 => {
            let guess = len(first)?.max(1);
            match place.head(storage)? {
                // A torn segment is shorter, and then the head seems to lie behind it.
                Head::At(head) if first < head / guess => {
                    let message = format!(
                        "segment size unknown: {} has {guess} bytes, and with segments of that \
                         size it lies below the head, byte {head}; say segment_bytes",
                        segment_name(first)
                    );
                    Err(Error::new(ErrorKind::InvalidArgument, message).at(&place.dir))
                }
                _ => Ok(guess),
            }
        }
        // All of it lies in the first segment, whatever its size.
        [0] => Ok(len(0)?.max(default)),
        [index, ..] => {
            let message = format!(
                "segment size unknown: {} is not followed by another, and nothing beside it \
                 tells; say segment_bytes",
                segment_name(index)
            );
            Err(Error::new(ErrorKind::InvalidArgument, message).at(&place.dir))
        }
    }
}

fn segment_len(place: &Place, storage: &dyn Storage, index: u64) -> Result<u64> {
    look_for_segment(place, storage, index)?.ok_or_else(|| {
        // Not "no log": its writer removed it a moment ago, and who looks again sees why.
        Error::new(ErrorKind::Corrupt, "the segment vanished after it was listed")
            .at(&place.dir.join(segment_name(index)))
    })
}

fn look_for_segment(place: &Place, storage: &dyn Storage, index: u64) -> Result<Option<u64>> {
    let path = place.dir.join(segment_name(index));
    match storage.open(&path, Access::Read) {
        Ok(file) => {
            let len = file.len().map_err(|e| Error::io("look at the segment", &path, e))?;
            Ok(Some(len))
        }
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
            Err(Error::new(ErrorKind::NotALog, e.to_string()).at(&path))
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("open the segment", &path, e)),
    }
}

/// Which segments count, where they end, and what is wrong with the next.
#[derive(Clone, Debug, Default)]
pub struct Surveyed {
    /// The segments.
    pub extent: Extent,
    /// Byte behind the last one before any gap.
    pub end: u64,
    /// Segments below the head: a removal that a crash undid.
    pub below: Vec<u64>,
    /// Why the segments behind the gap do not go on.
    pub gap: Option<String>,
}

/// Look at the size of every segment from the head on. Every one but the last must be exactly of
/// the segment size; what follows one that is not is told, not taken for a part of the log.
pub fn survey(
    place: &Place,
    storage: &dyn Storage,
    indices: &[u64],
    head: u64,
    segment_bytes: u64,
) -> Result<Surveyed> {
    let refuse = |index: u64, what: String| {
        let path = place.dir.join(segment_name(index));
        Err(Error::new(ErrorKind::Corrupt, what).at(&path))
    };
    let first = head / segment_bytes;
    if head > END_MAX {
        return refuse(first, format!("the head is byte {head}, beyond 2^63"));
    }
    let (below, from): (Vec<_>, Vec<_>) = indices.iter().partition(|&&index| index < first);
    for &index in &below {
        // What is removed must be what a removal left, and not what another size makes of it.
        match look_for_segment(place, storage, index)? {
            Some(len) if len != segment_bytes => {
                let message = format!(
                    "segment of {len} bytes, segment size {segment_bytes}: with that size it lies \
                     below the head, byte {head}, and must have exactly that"
                );
                return refuse(index, message);
            }
            // Gone is what it should be.
            _ => {}
        }
    }
    if from.first() != Some(&first) {
        return refuse(first, format!("the segment is missing that the head, byte {head}, is in"));
    }
    let mut found = Surveyed { below, ..Surveyed::default() };
    found.extent = Extent { first, next: first, stray: Vec::new() };
    for &index in &from {
        let start = index.saturating_mul(segment_bytes);
        if start > END_MAX {
            return refuse(index, format!("segment {index} of {segment_bytes} bytes, beyond 2^63"));
        }
        if found.gap.is_some() || index != found.extent.next {
            let missing = segment_name(found.extent.next);
            found.gap.get_or_insert_with(|| format!("segment {missing} is missing"));
            found.extent.stray.push(index);
            continue;
        }
        let len = segment_len(place, storage, index)?;
        if len > segment_bytes {
            return refuse(index, format!("segment of {len} bytes, segment size {segment_bytes}"));
        }
        found.extent.next = index + 1;
        found.end = start.saturating_add(len);
        if found.end > END_MAX {
            return refuse(index, format!("{len} bytes from byte {start} on, beyond 2^63"));
        }
        if len < segment_bytes && from.last() != Some(&index) {
            let name = segment_name(index);
            found.gap = Some(format!("segment {name} has {len} bytes, must have {segment_bytes}"));
        }
    }
    if found.end < head {
        return refuse(
            first,
            format!("the head is byte {head}, but the log ends at {}", found.end),
        );
    }
    Ok(found)
}
