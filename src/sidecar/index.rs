//! The sparse index: the ends of blocks of records, and a checksum per block.
//!
//! ```text
//! header   0 magic 4   4 version 4   8 seed 4   12 crc 4 (of bytes 0..12)
//! entry    0 ordinal 8  (of the record after the block)   8 offset 8  (of that record)
//!         16 sum 4      (CRC-32 of the block's bytes, 0 if unknown)
//!         20 chain 4    (CRC-32 of bytes 0..20, going on from the chain of the entry before)
//! ```
//!
//! Little-endian. The mark has the number of entries and the last entry's chain. So no reader uses
//! entries of another log, or entries of a part that was cut off.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::dir::PRIVATE_MODE;
use crate::ground::checksum::{crc32, crc32_more};
use crate::ground::lines;
use crate::storage::{Access, File, Storage, read_full, write_full};

pub(super) const INDEX_NAME: &str = "index";
const MAGIC: &[u8; 4] = b"DBIX";
/// An index of version 1 may have holes: writers crashed before they had written their entries.
const VERSION: u32 = 2;
const HEADER_BYTES: u64 = 16;
const ENTRY_BYTES: u64 = 24;
/// Bytes of records per entry, at least.
pub const INDEX_BLOCK_BYTES: u64 = 64 << 10;
/// Entries held in memory before they are written.
const PENDING_MAX: usize = 1024;

/// The end of one block of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Ordinal of the record after the block.
    pub ordinal: u64,
    /// Byte of the record.
    pub offset: u64,
    /// CRC-32 of the block's bytes, 0 if unknown.
    pub sum: u32,
}

impl Entry {
    fn encode(self, chain: u32) -> ([u8; ENTRY_BYTES as usize], u32) {
        let mut bytes = [0; ENTRY_BYTES as usize];
        let (ordinal, rest) = bytes.split_at_mut(8);
        let (offset, rest) = rest.split_at_mut(8);
        let (sum, link) = rest.split_at_mut(4);
        ordinal.copy_from_slice(&self.ordinal.to_le_bytes());
        offset.copy_from_slice(
            &seeded!(self.offset, "index-of-32-bits" => u64::from(self.offset as u32))
                .to_le_bytes(),
        );
        sum.copy_from_slice(&self.sum.to_le_bytes());
        let mut chained = crc32_more(chain, ordinal);
        chained = crc32_more(crc32_more(chained, offset), sum);
        link.copy_from_slice(&chained.to_le_bytes());
        (bytes, chained)
    }

    fn decode(bytes: &[u8]) -> Option<(Self, u32)> {
        let u64_at = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let u32_at = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let entry = Self { ordinal: u64_at(0)?, offset: u64_at(8)?, sum: u32_at(16)? };
        Some((entry, u32_at(20)?))
    }
}

/// The index of one log. Cheap to clone; clones do not see each other's later entries.
#[derive(Clone, Debug)]
pub struct Index {
    path: PathBuf,
    file: Option<Arc<dyn File>>,
    seed: u32,
    /// Valid entries in the file, and the chain after the last of them.
    written: u64,
    written_chain: u32,
    pending: Vec<Entry>,
    /// Byte at which the last block ends, 0 without blocks.
    last_offset: u64,
    /// Whether the last flush failed.
    failed: bool,
}

impl Index {
    /// An index without entries.
    pub fn empty(sidecar: &Path) -> Self {
        Self {
            path: sidecar.join(INDEX_NAME),
            file: None,
            seed: 0,
            written: 0,
            written_chain: 0,
            pending: Vec::new(),
            last_offset: 0,
            failed: false,
        }
    }

    /// Open the index that the mark vouches for. Any other index counts as empty.
    pub fn load(
        storage: &dyn Storage,
        sidecar: &Path,
        seed: u32,
        entries: u64,
        chain: u32,
        access: Access,
    ) -> Self {
        let mut index = Self::empty(sidecar);
        index.start(seed);
        let Ok(file) = storage.open(&index.path, access) else {
            return index;
        };
        let mut header = [0; HEADER_BYTES as usize];
        let read = read_full(&*file, &mut header, 0).unwrap_or(0);
        if read != header.len() || header != encode_header(seed) {
            return index;
        }
        // The file has fewer entries: the mark is wrong, and counting with its number would
        // overflow.
        if entries > file.len().unwrap_or(0) / ENTRY_BYTES {
            return index;
        }
        index.file = Some(Arc::from(file));
        index.written = entries;
        index.written_chain = chain;
        if entries > 0 {
            match index.read(entries - 1) {
                Some((last, stored)) if stored == chain => index.last_offset = last.offset,
                _ => index.start(seed),
            }
        }
        index
    }

    /// Drop all entries, for a log whose first record has this checksum.
    pub fn start(&mut self, seed: u32) {
        self.seed = seed;
        self.written = 0;
        self.written_chain = seed;
        self.pending.clear();
        self.file = None;
        self.last_offset = 0;
    }

    /// Number of entries that describe the log up to byte `end`, and the chain after the last of
    /// them, for the mark. Counts only entries in the file.
    pub fn summary_at(&self, end: u64) -> (u64, u32) {
        let last = match self.last_offset <= end {
            true => self.len(),
            false => self.last_where(|entry| entry.offset <= end).map_or(0, |(i, _)| i + 1),
        };
        match last.min(self.written) {
            0 => (0, self.seed),
            count if count == self.written => (count, self.written_chain),
            count => self.read(count - 1).map_or((0, self.seed), |(_, chain)| (count, chain)),
        }
    }

    /// Close its file.
    pub fn give_back(&mut self) {
        self.file = None;
    }

    /// Make the entries in the file durable. Advisory: a failure costs time only.
    pub fn sync(&self) {
        if let Some(Err(e)) = self.file.as_ref().map(|file| file.sync_data()) {
            lines::warn(format_args!("cannot sync the index: {e} ({})", self.path.display()));
        }
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of entries.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    /// Byte at which the last block ends, 0 without blocks.
    pub fn last_offset(&self) -> u64 {
        self.last_offset
    }

    /// Note the end of a block, in memory.
    pub fn push(&mut self, entry: Entry) {
        self.last_offset = entry.offset;
        self.pending.push(entry);
    }

    /// Whether entries are in memory alone.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether enough entries have gathered in memory to be worth a write.
    pub fn wants_flush(&self) -> bool {
        self.pending.len() >= PENDING_MAX
    }

    /// Write the entries still in memory. Advisory: a failure leaves them in memory, and is logged
    /// once.
    pub fn flush(&mut self, storage: &dyn Storage) {
        if self.pending.is_empty() {
            return;
        }
        match self.try_flush(storage) {
            Ok(()) => self.failed = false,
            Err(e) if !std::mem::replace(&mut self.failed, true) => {
                lines::warn(format_args!("cannot store the index: {e} ({})", self.path.display()));
            }
            Err(_) => {}
        }
    }

    fn try_flush(&mut self, storage: &dyn Storage) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => file.clone(),
            None => self.begin_file(storage)?,
        };
        let mut bytes = Vec::with_capacity(self.pending.len() * ENTRY_BYTES as usize);
        let mut chain = self.written_chain;
        for entry in &self.pending {
            let (encoded, chained) = entry.encode(chain);
            bytes.extend_from_slice(&encoded);
            chain = chained;
        }
        write_full(&*file, &bytes, HEADER_BYTES + self.written * ENTRY_BYTES)?;
        self.file = Some(file);
        self.written += self.pending.len() as u64;
        self.written_chain = chain;
        self.pending.clear();
        Ok(())
    }

    /// Not durably, because appends would have to wait. The chain does not match an entry that a
    /// crash has damaged.
    fn begin_file(&self, storage: &dyn Storage) -> io::Result<Arc<dyn File>> {
        let file: Arc<dyn File> = match storage.open(&self.path, Access::Write) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Arc::from(storage.create_new(&self.path, PRIVATE_MODE)?)
            }
            opened => Arc::from(opened?),
        };
        file.set_len(0)?;
        write_full(&*file, &encode_header(self.seed), 0)?;
        Ok(file)
    }

    /// Read entry `i`, and compare with the chain of the entry before.
    fn read(&self, i: u64) -> Option<(Entry, u32)> {
        if i >= self.written {
            let entry = *self.pending.get((i - self.written) as usize)?;
            return Some((entry, 0));
        }
        let file = self.file.as_ref()?;
        let mut two = [0; 2 * ENTRY_BYTES as usize];
        let at = HEADER_BYTES + i * ENTRY_BYTES;
        let (before, bytes) = if i == 0 {
            let one = two.get_mut(..ENTRY_BYTES as usize)?;
            (read_full(&**file, one, at).ok()? == one.len()).then_some(())?;
            (self.seed, &*one)
        } else {
            let read = read_full(&**file, &mut two, at - ENTRY_BYTES).ok()?;
            (read == two.len()).then_some(())?;
            let (first, second) = two.split_at(ENTRY_BYTES as usize);
            (Entry::decode(first)?.1, second)
        };
        let (entry, stored) = Entry::decode(bytes)?;
        (entry.encode(before).1 == stored).then_some((entry, stored))
    }

    /// Entry `i`, if it is readable and its chain is right.
    pub fn entry(&self, i: u64) -> Option<Entry> {
        self.read(i).map(|(entry, _)| entry)
    }

    /// The last entry for which `wanted` holds. `wanted` must hold for a prefix of the entries.
    pub fn last_where(&self, wanted: impl Fn(&Entry) -> bool) -> Option<(u64, Entry)> {
        let (mut low, mut high) = (0, self.len());
        let mut best = None;
        while low < high {
            let middle = low + (high - low) / 2;
            match self.entry(middle) {
                Some(entry) if wanted(&entry) => {
                    best = Some((middle, entry));
                    low = middle + 1;
                }
                // A damaged entry: search in front of the entry, which costs only time.
                _ => high = middle,
            }
        }
        best
    }

    /// The first entry at or after a byte of the log.
    pub fn first_from(&self, offset: u64) -> Option<Entry> {
        let next = self.last_where(|entry| entry.offset < offset).map_or(0, |(i, _)| i + 1);
        self.entry(next).filter(|entry| entry.offset >= offset)
    }

    /// Forget the entries after a byte of the log, because the log is cut there.
    pub fn cut(&mut self, end: u64) {
        let last = self.last_where(|entry| entry.offset <= end);
        let keep = last.map_or(0, |(i, _)| i + 1);
        self.last_offset = last.map_or(0, |(_, entry)| entry.offset);
        if keep >= self.written {
            self.pending.truncate((keep - self.written) as usize);
            return;
        }
        self.pending.clear();
        self.written = keep;
        self.written_chain = match keep {
            0 => self.seed,
            _ => self.read(keep - 1).map_or(self.seed, |(_, chain)| chain),
        };
    }

    /// Forget the entries below `start`, once there are more of them than of others: the log begins
    /// there now.
    pub fn drop_before(&mut self, start: u64, storage: &dyn Storage) {
        let dead = self.last_where(|entry| entry.offset < start).map_or(0, |(i, _)| i + 1);
        if 2 * dead <= self.len() {
            return;
        }
        let live: Vec<_> = (dead..self.len()).filter_map(|i| self.entry(i)).collect();
        self.start(self.seed);
        for entry in live {
            self.push(entry);
        }
        self.flush(storage);
    }
}

fn encode_header(seed: u32) -> [u8; HEADER_BYTES as usize] {
    let mut header = [0; HEADER_BYTES as usize];
    let (body, crc) = header.split_at_mut(12);
    let (magic, rest) = body.split_at_mut(4);
    let (version, start) = rest.split_at_mut(4);
    magic.copy_from_slice(MAGIC);
    version.copy_from_slice(&VERSION.to_le_bytes());
    start.copy_from_slice(&seed.to_le_bytes());
    crc.copy_from_slice(&crc32(body).to_le_bytes());
    header
}

#[cfg(test)]
mod tests;
