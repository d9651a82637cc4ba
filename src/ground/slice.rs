//! Parts of slices that must exist by an invariant. A broken invariant is a panic, which poisons
//! the log's handle: never an empty payload.

use std::ops::{Bound, RangeBounds};

fn bounds(range: impl RangeBounds<usize>, len: usize) -> (usize, usize) {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&start) => start + 1,
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&end) => end + 1,
        Bound::Excluded(&end) => end,
        Bound::Unbounded => len,
    };
    (start, end)
}

/// A part of a slice.
///
/// # Panics
///
/// If the range is not within the slice.
#[inline]
#[track_caller]
#[allow(clippy::indexing_slicing)]
pub fn part(bytes: &[u8], range: impl RangeBounds<usize>) -> &[u8] {
    let (start, end) = bounds(range, bytes.len());
    &bytes[start..end]
}

/// A part of a slice, to be written.
///
/// # Panics
///
/// If the range is not within the slice.
#[inline]
#[track_caller]
#[allow(clippy::indexing_slicing)]
pub fn part_mut(bytes: &mut [u8], range: impl RangeBounds<usize>) -> &mut [u8] {
    let (start, end) = bounds(range, bytes.len());
    &mut bytes[start..end]
}

/// A value that must exist by an invariant: a number in a buffer of checked size.
///
/// # Panics
///
/// If the invariant is broken.
#[inline]
#[track_caller]
pub fn there<T>(wanted: Option<T>) -> T {
    match wanted {
        Some(wanted) => wanted,
        None => unreachable!("checked before"),
    }
}

/// The little-endian number at a byte, if all of it is there.
#[inline]
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The little-endian number at a byte, if all of it is there.
#[inline]
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The big-endian number at a byte, if all of it is there.
#[cfg(feature = "nostr")]
#[inline]
pub fn u16_be_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The big-endian number at a byte, if all of it is there.
#[cfg(feature = "nostr")]
#[inline]
pub fn u32_be_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The big-endian number at a byte, if all of it is there.
#[cfg(feature = "nostr")]
#[inline]
pub fn u64_be_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
