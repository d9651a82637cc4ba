//! The toy format as a subject of the crash and fault tests.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use deedbook::engine::*;
use deedbook::storage::Storage;
use deedbook::wal::{OnCorrupt, Recovery};
use deedbook::{LockTimeout, Mode, Repair, Result};

use super::{Checked, How, Log, MANUAL, Record, Steps, Subject};
use crate::support::toy::{LOG_NAME, TOY as FORMAT, Toy};

pub struct ToySubject;
pub const TOY: ToySubject = ToySubject;
const PATH: &str = "/log";

fn options(storage: Arc<dyn Storage>, how: How) -> Common {
    let recovery = if how.acknowledged { Recovery::Acknowledged } else { Recovery::Valid };
    let slow_sync = Duration::from_secs(1);
    let lock_timeout = LockTimeout::default();
    Common {
        durability: how.durability,
        recovery,
        file_mode: 0o644,
        slow_sync,
        lock_timeout,
        check_all: false,
        storage,
    }
}

fn opened(mode: Mode, options: Common) -> Result<Box<dyn Log>> {
    Ok(Box::new(ToyLog(open(PATH.as_ref(), mode, options.clone())?, options)))
}

/// There is no tag in a record; its byte is as good.
fn record((ordinal, bytes): (u64, &[u8])) -> Record {
    Record { ordinal, tag: ordinal as u32, bytes: bytes.to_vec() }
}

fn collect(mut cursor: Cursor<Toy>) -> Result<Vec<Record>> {
    std::iter::from_fn(|| cursor.next().map(|found| found.map(record)).transpose()).collect()
}

impl Subject for ToySubject {
    fn name(&self) -> &'static str {
        "toy"
    }
    fn steps(&self) -> Steps {
        Steps {
            alphabet: "01<=>bLsr",
            longer: "01<=>bLsr01<=>bLsrKHB",
            families: &[("", 0)],
            blocks: ("HBs", "1bHBsr"),
            scripts: &["0=sbLr>s1rK", "Lbs", "r1r"],
            share: 10,
        }
    }
    fn framing_bytes(&self) -> u64 {
        8
    }
    fn head_bytes(&self) -> u64 {
        8
    }
    fn first_ordinal(&self) -> u64 {
        8
    }
    fn ordinal_after(&self, ordinal: u64, payload_len: usize) -> u64 {
        ordinal + 8 + payload_len as u64
    }
    fn tag(&self, ordinal: u64, _tag: u32) -> u32 {
        ordinal as u32
    }
    fn nested(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for size in [8, 0, 40, 100, 1, 300] {
            FORMAT.encode(&mut bytes, (), &vec![0xee; size]);
        }
        bytes
    }
    fn files(&self, _storage: &dyn Storage) -> Vec<(PathBuf, u64)> {
        vec![(Path::new(PATH).join(LOG_NAME), 0)]
    }
    fn open_on(&self, storage: Arc<dyn Storage>, how: How) -> Result<Box<dyn Log>> {
        opened(Mode::Append, options(storage, how))
    }
    fn read_on(&self, storage: Arc<dyn Storage>) -> Result<Box<dyn Log>> {
        opened(Mode::Read, options(storage, MANUAL))
    }
    fn check_on(&self, storage: Arc<dyn Storage>) -> Result<Checked> {
        let report = verify::<Toy>(PATH.as_ref(), &options(storage, MANUAL), &[], |_, _| Ok(()))?;
        let (verdict, lost) = (report.verdict, report.lost_acknowledged);
        Ok(Checked { verdict, records: report.records, lost })
    }
    fn repair_on(&self, storage: Arc<dyn Storage>) -> Result<()> {
        let how = Repair { force: true, accept_loss: true, dry_run: false };
        repair::<Toy>(PATH.as_ref(), &options(storage, MANUAL), how).map(drop)
    }
    fn open_cutting_on(&self, storage: Arc<dyn Storage>) -> Result<Box<dyn Log>> {
        let options = options(storage, MANUAL);
        opened(Mode::Append, Common { recovery: Recovery::Spec, ..options })
    }
    fn sidecar(&self) -> PathBuf {
        Path::new(PATH).join(".deedbook")
    }
}

struct ToyLog(deedbook::engine::Log<Toy>, Common);

impl Log for ToyLog {
    fn append(&self, records: &[(u32, Vec<u8>)]) -> Result<()> {
        match records {
            [(_, bytes)] => append(&self.0, (), bytes).map(drop),
            _ => {
                let records: Vec<_> = records.iter().map(|(_, bytes)| ((), &bytes[..])).collect();
                append_batch(&self.0, &records).map(drop)
            }
        }
    }
    fn sync(&self) -> Result<()> {
        self.0.sync()
    }
    fn close(&self) -> Result<()> {
        self.0.close()
    }
    fn end(&self) -> Result<u64> {
        Ok(extent(&self.0)?.end)
    }
    fn durable_end(&self) -> Result<Option<u64>> {
        durable_end(&self.0)
    }
    fn read_all(&self) -> Result<Vec<Record>> {
        collect(cursor(&self.0, None, None, OnCorrupt::Raise)?)
    }
    fn read(&self, ordinal: u64) -> Result<Record> {
        read(&self.0, ordinal).map(|(offset, bytes)| record((offset, &bytes)))
    }
    fn read_from(&self, ordinal: u64) -> Result<Vec<Record>> {
        collect(cursor(&self.0, Some(ordinal), None, OnCorrupt::Raise)?)
    }
    fn read_back(&self) -> Result<Vec<Record>> {
        let mut back = reverse(&self.0, None, None)?;
        std::iter::from_fn(|| back.next().map(|found| found.map(record)).transpose()).collect()
    }
    fn read_splits(&self, split_bytes: u64) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        for split in splits(&self.0, split_bytes)? {
            let part = collect(read_split(&split, &self.1, OnCorrupt::Raise)?)?;
            assert_eq!(split.records, Some(part.len() as u64));
            records.extend(part);
        }
        Ok(records)
    }
    fn read_past_damage(&self) -> Result<Vec<Vec<u8>>> {
        let records = collect(cursor(&self.0, None, None, OnCorrupt::Skip)?)?;
        Ok(records.into_iter().map(|record| record.bytes).collect())
    }
    fn refresh(&self) -> Result<()> {
        refresh(&self.0)
    }
}
