//! The toy format in the suites of damaged logs.

use deedbook::LockTimeout;
use deedbook::engine::{Log as EngineLog, *};
use deedbook::report::{RepairReport, SalvageReport};

use crate::support::formats::framing::Framing;
use crate::support::formats::subject::{
    Event, Format, Log, Record, Walk, drained, methods_of_the_handle, on_corrupt, walk, walked,
};
use crate::support::prelude::*;
use crate::support::toy::{LOG_NAME, Toy};

pub struct ToyFormat;
pub const TOY: ToyFormat = ToyFormat;

fn options(at: &At, how: How) -> Common {
    Common {
        durability: how.durability,
        recovery: how.recovery,
        file_mode: 0o644,
        slow_sync: Duration::from_secs(1),
        lock_timeout: LockTimeout::default(),
        check_all: false,
        storage: at.storage.clone(),
    }
}

impl Format for ToyFormat {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn framing(&self) -> Framing {
        Framing::Toy
    }

    fn first_ordinal(&self) -> u64 {
        8
    }

    fn ordinal_after(&self, ordinal: u64, payload_len: usize) -> u64 {
        ordinal + 8 + payload_len as u64
    }

    fn open(&self, at: &At, mode: Mode, how: How) -> Result<Box<dyn Log>> {
        let options = options(at, how);
        Ok(Box::new(ToyLog(EngineLog::open_with(&at.path, mode, options.clone())?, options)))
    }

    fn verify_rest(&self, at: &At, how: How, intact: &[Split]) -> Result<VerifyReport> {
        check_rest::<Toy>(&at.path, &options(at, how), intact, |_, _| Ok(()))
    }

    fn check_part(&self, part: &Split, at: &At, how: How) -> Result<VerifyReport> {
        check::<Toy>(part, &options(at, how), |_, _| Ok(()))
    }

    fn salvage(&self, at: &At, to: &Path, how: How) -> Result<SalvageReport> {
        let options = options(at, how);
        let target = |_: &Inspected<Toy>| create_copy(to, options.clone());
        salvage::<Toy>(&at.path, &options, target, |_| (), None, |_, _| Ok(()))
    }

    fn repair_as(&self, at: &At, how: How, may: Repair) -> Result<RepairReport> {
        let options = options(at, how);
        repair::<Toy>(&at.path, &options, may)
    }

    fn first_file(&self, path: &Path) -> PathBuf {
        path.join(LOG_NAME)
    }
}

struct ToyLog(EngineLog<Toy>, Common);

fn record((offset, bytes): (u64, &[u8])) -> Record {
    Record { ordinal: Some(offset), offset, tag: 0, bytes: bytes.to_vec() }
}

fn drain(cursor: Result<Cursor<Toy>>) -> Walk {
    drained!(cursor)
}

impl ToyLog {
    fn walk_part(&self, part: &Split, skip: bool) -> Walk {
        drain(EngineLog::cursor_of_split(part, &self.1, on_corrupt(skip), true, None))
    }
}

impl Log for ToyLog {
    methods_of_the_handle!();

    fn append(&self, _tag: u32, bytes: &[u8]) -> Result<u64> {
        Ok(self.0.append_tagged((), bytes)?.offset)
    }

    fn append_batch(&self, events: &[Event]) -> Result<u64> {
        let records: Vec<_> = events.iter().map(|(_, bytes)| ((), &bytes[..])).collect();
        append_batch(&self.0, &records)
    }

    fn commit(&self, _tag: u32, bytes: &[u8]) -> Result<u64> {
        Ok(self.0.commit_tagged((), bytes)?.offset)
    }

    fn end(&self) -> Result<u64> {
        Ok(self.0.extent()?.end)
    }

    fn refresh(&self) -> Result<()> {
        self.0.refresh_extent().map(drop)
    }

    fn durable(&self) -> Result<Option<u64>> {
        self.0.durable_offset()
    }

    fn read(&self, ordinal: u64) -> Result<Event> {
        self.0.read_by_offset(ordinal).map(|(_, bytes)| (0, bytes))
    }

    fn forward(&self, from: Option<u64>, to: Option<u64>, skip: bool) -> Walk {
        drain(self.0.cursor_by_offset(from, to, on_corrupt(skip)))
    }

    fn backward(&self, from: Option<u64>, to: Option<u64>) -> Walk {
        walked!(self.0.reverse_by_offset(from, to))
    }

    fn parts(&self, bytes: u64) -> Result<Vec<Split>> {
        let Extent { start, end, .. } = self.0.extent()?;
        self.0.splits_over(bytes, start, end, true)
    }

    fn splits(&self, bytes: u64, _: Option<u64>, _: Option<u64>, skip: bool) -> Result<Vec<Walk>> {
        Ok(self.parts(bytes)?.iter().map(|part| self.walk_part(part, skip)).collect())
    }

    fn bookmark(&self, offset: Option<u64>) -> Result<Bookmark> {
        offset.map_or_else(|| self.0.bookmark(), |offset| self.0.bookmark_of_offset(offset))
    }

    fn between(&self, bytes: u64, from: &Bookmark, to: &Bookmark, skip: bool) -> Result<Vec<Walk>> {
        let parts = self.0.splits_between(bytes, from, to)?;
        Ok(parts.iter().map(|part| self.walk_part(part, skip)).collect())
    }

    fn follow_for(&self, wait: Duration) -> Walk {
        walked!(self.0.follow_offset(None), wait)
    }

    fn duplicate(&self) -> Box<dyn Log> {
        Box::new(Self(self.0.clone(), self.1.clone()))
    }
}
