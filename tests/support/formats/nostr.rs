//! The event store's write-ahead log as a format of these suites: in one file, and in many. A record is
//! an entry of an event, and the entry's time the record's tag.

use deedbook::nostr::wal::{Entry, EventWal, Logged, Lsn, Replay, WalOptions, repair};

use crate::support::formats::subject::{Event, Record, on_corrupt, walk, walked};
use crate::support::prelude::*;

pub struct NostrWal {
    pub name: &'static str,
    pub segment_bytes: u64,
}

/// One file, whatever the tests append.
pub const ONE_FILE: NostrWal = NostrWal { name: "nostr-wal", segment_bytes: 1 << 30 };
pub const FILES: NostrWal = NostrWal { name: "nostr-wal-files-600", segment_bytes: 600 };

impl NostrWal {
    fn options(&self, at: &At, how: How) -> WalOptions {
        WalOptions::new()
            .durability(how.durability)
            .recovery(how.recovery)
            .segment_bytes(self.segment_bytes)
            .storage(at.storage.clone())
            .small(true)
    }
}

impl Format for NostrWal {
    fn name(&self) -> &'static str {
        self.name
    }

    fn framing(&self) -> Framing {
        unimplemented!("no suite of damaged logs knows its bytes")
    }

    fn framing_bytes(&self) -> u64 {
        29
    }

    fn head_bytes(&self) -> u64 {
        21
    }

    fn first_ordinal(&self) -> u64 {
        1
    }

    fn ordinal_after(&self, ordinal: u64, _payload_len: usize) -> u64 {
        ordinal + 1
    }

    fn record_after(&self, last: Option<&Record>, first: u64, tag: u32, bytes: &[u8]) -> Record {
        let ordinal = last.map_or(first, |last| last.number() + 1);
        Record { ordinal: Some(ordinal), offset: 0, tag, bytes: bytes.to_vec() }
    }

    fn open(&self, at: &At, mode: Mode, how: How) -> Result<Box<dyn Log>> {
        Ok(Box::new(NostrLog::open(self.options(at, how), at.path.clone(), mode)?))
    }

    fn verify_rest(&self, at: &At, how: How, _intact: &[Split]) -> Result<VerifyReport> {
        let reports = self.options(at, how).open(&at.path, Mode::Read)?.verify()?;
        let ends = [Verdict::Corrupt, Verdict::Torn, Verdict::Open, Verdict::Clean];
        let worst = ends.iter().find_map(|end| reports.iter().find(|it| it.verdict == *end));
        let mut all = worst.expect("a file").clone();
        all.records = reports.iter().map(|report| report.records).sum();
        all.lost_acknowledged = reports.iter().any(|report| report.lost_acknowledged);
        Ok(all)
    }

    fn repair_as(&self, at: &At, how: How, may: Repair) -> Result<RepairReport> {
        repair(&at.path, &self.options(at, how), may)
    }

    fn first_file(&self, path: &Path) -> PathBuf {
        path.join("wal.log")
    }

    fn files(&self, storage: &dyn Storage, path: &Path) -> Vec<(PathBuf, u64)> {
        let further = (1..).map(|number| path.join(format!("wal.{number:06}.log")));
        let (mut files, mut at) = (Vec::new(), 0);
        for file in [self.first_file(path)].into_iter().chain(further) {
            let Ok(opened) = storage.open(&file, Access::Read) else { break };
            files.push((file, at));
            at += opened.len().unwrap();
        }
        files
    }

    fn sidecar(&self, path: &Path) -> PathBuf {
        path.join(".deedbook/wal.log")
    }
}

struct NostrLog {
    wal: Mutex<Arc<EventWal>>,
    recovery: OpenReport,
    options: WalOptions,
    path: PathBuf,
}

impl NostrLog {
    fn open(options: WalOptions, path: PathBuf, mode: Mode) -> Result<Self> {
        let wal = options.open(&path, mode)?;
        let recovery = wal.recovery();
        Ok(Self { wal: Mutex::new(Arc::new(wal)), recovery, options, path })
    }

    fn wal(&self) -> Arc<EventWal> {
        self.wal.lock().unwrap().clone()
    }
}

fn record(logged: Logged<'_>) -> Record {
    let Entry::Insert { record } = logged.entry else { panic!("{logged:?}") };
    let (ordinal, tag) = (Some(logged.lsn.0), logged.timestamp as u32);
    Record { ordinal, offset: 0, tag, bytes: record.to_vec() }
}

fn drain(replay: Result<Replay>) -> Walk {
    walked!(replay)
}

fn entry((tag, bytes): &Event) -> (Entry<'_>, u64) {
    (Entry::Insert { record: bytes }, (*tag).into())
}

impl Log for NostrLog {
    fn append(&self, tag: u32, bytes: &[u8]) -> Result<u64> {
        self.wal().append(&Entry::Insert { record: bytes }, tag.into()).map(|lsn| lsn.0)
    }

    fn append_batch(&self, events: &[Event]) -> Result<u64> {
        let entries: Vec<_> = events.iter().map(entry).collect();
        self.wal().append_many(&entries).map(|lsn| lsn.0)
    }

    fn commit(&self, tag: u32, bytes: &[u8]) -> Result<u64> {
        self.wal().commit(&Entry::Insert { record: bytes }, tag.into()).map(|lsn| lsn.0)
    }

    fn sync(&self) -> Result<()> {
        self.wal().sync()
    }

    fn close(&self) -> Result<()> {
        self.wal().close()
    }

    fn len(&self) -> Result<u64> {
        Ok(self.read_all()?.len() as u64)
    }

    fn end(&self) -> Result<u64> {
        Ok(self.wal().bytes())
    }

    /// A reader looks again by opening the log again.
    fn refresh(&self) -> Result<()> {
        *self.wal.lock().unwrap() = Arc::new(self.options.open(&self.path, Mode::Read)?);
        Ok(())
    }

    fn durable(&self) -> Result<Option<u64>> {
        Ok(self.wal().durable()?.map(|lsn| lsn.0))
    }

    fn recovery(&self) -> &OpenReport {
        &self.recovery
    }

    fn read(&self, ordinal: u64) -> Result<Event> {
        let mut entries = self.wal().entries(Lsn(ordinal), on_corrupt(false))?;
        let found = entries.next()?.map(record).filter(|record| record.number() == ordinal);
        let none = || Error::new(ErrorKind::OutOfRange, "no such entry");
        found.map(|record| (record.tag, record.bytes)).ok_or_else(none)
    }

    /// An end is not asked for.
    fn forward(&self, from: Option<u64>, _to: Option<u64>, skip: bool) -> Walk {
        drain(self.wal().entries(Lsn(from.unwrap_or(0)), on_corrupt(skip)))
    }

    fn duplicate(&self) -> Box<dyn Log> {
        let (options, path) = (self.options.clone(), self.path.clone());
        Box::new(Self {
            wal: Mutex::new(self.wal()),
            recovery: self.recovery.clone(),
            options,
            path,
        })
    }
}
