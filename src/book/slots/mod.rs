//! The header of the layout `slots`: two slots. A commit writes the older slot. Pure, no I/O.
//!
//! ```text
//! 0      slot 0
//! 4096   slot 1
//! 8192   deeds
//! slot   | mag 4 | ver 4 | fir 8 | las 8 | seq 8 | bat 8 | sum 4 | crc 4 |
//! ```
//!
//! `fir` is the event before the first one, `las` the last one, `seq` counts the commits, `bat` the
//! deeds of the newest batch, `sum` is the CRC-32 of their bytes, lengths included, and `crc` that of
//! the 44 bytes before it. A deed has no checksum of its own.
//!
//! Source: the head of the reference implementation's branch.

pub(crate) mod backup;
pub(super) mod committed;
pub(super) mod find_end;
pub(super) mod writer;

use super::layouts::packed::{MAGIC, VERSION};
use crate::ground::checksum::crc32;
use crate::ground::slice::{part, u32_at, u64_at};

/// Size of a slot.
pub const SLOT_BYTES: usize = 48;
/// The begins of the slots.
pub const SLOTS_AT: [u64; 2] = [0, 4096];
/// The begin of the first deed.
pub const DEEDS_AT: u64 = 8192;

const CRC_AT: usize = 44;

/// A slot's statement about the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// The event before the first one.
    pub fir: u64,
    /// The last event; `fir` while there is none.
    pub las: u64,
    /// Counts the commits.
    pub seq: u64,
    /// Deeds in the newest batch.
    pub bat: u64,
    /// CRC-32 of the newest batch's bytes.
    pub sum: u32,
}

impl Slot {
    /// The slot of a log without deeds.
    pub fn initial(epoch: u64) -> Self {
        Self { fir: epoch, las: epoch, ..Self::default() }
    }

    /// Deeds in the log.
    pub fn records(&self) -> u64 {
        self.las - self.fir
    }

    /// Its bytes.
    pub fn encode(&self) -> [u8; SLOT_BYTES] {
        let mut bytes = [0; SLOT_BYTES];
        let numbers = [self.fir, self.las, self.seq, self.bat].map(u64::to_le_bytes).concat();
        let all =
            [&MAGIC.to_le_bytes()[..], &VERSION.to_le_bytes(), &numbers, &self.sum.to_le_bytes()];
        let (covered, crc) = bytes.split_at_mut(CRC_AT);
        covered.copy_from_slice(&all.concat());
        crc.copy_from_slice(&crc32(covered).to_le_bytes());
        bytes
    }

    /// Read a slot; `None` where none is, or a damaged one.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let magic = u32_at(bytes, 0)? == MAGIC && u32_at(bytes, 4)? == VERSION;
        let intact = magic && u32_at(bytes, CRC_AT)? == crc32(part(bytes, ..CRC_AT));
        let (fir, las) = (u64_at(bytes, 8)?, u64_at(bytes, 16)?);
        let (seq, bat, sum) = (u64_at(bytes, 24)?, u64_at(bytes, 32)?, u32_at(bytes, 40)?);
        // A batch is at least one deed, and no more than there are.
        let possible =
            las.checked_sub(fir).is_some_and(|deeds| bat <= deeds && (bat > 0 || deeds == 0));
        (intact && possible).then_some(Self { fir, las, seq, bat, sum })
    }
}

/// A log without deeds: all of its file.
pub fn encode_empty(epoch: u64) -> Vec<u8> {
    let mut file = Slot::initial(epoch).encode().to_vec();
    file.resize(SLOTS_AT[1] as usize, 0);
    file.extend_from_within(..SLOT_BYTES);
    file.resize(DEEDS_AT as usize, 0);
    file
}

/// The places of the intact slots, the newest first.
pub fn newest_first(slots: &[Option<Slot>; 2]) -> impl Iterator<Item = (usize, Slot)> {
    let [first, second] = *slots;
    let newer =
        second.is_some_and(|second| first.is_none_or(|first| is_after(second.seq, first.seq)));
    let both = [(0, first), (1, second)];
    let ordered = if newer { [both[1], both[0]] } else { both };
    ordered.into_iter().filter_map(|(at, slot)| Some((at, slot?)))
}

/// Whether a commit came after another one. After the last number of all comes 0.
pub fn is_after(one: u64, other: u64) -> bool {
    one != other && one.wrapping_sub(other) < 1 << 63
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Golden: `head-empty100` and the newest slot of `head-5x3`.
    #[test]
    fn a_slot_has_the_golden_checksums() {
        let crc = |slot: Slot| u32_at(&slot.encode(), CRC_AT).unwrap_or(0);
        assert_eq!(crc(Slot::initial(100)), 0xaccc_122f);
        let newest = Slot { fir: 0, las: 5, seq: 3, bat: 2, sum: 0x7302_4b00 };
        assert_eq!(crc(newest), 0x209a_e73e);
        assert_eq!(Slot::parse(&newest.encode()), Some(newest));
    }

    #[test]
    fn a_slot_that_cannot_be_is_none() {
        let slot = Slot { fir: 4, las: 9, seq: 1, bat: 5, sum: 7 };
        assert_eq!(Slot::parse(&slot.encode()), Some(slot));
        for wrong in [Slot { bat: 6, ..slot }, Slot { bat: 0, ..slot }, Slot { las: 3, ..slot }] {
            assert_eq!(Slot::parse(&wrong.encode()), None, "{wrong:?}");
        }
        for at in 0..SLOT_BYTES {
            let mut damaged = slot.encode();
            damaged[at] ^= 1;
            assert_eq!(Slot::parse(&damaged), None, "byte {at}");
            assert_eq!(Slot::parse(&slot.encode()[..at]), None);
        }
        // A slot of another format or version, whose checksum is right.
        for at in [0, 4] {
            let mut other = slot.encode();
            other[at] ^= 1;
            let crc = crc32(&other[..CRC_AT]);
            other[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
            assert_eq!(Slot::parse(&other), None, "byte {at}");
        }
    }

    #[test]
    fn the_newer_of_two_slots_comes_first() {
        let slot = |seq| Some(Slot { seq, ..Slot::initial(0) });
        let order =
            |slots: [Option<Slot>; 2]| newest_first(&slots).map(|(at, _)| at).collect::<Vec<_>>();
        assert_eq!(order([slot(1), slot(2)]), [1, 0]);
        assert_eq!(order([slot(3), slot(2)]), [0, 1]);
        assert_eq!(order([slot(0), slot(0)]), [0, 1]);
        assert_eq!(order([slot(u64::MAX), slot(0)]), [1, 0]);
        // Half of all numbers apart, neither came after the other.
        assert_eq!(order([slot(0), slot(1 << 63)]), [0, 1]);
        assert_eq!(order([slot(1 << 63), slot(0)]), [0, 1]);
        assert_eq!(order([None, slot(1)]), [1]);
        assert!(order([None, None]).is_empty());
    }
}
