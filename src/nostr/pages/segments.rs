//! The segments of a store: their names, reads and writes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::dead::Dead;
use super::file_names::{path_of, segments_dir, unfinished};
use super::manifest::{Listed, Manifest};
use super::options::Options;
use super::segment::{Record, Segment};
use crate::error::{Error, ErrorKind, Result};
use crate::ground::lines;
use crate::nostr::bytes::event::{Flags, Location};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::bytes::page::Header;
use crate::nostr::bytes::record::set_flags;
use crate::nostr::log::entry::WAL_NAME;
use crate::saving::save_tail;
use crate::sidecar::sidecar_dir;
use crate::storage::{Access, Storage};

mod counts;
pub(crate) mod dead;
mod files;

/// A segment, and the first byte to copy.
pub type Source = (Segment, u32);

/// The segments, by their numbers; the last takes appends.
#[derive(Debug)]
pub struct Segments {
    /// `data/segments`.
    pub dir: PathBuf,
    storage: Arc<dyn Storage>,
    pub by_id: BTreeMap<u32, Open>,
    /// The flags set since a compaction began to copy.
    pub changed: Option<Vec<(Location, Flags)>>,
    /// Whether a compaction fills these segments: their names are unfinished.
    is_unfinished: bool,
}

/// The files in `data/segments`.
#[derive(Debug, Default)]
pub struct Listing {
    /// The segments by their numbers.
    pub files: BTreeMap<u32, PathBuf>,
    /// The files of an unfinished compaction that no reader needs.
    pub leftovers: Vec<PathBuf>,
}

/// An open segment.
#[derive(Debug)]
pub struct Open {
    pub segment: Segment,
    /// The number of records. For an unwritten segment before the last, the header's hint.
    pub records: u32,
    /// Whether a write followed the last sync.
    dirty: bool,
    /// The dead bytes, unless unknown.
    dead: Option<Dead>,
    /// The number of flags set by this handle.
    pub flags_set: u64,
}

impl Open {
    fn new(segment: Segment, records: u32, dirty: bool, dead: Option<Dead>) -> Self {
        Self { segment, records, dirty, dead, flags_set: 0 }
    }

    /// The segment as the manifest lists it at a second.
    pub fn listed(&mut self, now: u64) -> Listed {
        let dead = self.dead.as_mut().and_then(|dead| dead.kept(now));
        let Header { segment: id, created_at, compacted_at, .. } = self.segment.header();
        let (size_bytes, record_count) = (self.segment.end().into(), self.records.into());
        let is_compacted = compacted_at != 0;
        Listed { id, created_at, size_bytes, record_count, is_compacted, dead }
    }

    /// Whether any byte follows the header.
    pub fn has_pages(&self) -> bool {
        self.segment.end() > self.segment.header().page_bytes
    }
}

impl Segments {
    pub fn new(store: &Path, storage: Arc<dyn Storage>) -> Self {
        let (dir, by_id) = (segments_dir(store), BTreeMap::new());
        Self { dir, storage, by_id, changed: None, is_unfinished: false }
    }

    /// The new segments of a compaction.
    pub fn unfinished(&self) -> Self {
        let (dir, storage) = (self.dir.clone(), self.storage.clone());
        Self { dir, storage, by_id: BTreeMap::new(), changed: None, is_unfinished: true }
    }

    /// These segments, to be copied whole.
    pub fn sources(&self, ids: &[u32]) -> Vec<Source> {
        let open = ids.iter().filter_map(|id| self.by_id.get(id));
        open.map(|open| (open.segment.clone(), 0)).collect()
    }

    /// The pages appended to segments since they looked so.
    pub fn appended_to(&self, earlier: &[Source]) -> Vec<Source> {
        let pairs = earlier.iter().filter_map(|(was, _)| {
            let is = &self.by_id.get(&was.header().segment)?.segment;
            (is.end() > was.end()).then(|| (is.clone(), was.end()))
        });
        pairs.collect()
    }

    /// Open the file with this number.
    pub fn open(&mut self, id: u32, path: &Path, access: Access, options: &Options) -> Result<()> {
        let segment = Segment::open_with(options, path, access)?;
        let header = segment.header();
        if header.segment != id {
            let message = format!("segment {}, its name says {id}", header.segment);
            return Err(Error::new(ErrorKind::Corrupt, message).at(path));
        }
        self.insert(id, segment);
        Ok(())
    }

    /// Whether a segment lost pages.
    pub fn lack_pages(&self) -> bool {
        self.by_id.values().any(|open| !open.segment.missing().is_empty())
    }

    /// Sync all segments: another program may have left unsynced writes.
    pub fn sync_all(&self) -> Result<()> {
        self.by_id.values().try_for_each(|open| open.segment.sync())
    }

    /// Add a segment opened elsewhere.
    pub fn insert(&mut self, id: u32, segment: Segment) {
        let records = segment.header().records;
        self.by_id.insert(id, Open::new(segment, records, false, None));
    }

    /// Begin a segment, durably.
    pub fn create(&mut self, options: &Options, id: u32, created_at: u64) -> Result<()> {
        let path = path_of(&self.dir, id);
        let (page_bytes, mode) = (options.page_size(), options.file_mode);
        let storage = &*self.storage;
        if self.is_unfinished {
            let path = unfinished(&path);
            let segment = Segment::begin(storage, &path, id, page_bytes, created_at, mode)?;
            self.by_id.insert(id, Open::new(segment, 0, true, Some(Dead::none(0))));
            return Ok(());
        }
        let segment = Segment::create(storage, &path, id, page_bytes, created_at, mode);
        let segment = segment.inspect_err(|error| {
            // A number used up without a segment looks like a lost segment after a loss of the
            // manifest.
            if error.kind() != ErrorKind::AlreadyExists {
                drop(self.storage.remove(&path));
            }
        });
        self.by_id.insert(id, Open::new(segment?, 0, false, Some(Dead::none(0))));
        Ok(())
    }

    /// If the options ask for maps, read these segments through maps from now on. All their bytes
    /// are durable.
    pub fn map(&mut self, options: &Options) {
        if options.mapped_reads {
            self.by_id.values_mut().for_each(|open| open.segment.map(&*self.storage));
        }
    }

    /// Map the last segment, which is full.
    pub fn map_last(&mut self, options: &Options) {
        let last = self.by_id.values_mut().next_back().filter(|_| options.mapped_reads);
        if let Some(open) = last {
            open.segment.map(&*self.storage);
        }
    }

    /// The first number from `from` on with no file at or after it.
    pub fn next_free(&self, from: u32) -> u32 {
        let last = self.list(None).ok().and_then(|found| found.files.keys().next_back().copied());
        last.map_or(from, |last| from.max(last.saturating_add(1)))
    }

    /// Count the records of the last segment that the manifest does not list.
    pub fn count_last(&mut self, manifest: &Manifest) -> Result<()> {
        let Open { segment, records, .. } = self.active()?;
        let Header { segment: id, page_bytes, .. } = segment.header();
        let end = manifest.pages_end(id, page_bytes).filter(|end| *end <= segment.end());
        let known = end.and_then(|end| Some((manifest.records_of(id)?, end)));
        *records = match known {
            Some((known, end)) => known.saturating_add(segment.count(end)?),
            None => segment.count(0)?,
        };
        Ok(())
    }

    /// Void a partial record of the last segment; returns the file with the saved record.
    pub fn void_unfinished(&mut self, mode: u32) -> Result<Option<PathBuf>> {
        let storage = self.storage.clone();
        let active = self.active()?;
        let saved = active
            .segment
            .void_unfinished(|file, path, at| save_tail(&*storage, file, path, mode, at.into()))?;
        active.dirty |= saved.is_some();
        Ok(saved)
    }

    /// Whether this program ever opened the store's write-ahead log for writing.
    pub fn had_our_log(&self) -> bool {
        let wal = self.dir.ancestors().nth(2).map(|store| store.join(WAL_NAME));
        wal.is_some_and(|wal| self.storage.is_dir(&sidecar_dir(&wal)))
    }

    /// Add a missing segment, whose pages up to a byte count as damage.
    pub fn insert_missing(&mut self, id: u32, page_bytes: u32, end: u32) -> Result<()> {
        let path = path_of(&self.dir, id);
        self.insert(id, Segment::missing_as(&path, id, page_bytes, end)?);
        Ok(())
    }

    /// The number of the last segment, which takes appends.
    pub fn last(&self) -> Option<u32> {
        self.by_id.keys().next_back().copied()
    }

    /// The segment that takes appends.
    pub fn active(&mut self) -> Result<&mut Open> {
        let last = self.by_id.values_mut().next_back();
        last.ok_or_else(|| Error::new(ErrorKind::Missing, "no segment").at(&self.dir))
    }

    /// The size of a record's pages in the last segment.
    pub fn bytes_for(&mut self, record: &[u8]) -> Result<u64> {
        Ok(self.active()?.segment.bytes_for(record.len()))
    }

    /// The bytes of pages for which the last segment has room, given the limit of a segment.
    pub fn room(&mut self, segment_bytes: u64) -> Result<u64> {
        Ok(segment_bytes.saturating_sub(self.active()?.segment.end().into()))
    }

    /// Write records to the last segment.
    pub fn append(&mut self, records: &[&[u8]]) -> Result<Vec<Location>> {
        let active = self.active()?;
        let segment = active.segment.header().segment;
        if !records.is_empty() {
            active.dirty = true;
        }
        let offsets = active.segment.append(records)?;
        active.records += offsets.len() as u32;
        active.count_appended(records);
        if !records.is_empty() {
            active.segment.write_hints(active.records)?;
        }
        Ok(offsets.into_iter().map(|offset| Location { segment, offset }).collect())
    }

    /// Write a record of the last segment again with these flags, so that the next sync writes its
    /// pages; returns the record's end, or `None` for other bytes.
    pub fn write_again(&mut self, at: u32, record: &[u8]) -> Result<Option<u32>> {
        let active = self.active()?;
        let end = active.segment.end_of_same(at, record)?;
        if end.is_some() {
            active.dirty = true;
            active.segment.write_over(at, record)?;
        }
        Ok(end)
    }

    /// Make an intact record of an event equal the log's record, flags aside. This repairs a torn
    /// signature.
    pub fn write_over(&mut self, at: Location, record: &[u8]) -> Result<()> {
        let (mut buf, mut record) = (Vec::new(), record.to_vec());
        let stored = self.get(at)?.segment.read(at.offset, &mut buf)?;
        let (flags, is_of_size) =
            (stored.event.flags.of_event(), stored.bytes.len() == record.len());
        let Some(open) = self.by_id.get_mut(&at.segment).filter(|_| is_of_size) else {
            return Ok(());
        };
        open.dirty = true;
        set_flags(&mut record, flags);
        open.segment.write_over(at.offset, &record)
    }

    /// Replace the flags of a record.
    pub fn set_flags(&mut self, at: Location, flags: Flags) -> Result<()> {
        self.get(at)?.segment.set_flags(at.offset, flags)?;
        if let Some(open) = self.by_id.get_mut(&at.segment) {
            // The manifest may count the flags already.
            (open.dirty, open.dead) = (true, None);
            open.flags_set += 1;
        }
        Ok(())
    }

    /// The flags in the file for a record, if the segment exists and has the record.
    pub fn stored_flags(&self, at: Location) -> Result<Option<Flags>> {
        let open = self.by_id.get(&at.segment);
        open.map_or(Ok(None), |open| open.segment.stored_flags(at.offset))
    }

    /// Make reads see the flags of a record now; a later call writes them.
    pub fn set_flags_later(&mut self, at: Location, flags: Flags) -> Result<()> {
        self.get(at)?;
        if let Some(open) = self.by_id.get_mut(&at.segment) {
            seeded!(open.count_flags(at.offset, flags), "flags-are-not-counted" => ());
            open.segment.set_flags_later(at.offset, flags);
        }
        if let Some(changed) = &mut self.changed {
            changed.push((at, flags));
        }
        Ok(())
    }

    /// The number of flags not yet written.
    pub fn waiting_flags(&self) -> usize {
        self.by_id.values().map(|open| open.segment.waiting()).sum()
    }

    /// Write the waiting flags.
    pub fn write_flags(&mut self) -> Result<()> {
        for open in self.by_id.values_mut().filter(|open| open.segment.waiting() > 0) {
            open.dirty = true;
            open.segment.write_flags()?;
        }
        Ok(())
    }

    /// The record at a location, with recovered tag names.
    pub fn read<'b>(&self, at: Location, buf: &'b mut Vec<u8>) -> Result<Record<'b>> {
        self.get(at)?.segment.read_named(at.offset, buf)
    }

    /// The record at a location; `None` and a line in the log for damage. A damaged record counts
    /// for nothing and must not fail calls that only pass by. A repair removes the record, and a
    /// repair needs a store that opens.
    pub fn read_intact<'b>(
        &self,
        at: Location,
        buf: &'b mut Vec<u8>,
    ) -> Result<Option<Record<'b>>> {
        Self::unless_damaged(self.read(at, buf))
    }

    /// The record; `None` and a line in the log for damage.
    pub fn unless_damaged(found: Result<Record<'_>>) -> Result<Option<Record<'_>>> {
        match found {
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                lines::warn(format_args!("a damaged event is passed over until a repair: {error}"));
                Ok(None)
            }
            found => found.map(Some),
        }
    }

    /// The size of a segment's pages; 0 for a missing number.
    pub fn page_bytes(&self, segment: u32) -> u32 {
        self.by_id.get(&segment).map_or(0, |open| open.segment.header().page_bytes)
    }

    fn get(&self, at: Location) -> Result<&Open> {
        self.by_id.get(&at.segment).ok_or_else(|| {
            let message = format!("no segment {}, asked for the event at {at}", at.segment);
            Error::new(ErrorKind::OutOfRange, message).of(FORMAT).at(&self.dir)
        })
    }

    /// End the last segment at a byte. If the cut bytes are more than zeros, they are saved to a
    /// file next to the segment.
    pub fn cut(&mut self, at: u32, mode: u32) -> Result<Option<PathBuf>> {
        let storage = self.storage.clone();
        let active = self.active()?;
        active.dirty = true;
        active.segment.cut(at, |file, path| save_tail(&*storage, file, path, mode, at.into()))
    }

    /// Wait until all writes are on stable storage; returns the synced segments.
    pub fn sync(&mut self) -> Result<Vec<u32>> {
        let mut written = Vec::new();
        for (&id, open) in &mut self.by_id {
            if open.dirty {
                open.segment.sync()?;
                open.dirty = false;
                written.push(id);
            }
        }
        Ok(written)
    }

    /// Write the counters of a segment to its header as hints. The time of a compaction is synced.
    pub fn write_header(&mut self, id: u32, compacted_at: Option<u64>) -> Result<()> {
        let Some(open) = self.by_id.get_mut(&id) else { return Ok(()) };
        open.dirty |= compacted_at.is_some();
        let compacted_at = compacted_at.unwrap_or(open.segment.header().compacted_at);
        open.segment.write_header(open.records, compacted_at)
    }
}
