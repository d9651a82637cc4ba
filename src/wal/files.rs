//! The files of a write-ahead log: one, or segments and a head marker.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::codec::{segment_index, segment_name};
use crate::error::{Error, ErrorKind, Result};
use crate::log::Place;
use crate::storage::segmented::Listing;
use crate::storage::segmented::head::Head;
use crate::storage::{Access, File, Storage, names_in, read_full};

/// Beyond it no log lies: counting on from a head or segment up there would overflow.
const END_MAX: u64 = 1 << 63;

/// The segments in the directory, sorted.
pub fn indices(storage: &dyn Storage, place: &Place) -> Result<Vec<u64>> {
    let names = names_in(storage, &place.dir)?;
    let mut indices: Vec<_> = names.iter().filter_map(|name| segment_index(name)).collect();
    indices.sort_unstable();
    Ok(indices)
}

/// The checksum in a record's header, whether it fits the payload or not.
pub fn stored_sum(file: &dyn File, offset: u64) -> io::Result<Option<u32>> {
    let mut sum = [0; 4];
    let read = read_full(file, &mut sum, offset)?;
    Ok((read == sum.len()).then_some(u32::from_le_bytes(sum)))
}

/// The size of a segment, by the files: the most frequent size among segments before another
/// segment. In a log without damage all of them have the segment size. If two sizes are equally
/// frequent, the larger counts, because a crash makes segments shorter.
pub fn segment_bytes_of(
    place: &Place,
    storage: &dyn Storage,
    indices: &[u64],
    default: u64,
) -> Result<u64> {
    let unknown = |message: String| {
        let message = format!("segment size unknown: {message}; pass segment_bytes=");
        Err(Error::new(ErrorKind::InvalidArgument, message).at(&place.dir))
    };
    let len = |index: u64| segment_len(place, storage, index);
    let mut votes = BTreeMap::new();
    for (index, next) in indices.iter().zip(indices.iter().skip(1)) {
        if *next == index + 1 {
            *votes.entry(len(*index)?.max(1)).or_insert(0) += 1;
        }
    }
    let guess = votes.into_iter().max_by_key(|&(bytes, count)| (count, bytes));
    match (guess, indices) {
        (_, []) => Ok(default),
        (Some((guess, _)), [first, ..]) => match Head::load(storage, &place.dir)? {
            // A torn segment is shorter, and then the head seems to lie after it.
            Head::At(head) if *first < head / guess => unknown(format!(
                "most segments have {guess} bytes, and with segments of that size {} lies below \
                 the head, byte {head}",
                segment_name(*first)
            )),
            _ => Ok(guess),
        },
        // All of it lies in the first segment, whatever its size.
        (None, [0]) => Ok(len(0)?.max(default)),
        (None, [index, ..]) => unknown(format!(
            "{} is not followed by another, and nothing beside it names the size",
            segment_name(*index)
        )),
    }
}

fn segment_len(place: &Place, storage: &dyn Storage, index: u64) -> Result<u64> {
    Ok(open_segment(place, storage, index, Access::Read)?.1)
}

fn open_segment(
    place: &Place,
    storage: &dyn Storage,
    index: u64,
    access: Access,
) -> Result<(Box<dyn File>, u64)> {
    open_if_there(place, storage, index, access)?.ok_or_else(|| {
        // Do not report a missing log: a writer has just removed the segment, and a second
        // inspection finds out why.
        Error::new(ErrorKind::Corrupt, "the segment vanished after it was listed")
            .at(&place.dir.join(segment_name(index)))
    })
}

/// Open a segment, and look how long it is.
fn open_if_there(
    place: &Place,
    storage: &dyn Storage,
    index: u64,
    access: Access,
) -> Result<Option<(Box<dyn File>, u64)>> {
    let path = place.dir.join(segment_name(index));
    match storage.open(&path, access) {
        Ok(file) => {
            let len = file.len().map_err(|e| Error::io("look at the segment", &path, e))?;
            Ok(Some((file, len)))
        }
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
            Err(Error::new(ErrorKind::NotALog, e.to_string()).at(&path))
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("open the segment", &path, e)),
    }
}

/// The log's segments: their end, and any defect of the next segment.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    /// The segments that count, those after a gap, and those below the head.
    pub extent: Listing,
    /// Byte after the last one before any gap.
    pub end: u64,
    /// Why the segments after the gap do not follow.
    pub gap: Option<String>,
    /// Whether the defect makes the log readable only.
    pub only_readable: bool,
    /// Whether any segment has the segment size, or none has another.
    pub fits: bool,
}

/// Check the size of every segment from the head on. Every segment except for the last must have
/// the segment size. After a segment of another size, segments are reported, and do not count as a
/// part of the log.
pub fn check_segments(
    place: &Place,
    storage: &dyn Storage,
    indices: &[u64],
    head: u64,
    segment_bytes: u64,
    access: Access,
) -> Result<Segments> {
    let first = head / segment_bytes;
    let (below, from): (Vec<_>, Vec<_>) = indices.iter().partition(|&&index| index < first);
    let mut found = Segments { end: head, ..Segments::default() };
    found.extent =
        Listing { first, next: first, orphans: Vec::new(), stale: below, ..Listing::default() };
    for &index in &found.extent.stale {
        // A leftover of a removal has the full segment size. With a wrong size, a segment of the
        // log could look like a leftover.
        match open_if_there(place, storage, index, Access::Read)? {
            Some((_, len)) if len == segment_bytes => found.fits = true,
            Some((_, len)) => {
                let name = segment_name(index);
                found.gap.get_or_insert_with(|| {
                    format!(
                        "segment {name} has {len} bytes and lies below the head, byte {head}, if \
                         the segment size is {segment_bytes}; then it must have exactly that"
                    )
                });
                found.only_readable = true;
            }
            // The segment should be removed.
            _ => {}
        }
    }
    if head > END_MAX {
        found.gap = Some(format!("the head is byte {head}, beyond 2^63"));
        found.only_readable = true;
        return Ok(found);
    }
    // If everything was dropped up to a border, no segment need exist.
    let all_dropped = from.is_empty() && head.is_multiple_of(segment_bytes);
    if from.first() != Some(&first) && !all_dropped {
        let name = segment_name(first);
        found.gap = Some(format!("segment {name} is missing, in which the head lies, byte {head}"));
        found.only_readable = true;
    }
    for &index in &from {
        let begin = index.saturating_mul(segment_bytes);
        let name = segment_name(index);
        if begin >= END_MAX {
            found.gap = Some(format!("segment {name} lies beyond 2^63"));
            found.only_readable = true;
            continue;
        }
        if found.gap.is_some() || index != found.extent.next {
            found.fits |= segment_len(place, storage, index)? == segment_bytes;
            let missing = segment_name(found.extent.next);
            found.gap.get_or_insert_with(|| format!("segment {missing} is missing"));
            seeded!(found.extent.orphans.push(index), "segments-after-a-gap-ignored" => ());
            continue;
        }
        let len = match open_segment(place, storage, index, access) {
            Ok((file, len)) => {
                found.extent.keep(index, Arc::from(file));
                len
            }
            // A segment without further appends need not be writable.
            Err(_) if access == Access::Write => segment_len(place, storage, index)?,
            Err(e) => return Err(e),
        };
        found.fits |= len == segment_bytes;
        found.extent.next = index + 1;
        found.end = begin + len.min(segment_bytes);
        if len > segment_bytes || (len < segment_bytes && from.last() != Some(&index)) {
            found.gap = Some(format!("segment {name} has {len} bytes, must have {segment_bytes}"));
            found.only_readable |= len > segment_bytes;
        }
    }
    if found.end < head {
        found.gap = Some(format!("the head is byte {head}, but the log ends at {}", found.end));
        found.only_readable = true;
        found.end = head;
    }
    Ok(found)
}

/// Whether a name in a directory is that of a segment; anything else is not ours to look at.
pub fn names_segment(path: &Path) -> bool {
    path.file_name().is_some_and(|name| segment_index(name).is_some())
}
