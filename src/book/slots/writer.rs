//! Writing the slots.
//!
//! An append ends with its header: the slot counts the deeds since the last sync as one batch. Up
//! to the next sync, all appends change the same slot, and a power cut falls back to the other
//! slot. The first append after a sync takes the other slot. An append during a sync would change
//! the slot being synced, so the append waits for its turn.

use std::io;
use std::ops::Range;

use super::committed::{Followed, end_by_slots, read_slots, sum_more};
use crate::book::layouts::codec::Codec;
use crate::book::layouts::header::unreadable;
use crate::book::slots::{SLOTS_AT, Slot, is_after, newest_first};
use crate::error::Result;
use crate::ground::checksum::crc32_more;
use crate::ground::locks::{Mutex, lock};
use crate::log::{Extent, Seal};
use crate::storage::{File, write_full};

/// The slots of an open log.
#[derive(Debug)]
pub struct SlotWriter {
    codec: Codec,
    /// A reader's knowledge of the newest batch.
    followed: Followed,
    slots: Mutex<Slots>,
}

#[derive(Debug)]
struct Slots {
    /// The newest slot, and its place.
    newest: Slot,
    at: usize,
    /// The other slot, if intact.
    other: Option<Slot>,
    /// Whether the newest one is on stable storage.
    synced: bool,
}

impl SlotWriter {
    /// For the slots of a file, and the slot that gives the end of the log. If none does, the next
    /// write takes the older slot.
    pub fn new(
        codec: Codec,
        followed: Followed,
        slots: [Option<Slot>; 2],
        at: Option<usize>,
    ) -> Self {
        let at = at.or_else(|| newest_first(&slots).next().map(|(at, _)| at)).unwrap_or(0);
        let [first, second] = slots;
        let (newest, other) = if at == 0 { (first, second) } else { (second, first) };
        let slots = Slots { newest: newest.unwrap_or_default(), at, other, synced: true };
        Self { codec, followed, slots: Mutex::new(slots) }
    }
}

impl Seal for SlotWriter {
    /// The reference implementation takes zeros after the last deed for damage.
    fn counts(&self) -> bool {
        true
    }

    /// Count the deeds from byte `from` to the end of `extent`.
    fn cover(
        &self,
        file: &dyn File,
        from: u64,
        extent: &Extent,
        written: Option<&[u8]>,
    ) -> io::Result<()> {
        let mut slots = lock(&self.slots);
        let Slots { newest, at, other, synced } = *slots;
        let fir = extent.first.saturating_sub(1);
        // The first deed may set another epoch.
        let known = if newest.fir == fir { newest.records() } else { 0 };
        let (bat, sum) = if synced { (0, 0) } else { (newest.bat, newest.sum) };
        let sum = match written {
            Some(bytes) => crc32_more(sum, bytes),
            None => sum_more(file, sum, from, extent.end)?,
        };
        let slot = Slot {
            fir,
            las: fir + extent.records,
            seq: newest.seq.wrapping_add(u64::from(synced)),
            bat: bat + extent.records - known,
            sum,
        };
        let to = if seeded!(synced, "both-slots-change" => true) { 1 - at } else { at };
        if let Err(e) = put(file, to, &slot) {
            // The content before; if restoring fails, too, the other slot counts.
            let before = if synced { other } else { Some(newest) };
            if let Some(before) = before {
                let _ = seeded!(put(file, to, &before), "half-written-slot-stays" => Ok(()));
            }
            return Err(e);
        }
        let other = if synced { Some(newest) } else { other };
        *slots = Slots { newest: slot, at: to, other, synced: false };
        Ok(())
    }

    fn synced(&self) {
        lock(&self.slots).synced = true;
    }

    /// Whether the newest slot ends the log with `extent`. It does not if a newer slot was damaged
    /// and the mark vouches for its deeds: the next batch would be counted from the wrong place.
    fn is_sealed(&self, extent: &Extent) -> bool {
        lock(&self.slots).newest.records() == extent.records
    }

    /// Have the newest slot say that the log ends with `extent`.
    fn seal(&self, file: &dyn File, extent: &Extent) -> io::Result<()> {
        let mut slots = lock(&self.slots);
        let fir = extent.first.saturating_sub(1);
        let las = fir + extent.records;
        let Slots { newest, at, other, .. } = *slots;
        // A newer one whose deeds are not there would be reported at every opening.
        let is_newest = other.is_none_or(|other| !is_after(other.seq, newest.seq));
        if (newest.fir, newest.las) == (fir, las) && is_newest {
            return put(file, at, &newest);
        }
        // Its batch is the last deed, whatever the batches were.
        let bat = extent.records.min(1);
        let sum = if bat == 0 { 0 } else { sum_more(file, 0, extent.last_offset, extent.end)? };
        let latest = if is_newest { newest } else { other.unwrap_or(newest) };
        let seq = latest.seq.wrapping_add(1);
        let slot = Slot { fir, las, seq, bat, sum };
        put(file, 1 - at, &slot)?;
        // The opening syncs it before any append.
        *slots = Slots { newest: slot, at: 1 - at, other: Some(newest), synced: true };
        Ok(())
    }

    fn block_sum(&self, file: &dyn File, block: Range<u64>) -> io::Result<Option<u32>> {
        sum_more(file, 0, block.start, block.end).map(Some)
    }

    fn end_now(&self, file: &dyn File, known: &Extent, there: u64) -> io::Result<u64> {
        end_by_slots(file, self.codec, known, there, &self.followed)
    }

    fn first_now(&self, file: &dyn File, _known: u64) -> Result<Option<u64>> {
        let slots = read_slots(file).map_err(unreadable)?;
        let newest = newest_first(&slots).next().filter(|(_, slot)| slot.records() > 0);
        Ok(newest.map(|(_, slot)| slot.fir.saturating_add(1)))
    }
}

fn put(file: &dyn File, at: usize, slot: &Slot) -> io::Result<()> {
    let [first, second] = SLOTS_AT;
    let offset = if at == 0 { first } else { second };
    write_full(file, &slot.encode(), offset)
}
