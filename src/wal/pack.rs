//! Several payloads packed into a record: a crash leaves all or none.

use super::codec::FORMAT;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::slice::part_mut;

const PACK_MAGIC: &[u8; 4] = b"DBPK";

/// Pack several payloads into one: `"DBPK"`, the count, and each payload after its length (u32,
/// little-endian). A record has a single checksum: after a crash the log has all payloads or none.
/// Other programs see an ordinary record.
///
/// # Errors
///
/// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a payload or a number of payloads beyond 32 bits.
pub fn pack<T: AsRef<[u8]>>(parts: impl IntoIterator<Item = T>) -> Result<Vec<u8>> {
    let mut packed = [&PACK_MAGIC[..], &[0; 4]].concat();
    let mut count = 0u32;
    for part in parts {
        let part = part.as_ref();
        let too_large = || {
            let message = format!("part of {} bytes, or {count} parts, beyond 2^32", part.len());
            Error::new(ErrorKind::TooLarge, message).of(FORMAT)
        };
        let len = u32::try_from(part.len()).map_err(|_| too_large())?;
        count = count.checked_add(1).ok_or_else(too_large)?;
        packed.extend_from_slice(&len.to_le_bytes());
        packed.extend_from_slice(part);
    }
    part_mut(&mut packed, 4..8).copy_from_slice(&count.to_le_bytes());
    Ok(packed)
}

/// The payloads in a packed payload.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    left: &'a [u8],
    count: u32,
}

impl<'a> Parts<'a> {
    /// The parts of a payload that [`append_atomic`](super::Wal::append_atomic) packed; `None` for any other.
    pub fn of(payload: &'a [u8]) -> Option<Self> {
        let rest = payload.strip_prefix(PACK_MAGIC)?;
        let (count, left) = rest.split_first_chunk::<4>()?;
        let parts = Self { left, count: u32::from_le_bytes(*count) };
        // All of it, or not packed by us.
        let mut walk = parts;
        for _ in 0..walk.count {
            walk.step()?;
        }
        walk.left.is_empty().then_some(parts)
    }

    fn step(&mut self) -> Option<&'a [u8]> {
        let (len, rest) = self.left.split_first_chunk::<4>()?;
        let (part, left) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        self.left = left;
        Some(part)
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.count = self.count.checked_sub(1)?;
        self.step()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count as usize, Some(self.count as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_payloads_round_trip_and_others_fail() {
        for parts in [vec![], vec![&b""[..]], vec![b"one", b"", b"three"]] {
            let packed = pack(&parts).unwrap();
            assert_eq!(Parts::of(&packed).unwrap().collect::<Vec<_>>(), parts);
            for cut in 0..packed.len() {
                assert!(Parts::of(&packed[..cut]).is_none());
            }
            assert!(Parts::of(&[&packed[..], b"x"].concat()).is_none());
        }
        assert!(Parts::of(b"DBPK\xff\xff\xff\xff").is_none());
    }
}
