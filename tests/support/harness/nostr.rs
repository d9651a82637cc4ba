//! The event store's write-ahead log as a subject of the crash and fault tests: in one file, and in
//! many.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use deedbook::nostr::wal::{Entry, EventWal, Logged, Lsn, Replay, WalOptions, repair};
use deedbook::storage::{Access, Memory, Storage};
use deedbook::{Error, ErrorKind, Mode, OnCorrupt, Recovery, Repair, Result, Verdict};

use super::{Checked, How, Log, MANUAL, Record, Steps, Subject};

/// Files of one size.
pub struct NostrWal {
    pub name: &'static str,
    pub segment_bytes: u64,
}

/// One file, whatever the tests append.
pub const ONE_FILE: NostrWal = NostrWal { name: "nostr-wal", segment_bytes: 1 << 30 };
/// A few entries in each file.
pub const FILES: NostrWal = NostrWal { name: "nostr-wal-files-600", segment_bytes: 600 };

const PATH: &str = "/log";

impl NostrWal {
    pub fn options(&self, storage: Arc<dyn Storage>, how: How) -> WalOptions {
        WalOptions::new()
            .durability(how.durability)
            .recovery(if how.acknowledged { Recovery::Acknowledged } else { Recovery::Valid })
            .segment_bytes(self.segment_bytes)
            .storage(storage)
            .small(true)
    }
}

fn opened(mode: Mode, options: WalOptions) -> Result<Box<dyn Log>> {
    let wal = Arc::new(options.open(PATH, mode)?);
    Ok(Box::new(NostrLog { wal: Mutex::new(wal), options }))
}

/// The time of an entry is the record's tag.
fn record(logged: Logged<'_>) -> Record {
    let Entry::Insert { record } = logged.entry else { panic!("{logged:?}") };
    Record { ordinal: logged.lsn.0, tag: logged.timestamp as u32, bytes: record.to_vec() }
}

fn collect(mut replay: Replay) -> Result<Vec<Record>> {
    std::iter::from_fn(|| replay.next().map(|found| found.map(record)).transpose()).collect()
}

impl Subject for NostrWal {
    fn name(&self) -> &'static str {
        self.name
    }
    fn steps(&self) -> Steps {
        Steps {
            alphabet: "01<=>bLsr",
            longer: "01<=>bLsr01<=>bLsrKHB",
            families: &[("", 0)],
            blocks: ("HBs", "1bHBsr"),
            // Many files make many calls, each of which fails in turn.
            scripts: match self.appends_sync() {
                true => &["0bLsr1K", "r1r"],
                false => &["0=sbLr>s1rK", "Lbs", "r1r"],
            },
            share: 10,
        }
    }
    fn framing_bytes(&self) -> u64 {
        29
    }
    fn appends_sync(&self) -> bool {
        self.segment_bytes < ONE_FILE.segment_bytes
    }
    fn head_bytes(&self) -> u64 {
        21
    }
    fn first_ordinal(&self) -> u64 {
        1
    }
    /// Entries of a log of another time, whose numbers go on here.
    fn nested(&self) -> Vec<u8> {
        let storage: Arc<dyn Storage> = Arc::new(Memory::new());
        let wal = ONE_FILE.options(storage.clone(), MANUAL).open(PATH, Mode::Create).unwrap();
        for size in [8, 0, 40, 100, 1, 200] {
            wal.append(&Entry::Insert { record: &vec![0xee; size] }, 9).unwrap();
        }
        wal.close().unwrap();
        let file = storage.open(&Path::new(PATH).join("wal.log"), Access::Read);
        let mut bytes = vec![0; 24 + 6 * 29 + 349];
        assert_eq!(file.unwrap().read_at(&mut bytes, 0).unwrap(), bytes.len());
        bytes.split_off(24)
    }
    fn files(&self, storage: &dyn Storage) -> Vec<(PathBuf, u64)> {
        let name = |number| match number {
            0 => "wal.log".to_string(),
            _ => format!("wal.{number:06}.log"),
        };
        let (mut files, mut at) = (Vec::new(), 0);
        for path in (0..).map(|number| Path::new(PATH).join(name(number))) {
            let Ok(file) = storage.open(&path, Access::Read) else { break };
            files.push((path, at));
            at += file.len().unwrap();
        }
        files
    }
    fn open_on(&self, storage: Arc<dyn Storage>, how: How) -> Result<Box<dyn Log>> {
        opened(Mode::Append, self.options(storage, how))
    }
    fn read_on(&self, storage: Arc<dyn Storage>) -> Result<Box<dyn Log>> {
        opened(Mode::Read, self.options(storage, MANUAL))
    }
    fn check_on(&self, storage: Arc<dyn Storage>) -> Result<Checked> {
        let reports = self.options(storage, MANUAL).open(PATH, Mode::Read)?.verify()?;
        let ends = [Verdict::Corrupt, Verdict::Torn, Verdict::Open];
        let has = |end: &Verdict| reports.iter().any(|report| report.verdict == *end);
        Ok(Checked {
            verdict: ends.into_iter().find(has).unwrap_or(Verdict::Clean),
            records: reports.iter().map(|report| report.records).sum(),
            lost: reports.iter().any(|report| report.lost_acknowledged),
        })
    }
    fn repair_on(&self, storage: Arc<dyn Storage>) -> Result<()> {
        let may = Repair { force: true, accept_loss: true, dry_run: false };
        repair(PATH, &self.options(storage, MANUAL), may).map(drop)
    }
    fn open_cutting_on(&self, storage: Arc<dyn Storage>) -> Result<Box<dyn Log>> {
        let options = self.options(storage, MANUAL);
        opened(Mode::Append, options.recovery(Recovery::Spec))
    }
    fn sidecar(&self) -> PathBuf {
        Path::new(PATH).join(".deedbook/wal.log")
    }
}

struct NostrLog {
    wal: Mutex<Arc<EventWal>>,
    options: WalOptions,
}

impl NostrLog {
    fn wal(&self) -> Arc<EventWal> {
        self.wal.lock().unwrap().clone()
    }
}

impl Log for NostrLog {
    fn append(&self, records: &[(u32, Vec<u8>)]) -> Result<()> {
        let wal = self.wal();
        if let [(tag, bytes)] = records {
            return wal.append(&Entry::Insert { record: bytes }, u64::from(*tag)).map(drop);
        }
        let entries: Vec<_> = records
            .iter()
            .map(|(tag, bytes)| (Entry::Insert { record: bytes }, u64::from(*tag)))
            .collect();
        wal.append_many(&entries).map(drop)
    }
    fn sync(&self) -> Result<()> {
        self.wal().sync()
    }
    fn close(&self) -> Result<()> {
        self.wal().close()
    }
    fn end(&self) -> Result<u64> {
        Ok(self.wal().bytes())
    }
    fn durable_end(&self) -> Result<Option<u64>> {
        Ok(self.wal().durable()?.map(|lsn| lsn.0))
    }
    fn read_all(&self) -> Result<Vec<Record>> {
        collect(self.wal().entries(Lsn(0), OnCorrupt::Raise)?)
    }
    fn read(&self, ordinal: u64) -> Result<Record> {
        let mut entries = self.wal().entries(Lsn(ordinal), OnCorrupt::Raise)?;
        let none = || Error::new(ErrorKind::OutOfRange, "no such entry");
        entries.next()?.map(record).filter(|record| record.ordinal == ordinal).ok_or_else(none)
    }
    fn read_from(&self, ordinal: u64) -> Result<Vec<Record>> {
        collect(self.wal().entries(Lsn(ordinal), OnCorrupt::Raise)?)
    }
    /// There is no walk backwards.
    fn read_back(&self) -> Result<Vec<Record>> {
        Ok(self.read_all()?.into_iter().rev().collect())
    }
    /// There are no parts.
    fn read_splits(&self, _split_bytes: u64) -> Result<Vec<Record>> {
        self.read_all()
    }
    fn read_past_damage(&self) -> Result<Vec<Vec<u8>>> {
        let records = collect(self.wal().entries(Lsn(0), OnCorrupt::Skip)?)?;
        Ok(records.into_iter().map(|record| record.bytes).collect())
    }
    /// A reader looks again by opening the log again.
    fn refresh(&self) -> Result<()> {
        *self.wal.lock().unwrap() = Arc::new(self.options.open(PATH, Mode::Read)?);
        Ok(())
    }
}
