//! The write-ahead log as a subject of the crash and fault tests: as one file, and in segments so
//! small that records span them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deedbook::storage::sim::Sim;
use deedbook::storage::{Access, Storage};
use deedbook::wal::{
    Batch, Cursor, Layout, Lsn, Mode, OnCorrupt, Options, RECORD_BYTES_MAX, RecordRef, Recovery,
    Reverse, Wal, repair, segment_name, verify,
};
use deedbook::{ErrorKind, Result};

use super::{Checked, How, Log, MANUAL, Record, Steps, Subject};

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
/// Segments of which a block of the index spans two.
pub const LARGE: WalSubject = WalSubject {
    name: "wal-segments-50000",
    path: "/log",
    layout: Layout::Segmented { segment_bytes: 50_000 },
};

impl WalSubject {
    pub fn options(&self, disk: &Sim, how: How) -> Options {
        self.options_on(Arc::new(disk.clone()), how)
    }

    pub fn options_on(&self, storage: Arc<dyn Storage>, how: How) -> Options {
        Options::new()
            .durability(how.durability)
            .recovery(if how.acknowledged { Recovery::Acknowledged } else { Recovery::Valid })
            .layout(self.layout)
            .storage(storage)
    }

    /// Whatever layout is there.
    fn look_on(&self, storage: Arc<dyn Storage>) -> Options {
        self.options_on(storage, MANUAL).layout(None)
    }

    fn is_single(&self) -> bool {
        self.layout == Layout::Single
    }

    pub fn wal(&self, disk: &Sim, how: How) -> Result<Wal> {
        self.options(disk, how).open(self.path, Mode::Append)
    }
}

fn record(found: &RecordRef<'_>) -> Record {
    let Lsn(ordinal) = found.lsn;
    Record { ordinal, tag: ordinal as u32, bytes: found.payload.to_vec() }
}

fn collect(mut cursor: Cursor) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    while let Some(found) = cursor.next()? {
        records.push(record(&found));
    }
    Ok(records)
}

fn collect_back(mut cursor: Reverse) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    while let Some(found) = cursor.next()? {
        records.push(record(&found));
    }
    Ok(records)
}

pub fn read_all(wal: &Wal) -> Result<Vec<Record>> {
    collect(wal.cursor(None, None, OnCorrupt::Raise)?)
}

/// Numbers of the segments in a directory, the lowest first.
pub fn segments_in(storage: &dyn Storage, dir: &Path) -> Vec<u64> {
    let index = |name: OsString| name.to_str()?.strip_suffix(".wal")?.parse().ok();
    let mut indices: Vec<u64> = storage.list(dir).unwrap().into_iter().filter_map(index).collect();
    indices.sort_unstable();
    indices
}

impl Subject for WalSubject {
    fn name(&self) -> &'static str {
        self.name
    }

    /// Appends of no byte, up to a border, over one, over two, a batch, one full of records; a
    /// sync; prefixes and ends dropped; closed and opened again.
    fn steps(&self) -> Steps {
        let steps = Steps {
            alphabet: "0<=>SbLshxtcr",
            longer: "0<=>SbLsr0<=>SbLsr1hmxtucC",
            // With records to drop, which makes long histories anyway.
            families: &[("", 0), ("bLs", 1)],
            blocks: ("", ""),
            scripts: &["0=sbLsh>r1x", "bLst1", "r1r"],
            share: 25,
        };
        match self.layout.segment_bytes() {
            // Of one file no prefix can be dropped.
            None => Steps {
                alphabet: "0<=>SbLstcr",
                longer: "0<=>SbLsr0<=>SbLsr1tucCKHB",
                blocks: ("HBs", "1bHBsrtucC"),
                scripts: &["0=sbLt1r>c", "Lbsu", "r1r"],
                ..steps
            },
            // The third one has more unsynced segments than may be open.
            Some(..512) => Steps { scripts: &["=S>sm0c", "Lsx1r", "LLLLLs"], ..steps },
            Some(..10_000) => steps,
            // Longer records only: the others are those of smaller segments.
            Some(_) => Steps {
                alphabet: "",
                longer: "1HBKs1HBKsrhmxtucC",
                families: &[],
                blocks: ("HBs", "1HBsrhmtuc"),
                scripts: &["Hsh1"],
                share: 100,
            },
        }
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

    fn ordinal_after(&self, ordinal: u64, payload_len: usize) -> u64 {
        ordinal + 8 + payload_len as u64
    }

    /// There is no tag in a record; its position is as good.
    fn tag(&self, ordinal: u64, _tag: u32) -> u32 {
        ordinal as u32
    }

    fn border_bytes(&self) -> u64 {
        let sector = super::history::SECTOR_BYTES;
        self.layout.segment_bytes().filter(|&bytes| bytes < 10 * sector).unwrap_or(sector)
    }

    fn long_bytes(&self) -> usize {
        if self.border_bytes() < 512 { 250 } else { super::history::LONG_BYTES }
    }

    fn nested(&self) -> Vec<u8> {
        let sizes: &[usize] =
            if self.border_bytes() < 512 { &[8, 0, 20] } else { &[8, 0, 40, 100, 1, 300] };
        let disk = Sim::new();
        let wal = SINGLE.wal(&disk, MANUAL).unwrap();
        for size in sizes {
            wal.append(&vec![0xee; *size]).unwrap();
        }
        let end = wal.end().unwrap().0;
        wal.close().unwrap();
        let file = disk.open(SINGLE.path.as_ref(), Access::Read).unwrap();
        let mut bytes = vec![0; end as usize];
        assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
        bytes
    }

    fn files(&self, storage: &dyn Storage) -> Vec<(PathBuf, u64)> {
        let Some(size) = self.layout.segment_bytes() else {
            return vec![(self.path.into(), 0)];
        };
        let dir = Path::new(self.path);
        let place = |index| (dir.join(segment_name(index)), index * size);
        segments_in(storage, dir).into_iter().map(place).collect()
    }

    fn open_on(&self, storage: Arc<dyn Storage>, how: How) -> Result<Box<dyn Log>> {
        Ok(Box::new(WalLog(self.options_on(storage, how).open(self.path, Mode::Append)?)))
    }

    fn read_on(&self, storage: Arc<dyn Storage>) -> Result<Box<dyn Log>> {
        Ok(Box::new(WalLog(self.look_on(storage).open(self.path, Mode::Read)?)))
    }

    fn check_on(&self, storage: Arc<dyn Storage>) -> Result<Checked> {
        let report = verify(self.path, &self.look_on(storage), |_, _| Ok(()))?;
        let (verdict, lost) = (report.verdict, report.lost_acknowledged);
        Ok(Checked { verdict, records: report.records, lost })
    }

    fn repair_on(&self, storage: Arc<dyn Storage>) -> Result<()> {
        repair(
            self.path,
            &self.look_on(storage),
            deedbook::Repair { force: true, accept_loss: true, dry_run: false },
        )
        .map(drop)
    }

    fn open_cutting_on(&self, storage: Arc<dyn Storage>) -> Result<Box<dyn Log>> {
        let options = self.options_on(storage, MANUAL).recovery(Recovery::Spec);
        Ok(Box::new(WalLog(options.open(self.path, Mode::Append)?)))
    }

    fn sidecar(&self) -> PathBuf {
        match self.is_single() {
            true => Path::new(self.path).with_file_name(".deedbook").join("wal"),
            false => Path::new(self.path).join(".deedbook"),
        }
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

    fn durable_end(&self) -> Result<Option<u64>> {
        Ok(self.0.durable_end()?.map(|Lsn(end)| end))
    }

    fn read_all(&self) -> Result<Vec<Record>> {
        read_all(&self.0)
    }

    fn read(&self, ordinal: u64) -> Result<Record> {
        let bytes = self.0.read(Lsn(ordinal))?;
        Ok(Record { ordinal, tag: ordinal as u32, bytes: bytes.payload })
    }

    fn read_from(&self, ordinal: u64) -> Result<Vec<Record>> {
        collect(self.0.cursor(Some(Lsn(ordinal)), None, OnCorrupt::Raise)?)
    }

    fn read_back(&self) -> Result<Vec<Record>> {
        collect_back(self.0.cursor_back(None, None)?)
    }

    fn read_past_damage(&self) -> Result<Vec<Vec<u8>>> {
        let records = collect(self.0.cursor(None, None, OnCorrupt::Skip)?)?;
        Ok(records.into_iter().map(|record| record.bytes).collect())
    }

    fn refresh(&self) -> Result<()> {
        self.0.refresh().map(drop)
    }

    fn read_splits(&self, split_bytes: u64) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        for split in self.0.splits(split_bytes, None, None)? {
            let part = collect(deedbook::wal::Wal::read_split(
                &split,
                self.0.options(),
                OnCorrupt::Raise,
                true,
            )?)?;
            if split.records != Some(part.len() as u64) {
                let message = format!("{split:?} has {} records", part.len());
                return Err(deedbook::Error::new(ErrorKind::Corrupt, message));
            }
            records.extend(part);
        }
        Ok(records)
    }

    fn next_ordinal(&self) -> Result<Option<u64>> {
        Ok(Some(self.0.end()?.0))
    }

    fn truncate_before(&self, ordinal: u64) -> Result<()> {
        self.0.truncate_before(Lsn(ordinal)).map(drop)
    }

    fn truncate_after(&self, ordinal: u64) -> Result<()> {
        self.0.truncate_after(Lsn(ordinal)).map(drop)
    }

    fn truncate_from(&self, ordinal: u64) -> Result<()> {
        self.0.truncate_from(Lsn(ordinal)).map(drop)
    }
}
