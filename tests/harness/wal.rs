//! The write-ahead log as a subject of the crash and fault tests: as one file, and in segments so
//! small that records span them.

use std::sync::Arc;

use deedbook::storage::sim::Sim;
use deedbook::wal::{
    Batch, Layout, Lsn, Mode, OnCorrupt, Options, RECORD_BYTES_MAX, Recovery, Wal,
};
use deedbook::{Durability, Result};

use super::{How, Log, Record, Subject};

/// Steps of the histories: appends of no byte, up to a border, over one, over two, a batch, one
/// full of records; a sync; prefixes and ends dropped; closed and opened again.
pub const ALPHABET: &str = "0<=>SbLshxtcr";
/// And what longer ones, by chance, have besides.
pub const LONGER: &str = "0<=>SbLsr0<=>SbLsr1hmxtucC";

/// One layout.
pub struct WalSubject {
    pub name: &'static str,
    pub path: &'static str,
    pub layout: Layout,
}

/// One file, in a directory of its own.
pub const SINGLE: WalSubject =
    WalSubject { name: "wal-single", path: "/log/wal", layout: Layout::Single };
/// Segments whose ends lie within a sector.
pub const SEGMENTS: WalSubject = WalSubject {
    name: "wal-segments-600",
    path: "/log",
    layout: Layout::Segmented { segment_bytes: 600 },
};
/// Segments of which a record can have many.
pub const TINY: WalSubject = WalSubject {
    name: "wal-segments-64",
    path: "/log",
    layout: Layout::Segmented { segment_bytes: 64 },
};

impl WalSubject {
    pub fn options(&self, disk: &Sim, how: How) -> Options {
        Options {
            durability: how.durability,
            recovery: if how.acknowledged { Recovery::Acknowledged } else { Recovery::Valid },
            layout: Some(self.layout),
            storage: Arc::new(disk.clone()),
            ..Options::default()
        }
    }

    pub fn wal(&self, disk: &Sim, how: How) -> Result<Wal> {
        self.options(disk, how).open(self.path, Mode::Append)
    }
}

pub fn read_all(wal: &Wal) -> Result<Vec<Record>> {
    let mut found = Vec::new();
    let mut records = wal.cursor(None, None, OnCorrupt::Raise)?;
    while let Some(record) = records.next()? {
        let Lsn(ordinal) = record.lsn;
        found.push(Record { ordinal, tag: ordinal as u32, bytes: record.payload.to_vec() });
    }
    Ok(found)
}

impl Subject for WalSubject {
    fn name(&self) -> &'static str {
        self.name
    }

    fn framing_bytes(&self) -> u64 {
        8
    }

    fn head_bytes(&self) -> u64 {
        8
    }

    fn first_ordinal(&self) -> u64 {
        0
    }

    fn ordinal_behind(&self, ordinal: u64, payload_len: usize) -> u64 {
        ordinal + 8 + payload_len as u64
    }

    /// There is no tag in a record; its position is as good.
    fn tag(&self, ordinal: u64, _tag: u32) -> u32 {
        ordinal as u32
    }

    fn border_bytes(&self) -> u64 {
        self.layout.segment_bytes().unwrap_or(super::history::SECTOR_BYTES)
    }

    fn long_bytes(&self) -> usize {
        if self.border_bytes() < 512 { 250 } else { super::history::LONG_BYTES }
    }

    fn nested(&self) -> Vec<u8> {
        let sizes: &[usize] =
            if self.border_bytes() < 512 { &[8, 0, 20] } else { &[8, 0, 40, 100, 1, 300] };
        let disk = Sim::new();
        let how = How { durability: Durability::Manual, acknowledged: false };
        let wal = SINGLE.wal(&disk, how).unwrap();
        for size in sizes {
            wal.append(&vec![0xee; *size]).unwrap();
        }
        let end = wal.end().unwrap().0;
        wal.close().unwrap();
        let storage: &dyn deedbook::storage::Storage = &disk;
        let file = storage.open(SINGLE.path.as_ref(), deedbook::storage::Access::Read).unwrap();
        let mut bytes = vec![0; end as usize];
        assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
        bytes
    }

    fn open(&self, disk: &Sim, how: How) -> Result<Box<dyn Log>> {
        Ok(Box::new(WalLog(self.wal(disk, how)?)))
    }

    fn peek(&self, disk: &Sim) -> Result<Vec<Record>> {
        let how = How { durability: Durability::Manual, acknowledged: false };
        let options = Options { layout: None, ..self.options(disk, how) };
        read_all(&options.open(self.path, Mode::Read)?)
    }
}

struct WalLog(Wal);

impl Log for WalLog {
    fn append(&self, records: &[(u32, Vec<u8>)]) -> Result<()> {
        if let [(_, bytes)] = records {
            return self.0.append(bytes).map(drop);
        }
        let mut batch = Batch::new(RECORD_BYTES_MAX);
        for (_, bytes) in records {
            batch.push(bytes)?;
        }
        self.0.append_batch(&batch).map(drop)
    }

    fn sync(&self) -> Result<()> {
        self.0.sync()
    }

    fn close(&self) -> Result<()> {
        self.0.close()
    }

    fn end(&self) -> Result<u64> {
        Ok(self.0.end()?.0)
    }

    fn read_all(&self) -> Result<Vec<Record>> {
        read_all(&self.0)
    }

    fn next_ordinal(&self) -> Result<Option<u64>> {
        Ok(Some(self.0.end()?.0))
    }

    fn truncate_before(&self, ordinal: u64) -> Result<()> {
        self.0.truncate_before(Lsn(ordinal))
    }

    fn truncate_after(&self, ordinal: u64) -> Result<()> {
        self.0.truncate_after(Lsn(ordinal))
    }

    fn truncate_from(&self, ordinal: u64) -> Result<()> {
        self.0.truncate_from(Lsn(ordinal))
    }
}
