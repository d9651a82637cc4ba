//! A log format as the suites see it, on any file system: its operations, and every way to read it.
//!
//! To add a format, implement [`Format`] and [`Log`]; see `book.rs`, and `wal.rs` for a format that can drop records at
//! both ends. Nothing else in this directory knows a format's types.

use crate::support::prelude::*;

#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    /// The number, or the position in a log without numbers; `None` if unknown.
    pub ordinal: Option<u64>,
    /// The first byte of the record; 0 in a format without offsets.
    pub offset: u64,
    /// A number next to the payload; 0 in a format without tags.
    pub tag: u32,
    pub bytes: Vec<u8>,
}

impl Record {
    pub fn number(&self) -> u64 {
        self.ordinal.expect("the number is known")
    }
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let number = self.ordinal.map_or("?".into(), |ordinal| ordinal.to_string());
        write!(f, "#{number} at {} ({} bytes)", self.offset, self.bytes.len())
    }
}

/// Tag and payload.
pub type Event = (u32, Vec<u8>);

#[derive(Debug, Default)]
pub struct Walk {
    pub records: Vec<Record>,
    pub damages: Vec<Damage>,
    pub error: Option<Error>,
}

impl Walk {
    pub fn failed(error: Error) -> Self {
        Self { error: Some(error), ..Self::default() }
    }

    pub fn all(self) -> Result<Vec<Record>> {
        self.error.map_or(Ok(self.records), Err)
    }

    pub fn events(&self) -> Vec<Event> {
        self.records.iter().map(|record| (record.tag, record.bytes.clone())).collect()
    }
}

pub fn on_corrupt(skip: bool) -> OnCorrupt {
    if skip { OnCorrupt::Skip } else { OnCorrupt::Raise }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    pub durability: Durability,
    pub recovery: Recovery,
    pub record_bytes_max: Option<u64>,
}

pub const MANUAL: How =
    How { durability: Durability::Manual, recovery: Recovery::Valid, record_bytes_max: None };
pub const ALWAYS: How = How { durability: Durability::Always, ..MANUAL };
pub const ACKNOWLEDGED: How = How { recovery: Recovery::Acknowledged, ..MANUAL };

impl How {
    /// Whether opening removes unacknowledged records.
    pub fn acknowledged(self) -> bool {
        self.recovery == Recovery::Acknowledged
    }
}

#[derive(Clone, Debug)]
pub struct At {
    pub storage: Arc<dyn Storage>,
    pub path: PathBuf,
}

impl At {
    pub fn memory(memory: &Memory, path: impl Into<PathBuf>) -> Self {
        Self { storage: Arc::new(memory.clone()), path: path.into() }
    }

    pub fn disk(path: impl Into<PathBuf>) -> Self {
        Self { storage: Arc::new(Disk), path: path.into() }
    }

    pub fn other(&self, path: impl Into<PathBuf>) -> Self {
        Self { storage: self.storage.clone(), path: path.into() }
    }
}

pub trait Format: Sync {
    fn name(&self) -> &'static str;
    fn framing(&self) -> Framing;
    fn framing_bytes(&self) -> u64 {
        self.framing().around() as u64
    }
    fn head_bytes(&self) -> u64 {
        self.framing().head() as u64
    }
    fn path_in(&self, dir: &Path) -> PathBuf {
        dir.to_path_buf()
    }
    fn segment_bytes(&self) -> Option<u64> {
        None
    }
    fn first_ordinal(&self) -> u64;
    fn ordinal_after(&self, ordinal: u64, payload_len: usize) -> u64;
    /// A record as it is read back after an append: after `last`, or as the first record with the number `first`.
    fn record_after(&self, last: Option<&Record>, first: u64, tag: u32, bytes: &[u8]) -> Record {
        let len = |last: &Record| self.framing_bytes() + last.bytes.len() as u64;
        let ordinal =
            last.map_or(first, |last| self.ordinal_after(last.number(), last.bytes.len()));
        let (offset, tag) = match (self.framing().is_book(), last) {
            (false, _) => (ordinal, 0),
            (true, None) => (self.framing().start() as u64, tag),
            (true, Some(last)) => (last.offset + len(last), tag),
        };
        Record { ordinal: Some(ordinal), offset, tag, bytes: bytes.to_vec() }
    }

    fn open(&self, at: &At, mode: Mode, how: How) -> Result<Box<dyn Log>>;
    fn verify_rest(&self, at: &At, how: How, intact: &[Split]) -> Result<VerifyReport>;
    fn repair_as(&self, at: &At, how: How, may: Repair) -> Result<RepairReport>;
    fn check_part(&self, _part: &Split, _at: &At, _how: How) -> Result<VerifyReport> {
        unsupported("check_part")
    }
    fn salvage(&self, _at: &At, _to: &Path, _how: How) -> Result<SalvageReport> {
        unsupported("salvage")
    }

    fn verify(&self, at: &At, how: How) -> Result<VerifyReport> {
        self.verify_rest(at, how, &[])
    }

    fn create(&self, at: &At, events: &[Event]) -> Box<dyn Log> {
        let log = self.open(at, Mode::Create, MANUAL).unwrap();
        for (tag, bytes) in events {
            log.append(*tag, bytes).unwrap();
        }
        log
    }

    /// A repair that removes no intact record and accepts no loss.
    fn repair(&self, at: &At, how: How) -> Result<RepairReport> {
        self.repair_as(at, how, Repair::default())
    }

    fn read(&self, at: &At) -> Result<Box<dyn Log>> {
        self.open(at, Mode::Read, MANUAL)
    }

    /// The file with the log's first byte, below the log's path.
    fn first_file(&self, path: &Path) -> PathBuf;

    /// The record files, in order, and the first byte of each in the log.
    fn files(&self, _storage: &dyn Storage, path: &Path) -> Vec<(PathBuf, u64)> {
        vec![(self.first_file(path), 0)]
    }

    fn sidecar(&self, path: &Path) -> PathBuf {
        path.join(".deedbook")
    }
}

pub trait Log: Send + Sync {
    fn append(&self, tag: u32, bytes: &[u8]) -> Result<u64>;
    fn append_batch(&self, events: &[Event]) -> Result<u64>;
    fn append_from(&self, _tag: u32, _len: u64, _payload: &mut dyn Read) -> Result<u64> {
        unsupported("append_from")
    }
    /// A payload, a part at a time, up to the first error.
    fn read_in_parts(&self, _ordinal: u64) -> (Vec<u8>, Result<()>) {
        (Vec::new(), unsupported("read_in_parts"))
    }
    /// A single event by `append`, several as a batch.
    fn append_all(&self, events: &[Event]) -> Result<u64> {
        match events {
            [(tag, bytes)] => self.append(*tag, bytes),
            _ => self.append_batch(events),
        }
    }
    fn commit(&self, tag: u32, bytes: &[u8]) -> Result<u64>;
    fn sync(&self) -> Result<()>;
    fn close(&self) -> Result<()>;
    fn len(&self) -> Result<u64>;
    fn end(&self) -> Result<u64>;
    fn refresh(&self) -> Result<()>;
    /// The ordinal after the last record known to be durable.
    fn durable(&self) -> Result<Option<u64>>;
    /// Number of the next record, if an empty log can have any.
    fn next_ordinal(&self) -> Result<Option<u64>> {
        Ok(None)
    }
    fn recovery(&self) -> &OpenReport;
    fn read(&self, ordinal: u64) -> Result<Event>;
    fn forward(&self, from: Option<u64>, to: Option<u64>, skip: bool) -> Walk;
    fn backward(&self, from: Option<u64>, to: Option<u64>) -> Walk {
        let mut walk = self.forward(from, to, false);
        walk.records.reverse();
        walk
    }
    fn read_all(&self) -> Result<Vec<Record>> {
        self.forward(None, None, false).all()
    }
    fn parts(&self, _bytes: u64) -> Result<Vec<Split>> {
        Ok(Vec::new())
    }
    /// Each part, read without the handle; the whole log in a format without parts.
    fn splits(
        &self,
        _bytes: u64,
        from: Option<u64>,
        to: Option<u64>,
        skip: bool,
    ) -> Result<Vec<Walk>> {
        Ok(vec![self.forward(from, to, skip)])
    }
    fn bookmark(&self, _ordinal: Option<u64>) -> Result<Bookmark> {
        unsupported("bookmark")
    }
    fn advance(&self, _from: &Bookmark, _reach: &Reach) -> Result<Bookmark> {
        unsupported("advance")
    }
    /// The parts between two bookmarks, each read without the handle.
    fn between(
        &self,
        _bytes: u64,
        _from: &Bookmark,
        _to: &Bookmark,
        _skip: bool,
    ) -> Result<Vec<Walk>> {
        unsupported("splits_between")
    }

    /// All records, a step of `reach` at a time.
    fn steps(&self, reach: &Reach, skip: bool) -> Walk {
        let mut walk = Walk::default();
        let mut read = || -> Result<()> {
            let mut at = self.bookmark(None)?;
            loop {
                let next = self.advance(&at, reach)?;
                if next == at {
                    return Ok(());
                }
                assert!(next.offset > at.offset, "{next:?} after {at:?}");
                for part in self.between(1 << 40, &at, &next, skip)? {
                    walk.records.extend(part.records);
                    walk.damages.extend(part.damages);
                    if let Some(error) = part.error {
                        return Err(error);
                    }
                }
                at = next;
            }
        };
        let error = read().err();
        Walk { error, ..walk }
    }

    fn arrow(&self, skip: bool) -> Walk {
        self.forward(None, None, skip)
    }
    fn follow_for(&self, _wait: Duration) -> Walk {
        unsupported("follow").unwrap_or_else(Walk::failed)
    }

    fn follow(&self) -> Walk {
        self.follow_for(Duration::ZERO)
    }

    fn duplicate(&self) -> Box<dyn Log>;

    /// Drop the records before the record with this number; with the next number, all.
    fn truncate_before(&self, _ordinal: u64) -> Result<()> {
        unsupported("truncate_before")
    }
    fn truncate_after(&self, _ordinal: u64) -> Result<()> {
        unsupported("truncate_after")
    }
    fn truncate_from(&self, _ordinal: u64) -> Result<()> {
        unsupported("truncate_from")
    }
}

fn unsupported<T>(what: &str) -> Result<T> {
    Err(Error::new(ErrorKind::Unsupported, format!("{what}: not supported")))
}

pub fn walk(mut step: impl FnMut() -> Result<Option<Record>>) -> Walk {
    let mut walk = Walk::default();
    loop {
        match step() {
            Ok(Some(record)) => walk.records.push(record),
            Ok(None) => return walk,
            Err(error) => {
                walk.error = Some(error);
                return walk;
            }
        }
    }
}

macro_rules! walked {
    ($cursor:expr $(, $wait:expr)?) => {
        match $cursor {
            Ok(mut cursor) => walk(|| Ok(cursor.next($($wait)?)?.map(record))),
            Err(error) => Walk::failed(error),
        }
    };
}

/// All records of a cursor, and the damage on the way.
macro_rules! drained {
    ($cursor:expr) => {
        match $cursor {
            Ok(mut cursor) => {
                let walk = walk(|| Ok(cursor.next()?.map(record)));
                Walk { damages: cursor.damages().to_vec(), ..walk }
            }
            Err(error) => Walk::failed(error),
        }
    };
}

/// The methods that the handle of a log, the first field, has by the same names.
macro_rules! methods_of_the_handle {
    () => {
        fn sync(&self) -> Result<()> {
            self.0.sync()
        }
        fn close(&self) -> Result<()> {
            self.0.close()
        }
        fn len(&self) -> Result<u64> {
            self.0.len()
        }
        fn recovery(&self) -> &deedbook::report::OpenReport {
            self.0.recovery()
        }
        fn advance(&self, from: &Bookmark, reach: &Reach) -> Result<Bookmark> {
            self.0.advance(from, reach)
        }
    };
}

/// The methods of a book and of a write-ahead log, whose handle, the first field, names a record by `$place`.
macro_rules! methods_of_a_public_handle {
    ($place:path) => {
        fn refresh(&self) -> Result<()> {
            self.0.refresh().map(drop)
        }
        fn forward(&self, from: Option<u64>, to: Option<u64>, skip: bool) -> Walk {
            drain(self.0.cursor(range(from.map($place), to.map($place)), on_corrupt(skip)))
        }
        fn backward(&self, from: Option<u64>, to: Option<u64>) -> Walk {
            walked!(self.0.cursor_back(range(from.map($place), to.map($place))))
        }
        fn parts(&self, bytes: u64) -> Result<Vec<Split>> {
            self.0.splits(bytes, ..)
        }
        fn splits(
            &self,
            bytes: u64,
            from: Option<u64>,
            to: Option<u64>,
            skip: bool,
        ) -> Result<Vec<Walk>> {
            let splits = self.0.splits(bytes, range(from.map($place), to.map($place)))?;
            let read = |split| read_split(split, self.0.options(), (from, to), skip);
            Ok(splits.iter().map(read).collect())
        }
        fn bookmark(&self, ordinal: Option<u64>) -> Result<Bookmark> {
            ordinal.map_or_else(|| self.0.bookmark(), |at| self.0.bookmark_at($place(at)))
        }
        fn between(
            &self,
            bytes: u64,
            from: &Bookmark,
            to: &Bookmark,
            skip: bool,
        ) -> Result<Vec<Walk>> {
            let parts = self.0.splits_between(bytes, from, to)?;
            let read = |part| read_split(part, self.0.options(), (None, None), skip);
            Ok(parts.iter().map(read).collect())
        }
        fn follow_for(&self, wait: Duration) -> Walk {
            walked!(self.0.follow(None), wait)
        }
        fn duplicate(&self) -> Box<dyn Log> {
            Box::new(Self(self.0.clone()))
        }
    };
}

/// The methods that the options of a format have by the same names.
macro_rules! methods_of_the_options {
    ($log:ident) => {
        fn open(&self, at: &At, mode: deedbook::Mode, how: How) -> Result<Box<dyn Log>> {
            Ok(Box::new($log(self.options(at, how).open(&at.path, mode)?)))
        }
        fn verify_rest(
            &self,
            at: &At,
            how: How,
            intact: &[Split],
        ) -> Result<deedbook::report::VerifyReport> {
            self.options(at, how).verify_rest(&at.path, intact, |_, _| Ok(()))
        }
        fn check_part(
            &self,
            part: &Split,
            at: &At,
            how: How,
        ) -> Result<deedbook::report::VerifyReport> {
            self.options(at, how).verify_part(part, |_, _| Ok(()))
        }
        fn salvage(&self, at: &At, to: &Path, how: How) -> Result<deedbook::report::SalvageReport> {
            self.options(at, how).salvage(&at.path, to)
        }
        fn repair_as(
            &self,
            at: &At,
            how: How,
            may: deedbook::report::Repair,
        ) -> Result<deedbook::report::RepairReport> {
            self.options(at, how).repair(&at.path, may)
        }
    };
}

pub(crate) use {
    drained, methods_of_a_public_handle, methods_of_the_handle, methods_of_the_options, walked,
};

pub fn parts(mut read_part: impl FnMut(&mut [u8]) -> Result<usize>) -> (Vec<u8>, Result<()>) {
    let (mut block, mut got) = (vec![0; 300 << 10], Vec::new());
    loop {
        match read_part(&mut block) {
            Ok(0) => return (got, Ok(())),
            Ok(read) => got.extend_from_slice(&block[..read]),
            Err(error) => return (got, Err(error)),
        }
    }
}

#[track_caller]
pub fn refused<T>(result: Result<T>, kind: ErrorKind) -> Error {
    let error = result.err().expect("should have been refused");
    assert_eq!(error.kind(), kind, "{error}");
    error
}
