//! The coverage of an index, and the store to which the index belongs.
//!
//! An index names its store by the first and the last event that it covers, and counts in this
//! store only. Another store, or another branch of a copy, may have the same segments and sizes
//! with other events. A damaged page proves nothing: the index knows more about the page than the
//! page does.

use crate::error::{ErrorKind, Result};
use crate::nostr::bytes::event::{Id, Location};
use crate::nostr::log::entry::Lsn;
use crate::nostr::pages::segments::Segments;
use crate::nostr::pages::walk::Step;

/// The size of an event's location and id.
const EVENT_BYTES: usize = 40;
/// The size of an index's stored coverage.
pub const COVERED_BYTES: usize = 24 + 2 * EVENT_BYTES;

/// An event and its location.
type Known = (Location, Id);

/// The first and the last intact event of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    pub first: Option<Known>,
    pub last: Option<Known>,
}

/// The coverage of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Covered {
    /// The number of compactions.
    pub compactions: u64,
    /// The last segment.
    pub segment: u32,
    /// The end of the last segment.
    pub end: u32,
    /// The last entry of the write-ahead log that sets flags.
    pub flags: Lsn,
    /// The first and the last covered event.
    pub ends: Ends,
}

impl Covered {
    /// The coverage of an index that lacks moves of a compaction: a number of compactions that no
    /// store has.
    pub const MOVING: Self = Self {
        compactions: u64::MAX,
        segment: 0,
        end: 0,
        flags: Lsn(0),
        ends: Ends { first: None, last: None },
    };

    pub fn encode(self) -> [u8; COVERED_BYTES] {
        let mut bytes = Vec::with_capacity(COVERED_BYTES);
        bytes.extend(self.compactions.to_be_bytes());
        bytes.extend(self.segment.to_be_bytes());
        bytes.extend(self.end.to_be_bytes());
        bytes.extend(self.flags.0.to_be_bytes());
        for event in [self.ends.first, self.ends.last] {
            // The header of a segment holds no event.
            let (at, id) = event.unwrap_or((Location { segment: 0, offset: 0 }, Id([0; 32])));
            bytes.extend(at.segment.to_be_bytes());
            bytes.extend(at.offset.to_be_bytes());
            bytes.extend(id.0);
        }
        bytes.first_chunk().copied().unwrap_or([0; COVERED_BYTES])
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (&compactions, rest) = bytes.split_first_chunk()?;
        let (&segment, rest) = rest.split_first_chunk()?;
        let (&end, rest) = rest.split_first_chunk()?;
        let (&flags, rest) = rest.split_first_chunk()?;
        let (first, rest) = rest.split_first_chunk::<EVENT_BYTES>()?;
        let (last, []) = rest.split_first_chunk::<EVENT_BYTES>()? else { return None };
        Some(Self {
            compactions: u64::from_be_bytes(compactions),
            segment: u32::from_be_bytes(segment),
            end: u32::from_be_bytes(end),
            flags: Lsn(u64::from_be_bytes(flags)),
            ends: Ends { first: decode_event(first)?, last: decode_event(last)? },
        })
    }
}

fn decode_event(bytes: &[u8; EVENT_BYTES]) -> Option<Option<Known>> {
    let (&segment, rest) = bytes.split_first_chunk()?;
    let (&offset, rest) = rest.split_first_chunk()?;
    let id = Id(*rest.first_chunk()?);
    let at = Location { segment: u32::from_be_bytes(segment), offset: u32::from_be_bytes(offset) };
    Some((at.offset > 0).then_some((at, id)))
}

impl Ends {
    /// Read the first and the last event of segments.
    pub fn of(segments: &Segments) -> Result<Self> {
        let mut ends = Self::default();
        for (&segment, open) in &segments.by_id {
            let mut scan = open.segment.scan(0);
            while let (None, Some(step)) = (ends.first, scan.step()?) {
                if let Step::Record(seen) = step {
                    let at = Location { segment, offset: seen.offset };
                    ends.first = Some((at, scan.looker().record(seen).event.id));
                }
            }
        }
        for (&segment, open) in segments.by_id.iter().rev() {
            let mut scan = open.segment.reverse();
            while let (None, Some(step)) = (ends.last, scan.step()?) {
                if let Step::Record(seen) = step {
                    let at = Location { segment, offset: seen.offset };
                    ends.last = Some((at, scan.looker().record(seen).event.id));
                }
            }
        }
        Ok(ends)
    }

    /// Whether segments have these events at their locations, as far as the pages are intact.
    pub fn are_in(&self, segments: &Segments) -> Result<bool> {
        let mut buf = Vec::new();
        for (at, id) in [self.first, self.last].into_iter().flatten() {
            let is_there = match segments.read(at, &mut buf) {
                Ok(found) => found.event.id == id,
                Err(error) if error.kind() == ErrorKind::Corrupt => true,
                Err(error) if error.kind() == ErrorKind::OutOfRange => false,
                Err(error) => return Err(error),
            };
            if !is_there {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_position_is_decoded() {
        let event = (Location { segment: 3, offset: 8192 }, Id([7; 32]));
        for ends in [Ends::default(), Ends { first: Some(event), last: None }] {
            let covered = Covered { compactions: 1, segment: 2, end: 4096, flags: Lsn(9), ends };
            assert_eq!(Covered::decode(&covered.encode()), Some(covered));
        }
        // An index of an earlier version names no store.
        assert_eq!(Covered::decode(&[0; 24]), None);
    }
}
