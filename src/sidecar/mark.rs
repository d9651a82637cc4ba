//! The high-water mark: how far the log is known to be on stable storage.
//!
//! ```text
//! slot (512 bytes apart)
//!   0 magic 4   4 version 2   6 flags 2 (bit 0: closed, bit 1: exact)   8 seq 8
//!  16 first 8  24 records 8  32 end 8  40 last_offset 8  48 first_sum 4  52 last_sum 4
//!  56 index_entries 8  64 index_chain 4  68 zero 4  72 device 8  80 inode 8  88 created 8
//!  96 start 8  104 zero 20  124 crc 4 (CRC-32 of bytes 0..124)
//! ```
//!
//! Little-endian. A store writes the older slot, so a torn store leaves the newer slot. A writer
//! stores the mark only after the data's fsync has returned, so the disk has the records up to the
//! mark. A damaged slot is neither intact nor all zeros, and may have been the newest: the other
//! slot is true, but the writer may have acknowledged more since.

use std::io;
use std::path::Path;

use super::dir::PRIVATE_MODE;
use crate::ground::checksum::crc32;
use crate::ground::slice::part;
use crate::storage::{Access, File, FileId, Storage, read_full, replace, write_full};

pub(super) const MARK_NAME: &str = "mark";
const MAGIC: &[u8; 4] = b"DBMK";
const VERSION: u16 = 1;
const FLAG_CLOSED: u16 = 1;
const FLAG_EXACT: u16 = 2;
const SLOT_BYTES: usize = 128;
const SLOT_STRIDE: u64 = 512;
const CRC_AT: usize = SLOT_BYTES - 4;

/// The durable part of a log, as the mark states it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Whether the writer closed the log: the file ends at `end`.
    pub closed: bool,
    /// Whether marks are made durable with every sync: nothing after `end` was acknowledged, not
    /// even before a power cut that took newer marks.
    pub exact: bool,
    /// Ordinal of the first record, or of the one to come.
    pub first: u64,
    /// Number of durable records.
    pub records: u64,
    /// Byte after the last durable record.
    pub end: u64,
    /// Byte of the last durable record.
    pub last_offset: u64,
    /// Stored checksum of the first record: distinguishes logs.
    pub first_sum: u32,
    /// Stored checksum of the last durable record: ties the mark to the log.
    pub last_sum: u32,
    /// Entries of the index that describe durable records.
    pub index_entries: u64,
    /// Chain value of the last of them.
    pub index_chain: u32,
    /// The log's file.
    pub file: FileId,
    /// Byte of the first record, for logs whose prefix can be dropped.
    pub start: u64,
    /// The other slot is damaged, so a newer mark may have been lost. Only reading sets this flag.
    pub older: bool,
}

/// The mark as found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadedMark {
    /// The newest intact slot.
    Mark(Mark),
    /// No file.
    Missing,
    /// A file without an intact slot.
    Damaged,
}

/// How an opening used the mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkUse {
    /// It agrees with the log.
    Used,
    /// There is none.
    Missing,
    /// Neither slot is intact.
    Damaged,
    /// It is another log's.
    Foreign,
    /// The mark belongs to this log, and the log ends below the mark.
    Lost,
}

impl MarkUse {
    /// `used`, `missing`, `damaged`, `foreign`. A log that ends below its mark has `used`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Used | Self::Lost => "used",
            Self::Missing => "missing",
            Self::Damaged => "damaged",
            Self::Foreign => "foreign",
        }
    }
}

impl Mark {
    /// Whether nothing after `end` was acknowledged: the log is open, and no newer mark was lost.
    pub fn is_open(&self) -> bool {
        !self.closed && !self.older
    }

    fn encode(&self, seq: u64) -> Vec<u8> {
        let mut slot = Vec::with_capacity(SLOT_BYTES);
        slot.extend_from_slice(MAGIC);
        slot.extend_from_slice(&VERSION.to_le_bytes());
        let closed = if self.closed { FLAG_CLOSED } else { 0 };
        let exact = if self.exact { FLAG_EXACT } else { 0 };
        slot.extend_from_slice(&(closed | exact).to_le_bytes());
        for number in [seq, self.first, self.records, self.end, self.last_offset] {
            slot.extend_from_slice(&number.to_le_bytes());
        }
        slot.extend_from_slice(&self.first_sum.to_le_bytes());
        slot.extend_from_slice(&self.last_sum.to_le_bytes());
        slot.extend_from_slice(&self.index_entries.to_le_bytes());
        slot.extend_from_slice(&u64::from(self.index_chain).to_le_bytes());
        for number in [self.file.device, self.file.inode, self.file.created_ns, self.start] {
            slot.extend_from_slice(&number.to_le_bytes());
        }
        slot.resize(CRC_AT, 0);
        slot.extend_from_slice(&crc32(&slot).to_le_bytes());
        slot
    }

    fn decode(slot: &[u8]) -> Option<(u64, Self)> {
        let u32_at = |at: usize| Some(u32::from_le_bytes(*slot.get(at..)?.first_chunk()?));
        let u64_at = |at: usize| Some(u64::from_le_bytes(*slot.get(at..)?.first_chunk()?));
        let u16_at = |at: usize| Some(u16::from_le_bytes(*slot.get(at..)?.first_chunk()?));
        let intact = slot.get(..4)? == MAGIC
            && u16_at(4)? == VERSION
            && u32_at(CRC_AT)? == crc32(slot.get(..CRC_AT)?)
            // No writer stores so many marks, and the count of the next mark would overflow.
            && u64_at(8)? < u64::MAX;
        if !intact {
            return None;
        }
        let mark = Self {
            closed: u16_at(6)? & FLAG_CLOSED != 0,
            exact: u16_at(6)? & FLAG_EXACT != 0,
            first: u64_at(16)?,
            records: u64_at(24)?,
            end: u64_at(32)?,
            last_offset: u64_at(40)?,
            first_sum: u32_at(48)?,
            last_sum: u32_at(52)?,
            index_entries: u64_at(56)?,
            index_chain: u32_at(64)?,
            file: FileId { device: u64_at(72)?, inode: u64_at(80)?, created_ns: u64_at(88)? },
            start: u64_at(96)?,
            older: false,
        };
        Some((u64_at(8)?, mark))
    }
}

/// The mark's file, open for the writer.
#[derive(Debug)]
pub struct MarkFile {
    file: Box<dyn File>,
    seq: u64,
}

impl MarkFile {
    /// Read the newest intact slot.
    pub fn load(storage: &dyn Storage, sidecar: &Path) -> io::Result<LoadedMark> {
        match storage.open(&sidecar.join(MARK_NAME), Access::Read) {
            Ok(file) => Ok(match Self::newest(&*file)? {
                Some((_, mark)) => LoadedMark::Mark(mark),
                None => LoadedMark::Damaged,
            }),
            Err(e) => match e.kind() {
                io::ErrorKind::NotFound => Ok(LoadedMark::Missing),
                // Advisory: an unreadable path, or no file, counts as no mark.
                io::ErrorKind::InvalidInput
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::PermissionDenied => Ok(LoadedMark::Damaged),
                // But a broken disk must not make a torn log look corrupt.
                _ => Err(e),
            },
        }
    }

    /// Whether another program appended to the log after this mark. Then the mark does not say how
    /// much is durable: the mark is closed, but the log continues up to `end`. A writer of ours
    /// opens the mark before an append, perhaps after the caller loaded it. An exact mark says that
    /// everything after its end is unacknowledged.
    pub fn is_outdated(storage: &dyn Storage, sidecar: &Path, mark: &Mark, end: u64) -> bool {
        let is_before = |mark: &Mark| mark.closed && !mark.exact && mark.end < end;
        let still = || match Self::load(storage, sidecar) {
            Ok(LoadedMark::Mark(now)) => is_before(&now),
            _ => false,
        };
        is_before(mark) && still()
    }

    /// Replace whatever mark was there, durably.
    pub fn reset(storage: &dyn Storage, sidecar: &Path, mark: &Mark) -> io::Result<Self> {
        let path = sidecar.join(MARK_NAME);
        let mut bytes = mark.encode(0);
        bytes.resize(2 * SLOT_STRIDE as usize, 0);
        replace(storage, &path, &bytes, PRIVATE_MODE)?;
        Ok(Self { file: storage.open(&path, Access::Write)?, seq: 0 })
    }

    /// Open an existing mark, to be counted on from.
    pub fn open(storage: &dyn Storage, sidecar: &Path) -> io::Result<Self> {
        let file = storage.open(&sidecar.join(MARK_NAME), Access::Write)?;
        let seq = Self::newest(&*file)?.map_or(0, |(seq, _)| seq);
        Ok(Self { file, seq })
    }

    /// Remember a mark. Call only when the log is durable up to it.
    pub fn store(&mut self, mark: &Mark) -> io::Result<()> {
        let seq = self.seq + 1;
        let at = seq % 2 * SLOT_STRIDE;
        if let Err(e) = write_full(&*self.file, &mark.encode(seq), at) {
            // Half a mark looks like a damaged slot, and recovery would then refuse a hole that a
            // power cut left. An unwritten slot has no such effect.
            let wiped = write_full(&*self.file, &[0; SLOT_BYTES], at);
            let _ = wiped.and_then(|()| self.file.sync_data());
            return Err(e);
        }
        self.seq = seq;
        Ok(())
    }

    /// Return when the last mark stored is durable itself.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn newest(file: &dyn File) -> io::Result<Option<(u64, Mark)>> {
        let mut bytes = [0; SLOT_STRIDE as usize + SLOT_BYTES];
        let read = read_full(file, &mut bytes, 0)?;
        let there = part(&bytes, ..read);
        let second = there.get(SLOT_STRIDE as usize..).unwrap_or_default();
        let slots = [there, second].map(|slot| part(slot, ..SLOT_BYTES.min(slot.len())));
        let older = slots.iter().any(|slot| is_damaged(slot));
        let newest = slots.into_iter().filter_map(Mark::decode).max_by_key(|(seq, _)| *seq);
        Ok(newest.map(|(seq, mark)| (seq, Mark { older, ..mark })))
    }
}

/// Whether a slot lost its mark. A power cut can leave the other slot as created: all zeros.
fn is_damaged(slot: &[u8]) -> bool {
    // A wipe that failed half-way took the magic and the number at least.
    let is_unwritten = slot.len() == SLOT_BYTES && part(slot, ..16).iter().all(|&byte| byte == 0);
    !is_unwritten && Mark::decode(slot).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;

    fn mark(records: u64) -> Mark {
        Mark { records, end: 16 + 25 * records, first: 1, ..Mark::default() }
    }

    #[test]
    fn a_torn_store_leaves_the_mark_before() {
        let storage = Memory::new();
        let dir = Path::new("/.deedbook");
        assert_eq!(MarkFile::load(&storage, dir).unwrap(), LoadedMark::Missing);
        let mut file = MarkFile::reset(&storage, dir, &mark(0)).unwrap();
        for records in 1..=5 {
            file.store(&mark(records)).unwrap();
            assert_eq!(MarkFile::load(&storage, dir).unwrap(), LoadedMark::Mark(mark(records)));
        }
        let raw = storage.open(&dir.join(MARK_NAME), Access::Write).unwrap();
        raw.write_at(&[0xff], SLOT_STRIDE + 30).unwrap();
        let before = LoadedMark::Mark(Mark { older: true, ..mark(4) });
        assert_eq!(MarkFile::load(&storage, dir).unwrap(), before);
        raw.write_at(&[0xff], 30).unwrap();
        assert_eq!(MarkFile::load(&storage, dir).unwrap(), LoadedMark::Damaged);
    }

    /// Every field with a value of its own.
    fn whole(closed: bool, exact: bool) -> Mark {
        Mark {
            closed,
            exact,
            first: 1,
            records: 2,
            end: 3,
            last_offset: 4,
            first_sum: 5,
            last_sum: 6,
            index_entries: 7,
            index_chain: 8,
            file: FileId { device: 9, inode: 10, created_ns: 11 },
            start: 12,
            older: false,
        }
    }

    /// Seen by the hunt: the newer slot was damaged, and the other one passed for the newest.
    #[test]
    fn a_damaged_slot_may_hide_the_newest_mark() {
        let dir = Path::new("/.deedbook");
        let load = |change: &dyn Fn(&dyn File)| {
            let storage = Memory::new();
            let mut file = MarkFile::reset(&storage, dir, &mark(0)).unwrap();
            (1..=2).for_each(|records| file.store(&mark(records)).unwrap());
            change(&*storage.open(&dir.join(MARK_NAME), Access::Write).unwrap());
            match MarkFile::load(&storage, dir).unwrap() {
                LoadedMark::Mark(found) => Some((found.records, found.older, found.is_open())),
                _ => None,
            }
        };
        let write = |bytes: &'static [u8], at: u64| {
            move |file: &dyn File| assert_eq!(file.write_at(bytes, at).unwrap(), bytes.len())
        };
        assert_eq!(load(&|_| ()), Some((2, false, true)));
        assert_eq!(load(&write(&[9], 30)), Some((1, true, false)), "the newer slot");
        assert_eq!(load(&write(&[9], SLOT_STRIDE + 30)), Some((2, true, false)), "or the other");
        let unwritten = &[0; SLOT_BYTES];
        assert_eq!(load(&write(unwritten, SLOT_STRIDE)), Some((2, false, true)), "a power cut");
        let cut = |len| load(&move |file: &dyn File| file.set_len(len).unwrap());
        assert_eq!(cut(SLOT_STRIDE + SLOT_BYTES as u64), Some((2, false, true)));
        assert_eq!(cut(SLOT_STRIDE + SLOT_BYTES as u64 - 1), Some((2, true, false)));
        assert_eq!(cut(SLOT_STRIDE), Some((2, true, false)));
        assert_eq!(cut(SLOT_BYTES as u64 - 1), None);
    }

    #[test]
    fn a_mark_round_trips_and_shows_damage() {
        for (closed, exact) in [(false, false), (true, false), (false, true), (true, true)] {
            let slot = whole(closed, exact).encode(13);
            assert_eq!(slot.len(), SLOT_BYTES);
            assert_eq!(Mark::decode(&slot), Some((13, whole(closed, exact))));
            for at in 0..slot.len() {
                let mut damaged = slot.clone();
                damaged[at] ^= 1;
                assert_eq!(Mark::decode(&damaged), None, "byte {at}");
            }
        }
        let last = u64::MAX - 1;
        assert_eq!(Mark::decode(&mark(1).encode(last)), Some((last, mark(1))));
    }

    /// A slot with the right checksum can still belong to another file or another version, or have
    /// the highest count.
    #[test]
    fn a_valid_foreign_slot_is_not_used() {
        for (at, byte) in [(0, b'X'), (3, b'X'), (4, 2), (5, 1)] {
            let mut slot = mark(1).encode(0);
            slot[at] = byte;
            slot.truncate(CRC_AT);
            slot.extend_from_slice(&crc32(&slot).to_le_bytes());
            assert_eq!(Mark::decode(&slot), None, "byte {at}");
        }
        assert_eq!(Mark::decode(&mark(1).encode(u64::MAX)), None);
    }

    #[test]
    fn a_reset_file_has_both_slots() {
        let storage = Memory::new();
        let dir = Path::new("/.deedbook");
        drop(MarkFile::reset(&storage, dir, &mark(0)).unwrap());
        let file = storage.open(&dir.join(MARK_NAME), Access::Read).unwrap();
        assert_eq!(file.len().unwrap(), 2 * SLOT_STRIDE);
    }

    /// An unreadable mark is an error. Only a path without a file of ours counts as a damaged mark.
    #[cfg(feature = "sim")]
    #[test]
    fn only_foreign_files_count_as_damaged_marks() {
        use crate::storage::sim::{Call, Fault, Sim, What};
        let disk = Sim::new();
        let dir = Path::new("/.deedbook");
        disk.create_dir(dir).unwrap();
        MarkFile::reset(&disk, dir, &mark(2)).unwrap();
        let refused = |kind| {
            disk.heal();
            disk.inject(Fault::once(1, What::Error(kind)).of(Call::Open));
            MarkFile::load(&disk, dir).ok()
        };
        use io::ErrorKind::{InvalidInput, NotADirectory, Other, PermissionDenied};
        for kind in [InvalidInput, NotADirectory, PermissionDenied] {
            assert_eq!(refused(kind), Some(LoadedMark::Damaged), "{kind:?}");
        }
        assert_eq!(refused(Other), None);
        assert_eq!(refused(io::ErrorKind::NotFound), Some(LoadedMark::Missing));
    }

    #[cfg(feature = "sim")]
    #[test]
    fn a_synced_mark_survives_a_power_cut() {
        use crate::storage::sim::Sim;
        let disk = Sim::new();
        let dir = Path::new("/.deedbook");
        disk.create_dir(dir).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        let mut file = MarkFile::reset(&disk, dir, &mark(0)).unwrap();
        file.store(&mark(1)).unwrap();
        file.sync().unwrap();
        let crashes = disk.crashes();
        let after = crashes.state(0);
        assert_eq!(MarkFile::load(&after, dir).unwrap(), LoadedMark::Mark(mark(1)));
    }

    /// Found by the fault tests: half a mark passed for a damaged one, and after a power cut the opening was refused.
    #[cfg(feature = "sim")]
    #[test]
    fn a_half_stored_mark_damages_no_slot() {
        use crate::storage::sim::{Call, Fault, Sim, What};
        for ever in [false, true] {
            let disk = Sim::new();
            let dir = Path::new("/.deedbook");
            disk.create_dir(dir).unwrap();
            let mut file = MarkFile::reset(&disk, dir, &mark(0)).unwrap();
            (1..=2).for_each(|records| file.store(&mark(records)).unwrap());
            let half = What::Partial(io::ErrorKind::Other);
            let fault = if ever { Fault::ever(1, half) } else { Fault::once(1, half) };
            disk.inject(fault.of(Call::Write));
            file.store(&mark(3)).unwrap_err();
            disk.heal();
            assert_eq!(MarkFile::load(&disk, dir).unwrap(), LoadedMark::Mark(mark(2)), "{ever}");
            file.store(&mark(3)).unwrap();
            assert_eq!(MarkFile::load(&disk, dir).unwrap(), LoadedMark::Mark(mark(3)), "{ever}");
        }
    }

    #[test]
    fn a_reopened_file_goes_on_counting() {
        let storage = Memory::new();
        let dir = Path::new("/.deedbook");
        let mut file = MarkFile::reset(&storage, dir, &mark(0)).unwrap();
        file.store(&mark(1)).unwrap();
        let mut again = MarkFile::open(&storage, dir).unwrap();
        again.store(&mark(2)).unwrap();
        assert_eq!(MarkFile::load(&storage, dir).unwrap(), LoadedMark::Mark(mark(2)));
    }
}
