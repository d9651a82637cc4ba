//! Book as a subject of the crash and fault tests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use deedbook::book::{
    Batch, Book, Cursor, DEED_BYTES_MAX, DeedRef, LOG_NAME, Layout, Mode, OnCorrupt, Options,
    Recovery, Reverse, repair, verify,
};
use deedbook::storage::sim::Sim;
use deedbook::storage::{Access, Memory, Storage};
use deedbook::{Error, ErrorKind, Result};

use super::{Checked, How, Log, MANUAL, Record, Steps, Subject};

/// Where the log lies: one directory deep, so that its own name can be lost, too.
pub const PATH: &str = "/log";

/// A layout, in a directory of this name.
pub struct BookSubject {
    pub path: &'static str,
    pub first: u64,
    pub layout: Layout,
}

/// A log that begins with event 1.
pub const BOOK: BookSubject = BookSubject { path: PATH, first: 1, layout: Layout::Packed };
/// A log whose directory says which events came before it.
pub const EPOCH: BookSubject =
    BookSubject { path: "/0i70000", first: 70_001, layout: Layout::Packed };
/// A log whose header says how far it is committed.
pub const SLOTS: BookSubject = BookSubject { path: PATH, first: 1, layout: Layout::Slots };

pub fn options(disk: &Sim, how: How) -> Options {
    options_on(Arc::new(disk.clone()), how)
}

impl BookSubject {
    fn options_on(&self, storage: Arc<dyn Storage>, how: How) -> Options {
        options_on(storage, how).layout(self.layout)
    }
}

pub fn options_on(storage: Arc<dyn Storage>, how: How) -> Options {
    Options::new()
        .durability(how.durability)
        .recovery(if how.acknowledged { Recovery::Acknowledged } else { Recovery::Valid })
        .storage(storage)
}

fn record(deed: &DeedRef<'_>) -> Record {
    Record { ordinal: deed.event.unwrap_or(0), tag: deed.mug, bytes: deed.jam.to_vec() }
}

fn collect(mut deeds: Cursor) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    while let Some(deed) = deeds.next()? {
        records.push(record(&deed));
    }
    Ok(records)
}

fn collect_back(mut deeds: Reverse) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    while let Some(deed) = deeds.next()? {
        records.push(record(&deed));
    }
    Ok(records)
}

impl Subject for BookSubject {
    fn name(&self) -> &'static str {
        match (self.layout, self.first) {
            (Layout::Slots, _) => "book-slots",
            (_, 1) => "book",
            _ => "book-epoch",
        }
    }

    fn steps(&self) -> Steps {
        Steps {
            alphabet: "01<=>bLsr",
            // Records of many sectors, of more than an index block, too.
            longer: "01<=>bLsr01<=>bLsr01<=>bLsr01<=>bLsr01<=>bLsr01<=>bLsrKHB",
            families: &[("", 0)],
            blocks: ("HBs", "1bHBsr"),
            scripts: &["0=sbLr>s1rK", "Lbs", "r1r"],
            share: if self.first == 1 && self.layout == Layout::Packed { 1 } else { 10 },
        }
    }

    fn framing_bytes(&self) -> u64 {
        if self.layout == Layout::Slots { 20 } else { 24 }
    }

    /// A deed in slots has no checksum, only its length twice.
    fn telling_byte(&self, offset: u64, end: u64) -> u64 {
        if self.layout == Layout::Slots { end - 7 } else { offset + self.head_bytes() + 10 }
    }

    fn counts_records(&self) -> bool {
        self.layout == Layout::Slots
    }

    fn appends_wait_for_syncs(&self) -> bool {
        self.layout == Layout::Slots
    }

    fn head_bytes(&self) -> u64 {
        12
    }

    fn first_ordinal(&self) -> u64 {
        self.first
    }

    fn nested(&self) -> Vec<u8> {
        let memory = Memory::new();
        let storage: Arc<dyn Storage> = Arc::new(memory.clone());
        let options = self.options_on(storage, MANUAL);
        let book = options.open("/nested", Mode::Create).unwrap();
        for size in [8, 0, 40, 100, 1, 300] {
            book.append(0xbad, &vec![0xee; size]).unwrap();
        }
        book.close().unwrap();
        let file = memory.open(Path::new("/nested/book.log"), Access::Read).unwrap();
        let header = if self.layout == Layout::Slots { 8192 } else { 16 };
        let mut bytes = vec![0; file.len().unwrap() as usize - header];
        file.read_at(&mut bytes, header as u64).unwrap();
        bytes
    }

    fn files(&self, _storage: &dyn Storage) -> Vec<(PathBuf, u64)> {
        vec![(Path::new(self.path).join(LOG_NAME), 0)]
    }

    fn open_on(&self, storage: Arc<dyn Storage>, how: How) -> Result<Box<dyn Log>> {
        let options = self.options_on(storage, how);
        Ok(Box::new(BookLog(options.open(self.path, Mode::Append)?)))
    }

    fn read_on(&self, storage: Arc<dyn Storage>) -> Result<Box<dyn Log>> {
        let options = options_on(storage, MANUAL);
        Ok(Box::new(BookLog(options.open(self.path, Mode::Read)?)))
    }

    fn check_on(&self, storage: Arc<dyn Storage>) -> Result<Checked> {
        let report = verify(self.path, &options_on(storage, MANUAL), |_, _| Ok(()))?;
        let (verdict, lost) = (report.verdict, report.lost_acknowledged);
        Ok(Checked { verdict, records: report.records, lost })
    }

    fn repair_on(&self, storage: Arc<dyn Storage>) -> Result<()> {
        repair(
            self.path,
            &options_on(storage, MANUAL),
            deedbook::Repair { force: true, accept_loss: true, dry_run: false },
        )
        .map(drop)
    }

    fn open_cutting_on(&self, storage: Arc<dyn Storage>) -> Result<Box<dyn Log>> {
        let options = self.options_on(storage, MANUAL).recovery(Recovery::Spec);
        Ok(Box::new(BookLog(options.open(self.path, Mode::Append)?)))
    }

    fn sidecar(&self) -> PathBuf {
        Path::new(self.path).join(".deedbook")
    }
}

struct BookLog(Book);

impl Log for BookLog {
    fn append(&self, records: &[(u32, Vec<u8>)]) -> Result<()> {
        if let [(tag, bytes)] = records {
            return self.0.append(*tag, bytes).map(drop);
        }
        let mut batch = Batch::new(DEED_BYTES_MAX);
        for (tag, bytes) in records {
            batch.push(*tag, bytes)?;
        }
        self.0.append_batch(&batch, None, None).map(drop)
    }

    fn sync(&self) -> Result<()> {
        self.0.sync()
    }

    fn close(&self) -> Result<()> {
        self.0.close()
    }

    fn end(&self) -> Result<u64> {
        self.0.end()
    }

    fn durable_end(&self) -> Result<Option<u64>> {
        Ok(self.0.durable_last()?.map(|last| last + 1))
    }

    fn read_all(&self) -> Result<Vec<Record>> {
        self.read_from(0)
    }

    fn read(&self, ordinal: u64) -> Result<Record> {
        let deed = self.0.read(ordinal)?;
        Ok(Record { ordinal: deed.event.unwrap_or(0), tag: deed.mug, bytes: deed.jam })
    }

    fn read_from(&self, ordinal: u64) -> Result<Vec<Record>> {
        collect(self.0.cursor(ordinal, None, OnCorrupt::Raise)?)
    }

    fn read_back(&self) -> Result<Vec<Record>> {
        collect_back(self.0.cursor_back(0, None)?)
    }

    fn read_past_damage(&self) -> Result<Vec<Vec<u8>>> {
        let records = collect(self.0.cursor(0, None, OnCorrupt::Skip)?)?;
        Ok(records.into_iter().map(|record| record.bytes).collect())
    }

    fn refresh(&self) -> Result<()> {
        self.0.refresh().map(drop)
    }

    fn read_splits(&self, split_bytes: u64) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        for split in self.0.splits(split_bytes, 0, None)? {
            let deeds = deedbook::book::Book::read_split(
                &split,
                self.0.options(),
                0,
                None,
                OnCorrupt::Raise,
                true,
            )?;
            let part = collect(deeds)?;
            if split.records != Some(part.len() as u64) {
                let message = format!("{split:?} has {} deeds", part.len());
                return Err(Error::new(ErrorKind::Corrupt, message));
            }
            records.extend(part);
        }
        Ok(records)
    }
}
