//! Book as a subject of the crash and fault tests.

use std::path::Path;
use std::sync::Arc;

use deedbook::book::{Batch, Book, DEED_BYTES_MAX, Mode, OnCorrupt, Options, Recovery, verify};
use deedbook::storage::sim::Sim;
use deedbook::storage::{Access, Memory, Storage};
use deedbook::{Durability, Error, ErrorKind, Result, Verdict};

use super::{How, Log, Record, Subject};

/// Where the log lies: one directory deep, so that its own name can be lost, too.
pub const PATH: &str = "/log";

/// The packed layout, in a directory of this name.
pub struct BookSubject {
    pub path: &'static str,
    pub first: u64,
}

/// A log that begins with event 1.
pub const BOOK: BookSubject = BookSubject { path: PATH, first: 1 };
/// A log whose directory says which events came before it.
pub const EPOCH: BookSubject = BookSubject { path: "/0i70000", first: 70_001 };

pub fn options(disk: &Sim, how: How) -> Options {
    Options {
        durability: how.durability,
        recovery: if how.acknowledged { Recovery::Acknowledged } else { Recovery::Valid },
        storage: Arc::new(disk.clone()),
        ..Options::default()
    }
}

fn read_all(book: &Book) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    let mut deeds = book.cursor(0, None, OnCorrupt::Raise)?;
    while let Some(deed) = deeds.next()? {
        records.push(Record {
            ordinal: deed.event.unwrap_or(0),
            tag: deed.mug,
            bytes: deed.jam.to_vec(),
        });
    }
    Ok(records)
}

impl Subject for BookSubject {
    fn name(&self) -> &'static str {
        if self.first == 1 { "book" } else { "book-epoch" }
    }

    fn framing_bytes(&self) -> u64 {
        24
    }

    fn first_ordinal(&self) -> u64 {
        self.first
    }

    fn nested(&self) -> Vec<u8> {
        let memory = Memory::new();
        let storage: Arc<dyn Storage> = Arc::new(memory.clone());
        let options = Options { storage, durability: Durability::Manual, ..Options::default() };
        let book = options.open("/nested", Mode::Create).unwrap();
        for size in [8, 0, 40, 100, 1, 300] {
            book.append(0xbad, &vec![0xee; size]).unwrap();
        }
        book.close().unwrap();
        let file = memory.open(Path::new("/nested/book.log"), Access::Read).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize - 16];
        file.read_at(&mut bytes, 16).unwrap();
        bytes
    }

    fn open(&self, disk: &Sim, how: How) -> Result<Box<dyn Log>> {
        Ok(Box::new(BookLog(options(disk, how).open(self.path, Mode::Append)?)))
    }

    fn peek(&self, disk: &Sim) -> Result<Vec<Record>> {
        let how = How { durability: Durability::Manual, acknowledged: false };
        let options = options(disk, how);
        let seen = read_all(&options.open(self.path, Mode::Read)?)?;
        let checked = verify(self.path, &options, |_, _| Ok(()))?;
        if checked.verdict == Verdict::Corrupt || checked.records != seen.len() as u64 {
            let message = format!("{} deeds read, but checked: {checked:?}", seen.len());
            return Err(Error::new(ErrorKind::Corrupt, message));
        }
        Ok(seen)
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

    fn read_all(&self) -> Result<Vec<Record>> {
        read_all(&self.0)
    }
}
