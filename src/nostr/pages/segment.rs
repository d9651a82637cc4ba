//! One segment: a file of pages, read and written.

use crate::nostr::bytes::format::FORMAT;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Durable, Error, ErrorKind, Result};
use crate::ground::locks::Mutex;
use crate::ground::slice::part;
use crate::scan::Damage;
use crate::storage::end_of_data;
use crate::storage::{Access, File, Storage, read_full, write_full};

use super::options::Options;
use super::window::{READ_BYTES, Window};
use crate::nostr::bytes::event::{EventRef, Flags, Id};
use crate::nostr::bytes::page::{self, HEADER_BYTES, HINTS_AT, Header};
use crate::nostr::bytes::record::FLAGS_AT;

mod create;
mod missing;
mod overlay;
mod read;

/// A record as it lies in a segment.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The first byte of its first page.
    pub offset: u32,
    /// The first byte after its last page.
    pub end: u32,
    /// The record's bytes, without the heads of continuation pages.
    pub bytes: &'a [u8],
    /// The event.
    pub event: EventRef<'a>,
    /// Whether a checksum covers these bytes: a stored checksum, or a new one for recovered names.
    pub has_sum: bool,
    /// Whether tag names were lost and recovered through the id. The bytes have the recovered
    /// names.
    pub is_recovered: bool,
}

/// An item of a scan.
#[derive(Clone, Debug)]
pub enum Found<'a> {
    /// An intact record.
    Record(Record<'a>),
    /// Pages without an intact record.
    Damage(PageDamage),
}

/// Pages without an intact record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageDamage {
    /// The first byte of the first page.
    pub offset: u32,
    /// The first byte after the last page.
    pub end: u32,
    /// The error of the first page, with both values.
    pub reason: String,
}

impl PageDamage {
    /// The damage, for users.
    pub(crate) fn of(self, segment: u32) -> Damage {
        let Self { offset, end, reason } = self;
        let (offset, end) = (offset.into(), end.into());
        Damage { offset, end, reason, segment: Some(segment), ..Damage::default() }
    }
}

/// A segment's file. The value holds no lock.
#[derive(Clone, Debug)]
pub struct Segment {
    file: Arc<dyn File>,
    path: PathBuf,
    header: Header,
    /// The first free byte, by the pages, missing pages included.
    end: u32,
    /// Durable pages that are missing; most segments have none.
    missing: Range<u32>,
    /// Whether a failed write could not be undone.
    poisoned: bool,
    /// Flags not yet written, by the offsets of their records. A walk sees the flags as of its
    /// beginning.
    waiting: Arc<BTreeMap<u32, Flags>>,
    /// Lossy events by their offsets, kept because the search is slow.
    lossy: Arc<Mutex<HashSet<(u32, Id)>>>,
}

impl Segment {
    /// Open a segment. The header's counters are hints; the pages decide where records end.
    pub fn open(storage: &dyn Storage, path: &Path, access: Access) -> Result<Self> {
        let file = storage
            .open(path, access)
            .map_err(|e| Error::io("open the segment", path, e).of(FORMAT))?;
        Self::of(file.into(), path)
    }

    /// Open a segment with the options of a store.
    pub fn open_with(options: &Options, path: &Path, access: Access) -> Result<Self> {
        let opened = match options.mapped_reads {
            true => options.storage.open_mapped(path, access),
            false => options.storage.open(path, access),
        };
        let file = opened.map_err(|e| Error::io("open the segment", path, e).of(FORMAT))?;
        Self::of(file.into(), path)
    }

    /// Read the existing pages through a map from now on. If mapping fails, reads continue as
    /// before. The caller must first sync all writes through the open file.
    pub fn map(&mut self, storage: &dyn Storage) {
        if let Ok(file) = storage.open_mapped(&self.path, Access::Write) {
            self.file = file.into();
        }
    }

    fn of(file: Arc<dyn File>, path: &Path) -> Result<Self> {
        let failed = |e| Error::io("read the segment", path, e).of(FORMAT);
        let mut bytes = [0; HEADER_BYTES];
        let read = read_full(&*file, &mut bytes, 0).map_err(failed)?;
        let header = Header::parse(part(&bytes, ..read));
        let header = header.map_err(|e| e.at(path).of(FORMAT))?;
        Self::with_header(file, path, header)
    }

    /// Open a segment with a given header, because the file has none or a damaged one.
    pub fn open_as(
        storage: &dyn Storage,
        path: &Path,
        access: Access,
        header: Header,
    ) -> Result<Self> {
        let file = storage
            .open(path, access)
            .map_err(|e| Error::io("open the segment", path, e).of(FORMAT))?;
        Self::with_header(file.into(), path, header)
    }

    fn with_header(file: Arc<dyn File>, path: &Path, header: Header) -> Result<Self> {
        let failed = |e| Error::io("read the segment", path, e).of(FORMAT);
        let (len, limit) = (file.len().map_err(failed)?, limit(header.page_bytes));
        if len > limit {
            let message = format!("segment of {len} bytes, limit {limit}");
            return Err(Error::new(ErrorKind::NotALog, message).at(path).of(FORMAT));
        }
        // Every page of a record begins with a byte other than zero, so the last such byte marks
        // the end.
        let used = end_of_data(&*file, header.page_bytes.into(), len).map_err(failed)?;
        let end = page::whole_pages(used.max(header.page_bytes.into()), header.page_bytes) as u32;
        let (path, poisoned) = (path.to_owned(), false);
        let (missing, waiting, lossy) = Default::default();
        Ok(Self { file, path, header, end, missing, poisoned, waiting, lossy })
    }

    /// The header as last read or written.
    pub fn header(&self) -> Header {
        self.header
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Note the file's new name.
    pub fn set_path(&mut self, path: PathBuf) {
        self.path = path;
    }

    /// The first free byte, by the pages, missing pages included.
    pub fn end(&self) -> u32 {
        self.end
    }

    /// The segment up to an offset at the end of a record.
    #[must_use]
    pub(crate) fn until(self, end: u32) -> Self {
        let missing = self.missing.start.min(end)..self.missing.end.min(end);
        Self { end: self.end.min(end), missing, ..self }
    }

    /// The segment up to an offset from the write-ahead log. A writer may have appended since the
    /// opening.
    #[must_use]
    pub(crate) fn ending_at(self, end: u32) -> Self {
        Self { end, ..self }
    }

    /// The size of the pages for a record of that size.
    pub fn bytes_for(&self, record_len: usize) -> u64 {
        page::bytes_for(record_len as u64, self.header.page_bytes)
    }

    /// End the segment at a page. If bytes follow, `save` gets the file first.
    pub fn cut(
        &mut self,
        at: u32,
        save: impl FnOnce(&dyn File, &Path) -> Result<Option<PathBuf>>,
    ) -> Result<Option<PathBuf>> {
        let len = self.file.len().map_err(|e| self.failed(e))?;
        if len <= at.into() {
            return Ok(None);
        }
        let saved = save(&*self.file, &self.path)?;
        self.file.set_len(at.into()).map_err(|e| Error::io("cut the segment", &self.path, e))?;
        self.end = at;
        Ok(saved)
    }

    /// Call `save` with the file, to save a part of it.
    pub fn save(
        &self,
        save: impl FnOnce(&dyn File) -> Result<Option<PathBuf>>,
    ) -> Result<Option<PathBuf>> {
        save(&*self.file)
    }

    /// Append records; returns the offset of each. On return, the records survive a crash of the
    /// process; after [`Segment::sync`], also a power cut.
    pub fn append(&mut self, records: &[&[u8]]) -> Result<Vec<u32>> {
        if self.poisoned {
            let message = "an earlier write failed and could not be taken back: open it again";
            return Err(self.error(ErrorKind::Poisoned, message).with_durable(Durable::No));
        }
        let page_bytes = self.header.page_bytes;
        let mut offsets = Vec::with_capacity(records.len());
        let mut need = u64::from(self.end);
        for record in records {
            let head = page::Head::parse(record, page_bytes, u64::MAX)
                .ok()
                .filter(|head| head.record_len as usize == record.len())
                .ok_or_else(|| {
                    let message = format!(
                        "record of {} bytes not made for {page_bytes} bytes a page",
                        record.len()
                    );
                    self.error(ErrorKind::InvalidArgument, &message).with_durable(Durable::No)
                })?;
            offsets.push(need as u32);
            need += head.pages_bytes(page_bytes);
            let limit = limit(page_bytes);
            if need > limit {
                let message = format!("segment of {need} bytes, limit {limit}");
                return Err(self.error(ErrorKind::TooLarge, &message).with_durable(Durable::No));
            }
        }
        if let Err(e) = self.write_at_end(records) {
            return Err(Error::io("append to the segment", &self.path, e)
                .of(FORMAT)
                .with_durable(if self.poisoned { Durable::Unknown } else { Durable::No }));
        }
        self.end = need as u32;
        Ok(offsets)
    }

    /// Write after the end. A failed write leaves the file unchanged.
    fn write_at_end(&mut self, records: &[&[u8]]) -> io::Result<()> {
        let written = self.write_pages(records);
        if written.is_err() && self.file.set_len(self.end.into()).is_err() {
            self.poisoned = true;
        }
        written
    }

    /// Write in parts small enough for the processor's cache.
    fn write_pages(&self, records: &[&[u8]]) -> io::Result<()> {
        let (mut pages, mut at) = (Vec::new(), u64::from(self.end));
        for (number, record) in records.iter().enumerate() {
            page::spread(record, self.header.page_bytes, &mut pages);
            if pages.len() >= READ_BYTES || number + 1 == records.len() {
                write_full(&*self.file, &pages, at)?;
                at += pages.len() as u64;
                pages.clear();
            }
        }
        Ok(())
    }

    /// The end of the record at an offset, flags aside; `None` for other bytes.
    pub(crate) fn end_of_same(&self, at: u32, record: &[u8]) -> Result<Option<u32>> {
        let mut pages = Vec::new();
        page::spread(record, self.header.page_bytes, &mut pages);
        let mut stored = vec![0; pages.len()];
        let read = read_full(&*self.file, &mut stored, at.into()).map_err(|e| self.failed(e))?;
        // The last page may lack its padding.
        let is_same = read >= record.len()
            && pages.get(..FLAGS_AT) == stored.get(..FLAGS_AT)
            && pages.get(FLAGS_AT + 1..) == stored.get(FLAGS_AT + 1..);
        Ok(is_same.then_some(at.saturating_add(pages.len() as u32)))
    }

    /// Write a record at an offset that holds the same record or another of its size.
    pub(crate) fn write_over(&self, at: u32, record: &[u8]) -> Result<()> {
        let mut pages = Vec::new();
        page::spread(record, self.header.page_bytes, &mut pages);
        write_full(&*self.file, &pages, at.into()).map_err(|e| {
            Error::io("write the record again", &self.path, e)
                .of(FORMAT)
                .with_durable(Durable::Unknown)
        })
    }

    /// Replace the flags of the record at an offset, in place. The flag for further pages stays.
    pub fn set_flags(&self, offset: u32, flags: Flags) -> Result<()> {
        // Only at the start of a record: a wrong offset must not change a byte of another record.
        let mut window = Window::new(self.file.clone(), self.page_end()?, FLAGS_AT + 3);
        let page_bytes = self.header.page_bytes;
        let aligned = offset.is_multiple_of(page_bytes) && offset >= page_bytes;
        let head = window.head(offset, page_bytes);
        let head = head.map_err(|e| self.failed(e))?;
        let Some(head) = head.ok().filter(|_| aligned) else {
            let message = format!("no record at {offset}: flags {:02x} are not set", flags.0);
            return Err(self.error(ErrorKind::OutOfRange, &message).with_durable(Durable::No));
        };
        let form = if head.continuations > 0 { Flags::CONTINUED } else { Flags::default() };
        let flags =
            flags.of_event() | seeded!(form, "flag-clears-continuation" => Flags::default());
        write_full(&*self.file, &[flags.0], u64::from(offset) + FLAGS_AT as u64).map_err(|e| {
            Error::io("set the flags of a record", &self.path, e)
                .of(FORMAT)
                .with_durable(Durable::Unknown)
        })
    }

    /// Make reads and walks see these flags for the record at an offset. A later call writes them.
    pub fn set_flags_later(&mut self, offset: u32, flags: Flags) {
        Arc::make_mut(&mut self.waiting).insert(offset, flags.of_event());
    }

    /// The number of flags not yet written.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The unwritten flags for the record at an offset.
    #[inline]
    pub(super) fn waiting_at(&self, offset: u32) -> Option<Flags> {
        self.waiting.get(&offset).copied()
    }

    /// Write the waiting flags in place.
    pub fn write_flags(&mut self) -> Result<()> {
        for (&offset, &flags) in &*self.waiting {
            self.set_flags(offset, flags)?;
        }
        self.waiting = Arc::default();
        Ok(())
    }

    /// Wait until everything written is on stable storage.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|e| {
            Error::io("sync the segment", &self.path, e).of(FORMAT).with_durable(Durable::Unknown)
        })
    }

    /// Write the header's counters: the number of records, and their end by the pages.
    pub fn write_header(&mut self, records: u32, compacted_at: u64) -> Result<()> {
        let header = Header { records, next_free: self.end, compacted_at, ..self.header };
        write_full(&*self.file, &header.encode(), 0)
            .map_err(|e| Error::io("write the header of the segment", &self.path, e))
            .map_err(|e| e.of(FORMAT).with_durable(Durable::Unknown))?;
        self.header = header;
        Ok(())
    }

    /// Write the number and the end of the records to the header. This program does not trust the
    /// counters. Another program appends at this end, so the counters must be right even if this
    /// process crashes. The next sync makes them durable.
    pub fn write_hints(&self, records: u32) -> Result<()> {
        let header = Header { records, next_free: self.end, ..self.header };
        write_full(&*self.file, header.hints().as_slice(), HINTS_AT as u64)
            .map_err(|e| Error::io("write the header of the segment", &self.path, e))
            .map_err(|e| e.of(FORMAT).with_durable(Durable::Unknown))
    }

    pub(crate) fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    /// The end of the pages, or of the file if its last page has no padding.
    pub(super) fn page_end(&self) -> Result<u64> {
        let len = self.file.len().map_err(|e| self.failed(e))?;
        Ok(len.min(self.end.into()))
    }

    pub(crate) fn failed(&self, e: io::Error) -> Error {
        Error::io("read the segment", &self.path, e).of(FORMAT)
    }

    /// The error for damaged pages that a walk skipped.
    pub(crate) fn damaged(&self, damage: &PageDamage) -> Error {
        self.error_at(damage.offset.into(), &damage.reason)
    }

    /// The error for damage at a byte.
    pub(crate) fn error_at(&self, offset: u64, reason: &str) -> Error {
        self.error(ErrorKind::Corrupt, reason).offset_at(offset)
    }

    fn error(&self, kind: ErrorKind, message: &str) -> Error {
        Error::new(kind, message).at(&self.path).of(FORMAT)
    }
}

/// The limit of a segment's size: every offset, the end included, is a u32.
fn limit(page_bytes: u32) -> u64 {
    (1 << 32) - u64::from(page_bytes)
}
