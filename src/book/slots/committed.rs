//! The committed end of a log by its slots, and the check of the slots' deeds.
//!
//! The newest slot with a valid batch gives the end of the log; later deeds are never a part of the
//! log. A commit writes the older slot after the deeds and syncs both at once, so a power cut may
//! leave a slot without its deeds: then the older slot counts.

use std::io;

use crate::book::layouts::codec::Codec;
use crate::book::slots::{DEEDS_AT, SLOT_BYTES, SLOTS_AT, Slot, newest_first};
use crate::ground::checksum::crc32_more;
use crate::ground::locks::{Mutex, lock};
use crate::ground::slice::part;
use crate::log::Extent;
use crate::scan::framing::{Framing as _, FramingExt as _};
use crate::scan::search::find_intact;
use crate::scan::{Scanned, Scanner};
use crate::storage::{File, read_full, sum_of};

/// The highest limit that may be set.
const DEED_BYTES_ANY: u64 = 1 << 62;

/// A place between deeds: the number of deeds before, and the byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boundary {
    /// Deeds before it.
    pub records: u64,
    /// Its byte.
    pub offset: u64,
}

impl Boundary {
    /// Before the first deed.
    pub const START: Self = Self { records: 0, offset: DEEDS_AT };
}

/// The result of checking a slot's deeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// All are there, up to this byte.
    Whole(u64),
    /// They end here, by their lengths.
    Short(Boundary),
    /// All are there by their lengths, but the checksum of the newest batch differs.
    Differs {
        /// The begin of the batch.
        from: u64,
        /// Where it ends.
        end: u64,
        /// Its checksum.
        sum: u32,
    },
}

/// The end of a log by its slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Committed {
    /// The deeds of this slot are there, up to the byte. `newest` has the check of a newer slot's
    /// deeds.
    Up {
        /// Which slot.
        at: usize,
        /// Byte after its last deed.
        end: u64,
        /// A newer slot whose deeds are not there.
        newest: Option<(Slot, Held)>,
    },
    /// No slot with deeds holds, though a slot counts some, or deeds lie in the log.
    Not {
        /// The newest intact slot that counts deeds.
        newest: Option<(Slot, Held)>,
    },
}

/// The checksum of the newest batch as far as a reader has followed it: the next look continues
/// there.
#[derive(Debug, Default)]
pub struct Followed(Mutex<Option<Batch>>);

#[derive(Clone, Copy, Debug)]
struct Batch {
    /// Deeds before the batch.
    before: u64,
    /// Summed up to this byte.
    to: u64,
    sum: u32,
}

impl Followed {
    /// Whether the bytes up to `end` have the checksum of a slot, by what was summed at the last look.
    fn goes_on(&self, file: &dyn File, slot: &Slot, end: Boundary) -> io::Result<bool> {
        let before = slot.records() - slot.bat;
        let known = (*lock(&self.0)).filter(|batch| batch.before == before);
        let Some(Batch { to, sum, .. }) = known.filter(|batch| batch.to <= end.offset) else {
            return Ok(false);
        };
        let same = sum_more(file, sum, to, end.offset)? == slot.sum;
        if same {
            self.note(slot, end);
        }
        Ok(same)
    }

    /// The bytes of a slot's batch were held against its checksum.
    fn note(&self, slot: &Slot, to: Boundary) {
        let before = slot.records() - slot.bat;
        *lock(&self.0) = Some(Batch { before, to: to.offset, sum: slot.sum });
    }
}

/// The slots of a file, `None` for a damaged one.
pub fn read_slots(file: &dyn File) -> io::Result<[Option<Slot>; 2]> {
    let mut slots = [None; 2];
    for (slot, at) in slots.iter_mut().zip(SLOTS_AT) {
        let mut bytes = [0; SLOT_BYTES];
        let read = read_full(file, &mut bytes, at)?;
        *slot = Slot::parse(part(&bytes, ..read));
    }
    Ok(slots)
}

/// The end of the log by its slots. `known` is a place between deeds, and the count begins there.
pub fn committed(
    file: &dyn File,
    codec: Codec,
    slots: &[Option<Slot>; 2],
    known: Boundary,
    file_end: u64,
    followed: &Followed,
) -> io::Result<Committed> {
    // A deed beyond a handle's limit is committed all the same. Reading refuses the deed, by its
    // length.
    let codec = Codec { deed_bytes_max: DEED_BYTES_ANY, ..codec };
    let all_initial = slots.iter().all(|slot| slot.is_some_and(|slot| slot.records() == 0));
    let mut newest = None;
    for (at, slot) in newest_first(slots) {
        if slot.records() > 0 {
            match hold(file, codec, &slot, known, file_end, followed)? {
                Held::Whole(end) => return Ok(Committed::Up { at, end, newest }),
                // The valid deeds end before the earlier of two batches that differ.
                held @ Held::Differs { .. } => newest = Some((slot, held)),
                held => newest = newest.or(Some((slot, held))),
            }
        } else if all_initial
            || (newest.is_none() && !deed_follows(file, codec, DEEDS_AT, file_end)?)
        {
            // The bytes after the header of an empty log were never committed. If the other slot is
            // damaged, this holds only if no deed lies there.
            return Ok(Committed::Up { at, end: DEEDS_AT, newest });
        }
    }
    Ok(Committed::Not { newest })
}

/// Whether a deed lies anywhere from here on, by its lengths.
pub fn deed_follows(file: &dyn File, codec: Codec, offset: u64, end: u64) -> io::Result<bool> {
    Ok(find_intact(file, &codec.by_lengths(), offset, end)?.is_some())
}

/// Whether a deed begins here, by its lengths.
pub fn begins_at(file: &dyn File, codec: Codec, offset: u64, end: u64) -> io::Result<bool> {
    let mut scanner = Scanner::of_frames(codec, offset, end);
    Ok(matches!(scanner.next(file)?, Scanned::Record { .. }))
}

/// Whether the log has the deeds that a slot counts. The lengths are right up to the known place.
/// Only the checksum of the newest batch can check the batch's bytes.
fn hold(
    file: &dyn File,
    codec: Codec,
    slot: &Slot,
    known: Boundary,
    file_end: u64,
    followed: &Followed,
) -> io::Result<Held> {
    let (all, before_batch) = (slot.records(), slot.records() - slot.bat);
    let mut batch = Some(known).filter(|known| known.records == before_batch);
    let end = match known.records <= all {
        true => {
            let reached = |place: Boundary| {
                if place.records == before_batch {
                    batch = Some(place);
                }
            };
            forward(file, codec, known, all, file_end, reached)?
        }
        false => back(file, codec, known, all)?.unwrap_or(known),
    };
    if end.records != all {
        return Ok(Held::Short(end));
    }
    if followed.goes_on(file, slot, end)? {
        return Ok(Held::Whole(end.offset));
    }
    let batch = match batch {
        Some(batch) => batch,
        None => match back(file, codec, end, before_batch)? {
            Some(batch) => batch,
            None => return Ok(Held::Short(end)),
        },
    };
    let sum = sum_more(file, 0, batch.offset, end.offset)?;
    Ok(match sum == slot.sum {
        true => {
            followed.note(slot, end);
            Held::Whole(end.offset)
        }
        false => Held::Differs { from: batch.offset, end: end.offset, sum },
    })
}

/// Walk on to the place after `records` deeds, or as far as they go.
fn forward(
    file: &dyn File,
    codec: Codec,
    from: Boundary,
    records: u64,
    end: u64,
    mut reached: impl FnMut(Boundary),
) -> io::Result<Boundary> {
    let mut scanner = Scanner::of_frames(codec.by_lengths(), from.offset, end);
    let mut place = from;
    while place.records < records {
        let Scanned::Record { .. } = scanner.next(file)? else { break };
        place = Boundary { records: place.records + 1, offset: scanner.position() };
        reached(place);
    }
    Ok(place)
}

/// Walk back to the place after `records` deeds, by the lengths at the ends of deeds; `None` where they
/// lead elsewhere.
fn back(
    file: &dyn File,
    codec: Codec,
    from: Boundary,
    records: u64,
) -> io::Result<Option<Boundary>> {
    let mut place = from;
    while place.records > records {
        let (mut trailer, mut head) = ([0; 8], [0; 8]);
        let Some(trailer_at) = place.offset.checked_sub(8) else { return Ok(None) };
        let read = read_full(file, &mut trailer, trailer_at)?;
        let len = codec.claimed_len(part(&trailer, ..read));
        let offset = len.and_then(|len| place.offset.checked_sub(len));
        let Some(offset) = offset.filter(|&offset| offset >= DEEDS_AT) else { return Ok(None) };
        read_full(file, &mut head, offset)?;
        if head != trailer {
            return Ok(None);
        }
        place = Boundary { records: place.records - 1, offset };
    }
    Ok(Some(place))
}

/// CRC-32 of the bytes `from..end`, continuing from the CRC-32 of the bytes before (0 at the
/// start).
pub fn sum_more(file: &dyn File, before: u32, from: u64, end: u64) -> io::Result<u32> {
    let sum = sum_of(file, from..end, before, crc32_more)?;
    sum.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// For a reader while a writer appends: the byte up to which `there` bytes are committed. The
/// reader knows them up to the end of `known`. A half-written slot counts at the next look.
pub fn end_by_slots(
    file: &dyn File,
    codec: Codec,
    known: &Extent,
    there: u64,
    followed: &Followed,
) -> io::Result<u64> {
    let slots = read_slots(file)?;
    let known_place = Boundary { records: known.records, offset: known.end };
    Ok(match committed(file, codec, &slots, known_place, there, followed)? {
        Committed::Up { end, .. } => end.clamp(known.end.min(there), there),
        Committed::Not { .. } => known.end.min(there),
    })
}
