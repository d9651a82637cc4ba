//! The write-ahead log as a format of the suites: as a single file, and in segments so small that records span several.

use std::ffi::OsString;

use deedbook::wal::{Layout, Options};

use super::range;
use crate::support::formats::book::{number, payload, rows};
use crate::support::formats::framing::crc32c;
use crate::support::formats::subject::*;
use crate::support::prelude::*;

pub struct WalFormat {
    pub name: &'static str,
    pub layout: Option<Layout>,
}

pub const ANY: WalFormat = WalFormat { name: "wal", layout: None };
pub const SINGLE: WalFormat = WalFormat { name: "wal-single", layout: Some(Layout::Single) };
pub const TINY: WalFormat = WalFormat::segmented("wal-segments-64", 64);
pub const SEGMENTS: WalFormat = WalFormat::segmented("wal-segments-100000", 100_000);

pub fn head_marker(head: u64) -> Vec<u8> {
    let bytes = head.to_le_bytes();
    [&bytes[..], &crc32c(&bytes).to_le_bytes()].concat()
}

impl WalFormat {
    pub const fn segmented(name: &'static str, segment_bytes: u64) -> Self {
        Self { name, layout: Some(Layout::Segmented { segment_bytes }) }
    }

    pub fn options(&self, at: &At, how: How) -> Options {
        Options::new()
            .durability(how.durability)
            .recovery(how.recovery)
            .layout(self.layout)
            .record_bytes_max(how.record_bytes_max)
            .storage(at.storage.clone())
    }
}

impl Format for WalFormat {
    methods_of_the_options!(WalLog);

    fn name(&self) -> &'static str {
        self.name
    }

    fn framing(&self) -> Framing {
        Framing::Wal
    }

    fn path_in(&self, dir: &Path) -> PathBuf {
        match self.layout {
            Some(Layout::Single) => dir.join("wal"),
            _ => dir.to_path_buf(),
        }
    }

    fn segment_bytes(&self) -> Option<u64> {
        self.layout?.segment_bytes()
    }

    fn first_ordinal(&self) -> u64 {
        0
    }

    fn ordinal_after(&self, ordinal: u64, payload_len: usize) -> u64 {
        ordinal + 8 + payload_len as u64
    }

    fn first_file(&self, path: &Path) -> PathBuf {
        match self.layout {
            Some(Layout::Single) => path.to_path_buf(),
            _ => path.join(segment_name(0)),
        }
    }

    fn files(&self, storage: &dyn Storage, path: &Path) -> Vec<(PathBuf, u64)> {
        let Some(size) = self.segment_bytes() else { return vec![(path.into(), 0)] };
        let place = |index| (path.join(segment_name(index)), index * size);
        segments_in(storage, path).into_iter().map(place).collect()
    }

    fn sidecar(&self, path: &Path) -> PathBuf {
        match self.layout {
            Some(Layout::Single) => {
                path.with_file_name(".deedbook").join(path.file_name().unwrap())
            }
            _ => path.join(".deedbook"),
        }
    }
}

pub fn segments_in(storage: &dyn Storage, dir: &Path) -> Vec<u64> {
    let index = |name: OsString| name.to_str()?.strip_suffix(".wal")?.parse().ok();
    let mut indices: Vec<u64> = storage.list(dir).unwrap().into_iter().filter_map(index).collect();
    indices.sort_unstable();
    indices
}

pub struct WalLog(pub Wal);

fn record(record: deedbook::wal::Record<&[u8]>) -> Record {
    let Lsn(offset) = record.lsn;
    Record { ordinal: Some(offset), offset, tag: 0, bytes: record.payload.to_vec() }
}

fn drain(cursor: Result<deedbook::Cursor<deedbook::wal::WalFormat>>) -> Walk {
    drained!(cursor)
}

fn read_split(split: &Split, options: &Options, _: (Option<u64>, Option<u64>), skip: bool) -> Walk {
    drain(Wal::read_split(split, options, on_corrupt(skip), true))
}

pub fn read_all(wal: &Wal) -> Result<Vec<Record>> {
    drain(wal.cursor(.., on_corrupt(false))).all()
}

impl Log for WalLog {
    methods_of_the_handle!();
    methods_of_a_public_handle!(Lsn);

    fn append(&self, _tag: u32, bytes: &[u8]) -> Result<u64> {
        self.0.append(bytes).map(|lsn| lsn.0)
    }

    fn append_from(&self, _tag: u32, len: u64, payload: &mut dyn Read) -> Result<u64> {
        self.0.append_from(len, payload).map(|lsn| lsn.0)
    }

    fn read_in_parts(&self, ordinal: u64) -> (Vec<u8>, Result<()>) {
        match self.0.payload_reader(Lsn(ordinal)) {
            Ok(mut reader) => parts(|block| reader.read_part(block)),
            Err(error) => (Vec::new(), Err(error)),
        }
    }

    fn append_batch(&self, events: &[Event]) -> Result<u64> {
        let mut batch =
            Batch::<deedbook::wal::WalFormat>::new(deedbook::wal::Options::RECORD_BYTES_MAX);
        for (_, bytes) in events {
            batch.push(bytes)?;
        }
        self.0.append_batch(&batch).map(|lsn| lsn.0)
    }

    fn commit(&self, _tag: u32, bytes: &[u8]) -> Result<u64> {
        self.0.commit(bytes).map(|lsn| lsn.0)
    }

    fn end(&self) -> Result<u64> {
        self.0.end().map(|lsn| lsn.0)
    }

    fn durable(&self) -> Result<Option<u64>> {
        Ok(self.0.durable_end()?.map(|lsn| lsn.0))
    }

    fn next_ordinal(&self) -> Result<Option<u64>> {
        self.end().map(Some)
    }

    fn read(&self, ordinal: u64) -> Result<Event> {
        self.0.read(Lsn(ordinal)).map(|record| (0, record.payload))
    }

    fn arrow(&self, skip: bool) -> Walk {
        let columns = ["lsn", "payload"];
        match self.0.cursor(.., on_corrupt(skip)) {
            Ok(cursor) => {
                let mut batches = deedbook::Batches::new(cursor, &columns, 3, 1 << 20).unwrap();
                rows(&mut batches, |batch, row| {
                    let lsn = number(batch, 0, row);
                    let (offset, bytes) = (lsn.unwrap(), payload(batch, 1, row));
                    Record { ordinal: lsn, offset, tag: 0, bytes }
                })
            }
            Err(error) => Walk::failed(error),
        }
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
