//! Every kind of log for the models.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deedbook::book::{self, Book, Layout};
use deedbook::engine::{self, Common};
use deedbook::wal::{self, Lsn, Wal};
use deedbook::{Durability, LockTimeout, Mode, Recovery, Result};

use crate::disk::Disk;
use crate::toy::Toy;

const PATH: &str = "/log";
const FILE: &str = "/log.wal";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A WAL in small segments: nearly every record spans two.
    Segments,
    /// A WAL in a single file.
    Single,
    /// A Book of the layout `packed`.
    Packed,
    /// A Book of the layout `slots`: appends and syncs take turns at two headers.
    Slots,
    /// The example of a format.
    Toy,
}

pub const KINDS: [Kind; 5] = [Kind::Segments, Kind::Single, Kind::Packed, Kind::Slots, Kind::Toy];

/// The operations of the models on a log. A record goes by its place: byte, LSN, or number.
pub trait Log: Send + Sync {
    fn append(&self, payload: &[u8]) -> Result<u64>;
    fn commit(&self, payload: &[u8]) -> Result<u64>;
    fn wait_durable(&self, place: u64) -> Result<()>;
    fn sync(&self) -> Result<()>;
    fn close(&self) -> Result<()>;
    fn records(&self) -> Result<Vec<(u64, Vec<u8>)>>;
}

impl Kind {
    pub fn open(self, disk: &Disk) -> Arc<dyn Log> {
        self.try_open(disk).expect("the log opens")
    }

    pub fn records(self, disk: &Disk) -> Vec<(u64, Vec<u8>)> {
        self.try_open(disk).and_then(|log| log.records()).expect("recovery")
    }

    fn try_open(self, disk: &Disk) -> Result<Arc<dyn Log>> {
        let (durability, storage) = (Durability::Manual, disk.storage());
        Ok(match self {
            Self::Segments | Self::Single => Arc::new(self.open_wal(disk)?),
            Self::Packed | Self::Slots => {
                let layout = (self == Self::Slots).then_some(Layout::Slots);
                let options = book::Options::new().durability(durability).layout(layout);
                Arc::new(options.storage(storage).open(PATH, Mode::Append)?)
            }
            Self::Toy => {
                let options = Common {
                    durability,
                    recovery: Recovery::Valid,
                    file_mode: 0o644,
                    slow_sync: Duration::from_secs(1),
                    lock_timeout: LockTimeout::default(),
                    check_all: false,
                    storage,
                };
                Arc::new(engine::Log::<Toy>::open_with(Path::new(PATH), Mode::Append, options)?)
            }
        })
    }

    pub fn open_wal(self, disk: &Disk) -> Result<Wal> {
        let (path, layout) = match self {
            Self::Segments => (PATH, wal::Layout::Segmented { segment_bytes: 64 }),
            _ => (FILE, wal::Layout::Single),
        };
        let options = wal::Options::new()
            .durability(Durability::Manual)
            .layout(layout)
            .storage(disk.storage());
        options.open(path, Mode::Append)
    }
}

macro_rules! methods_of_the_handle {
    () => {
        fn sync(&self) -> Result<()> {
            self.sync()
        }
        fn close(&self) -> Result<()> {
            self.close()
        }
    };
}

impl Log for Wal {
    methods_of_the_handle!();

    fn append(&self, payload: &[u8]) -> Result<u64> {
        self.append(payload).map(|lsn| lsn.0)
    }
    fn commit(&self, payload: &[u8]) -> Result<u64> {
        self.commit(payload).map(|lsn| lsn.0)
    }
    fn wait_durable(&self, place: u64) -> Result<()> {
        self.wait_durable(Lsn(place))
    }
    fn records(&self) -> Result<Vec<(u64, Vec<u8>)>> {
        self.iter(..)?.map(|record| record.map(|r| (r.lsn.0, r.payload))).collect()
    }
}

impl Log for Book {
    methods_of_the_handle!();

    fn append(&self, payload: &[u8]) -> Result<u64> {
        self.append(7, payload)
    }
    fn commit(&self, payload: &[u8]) -> Result<u64> {
        self.commit(7, payload)
    }
    fn wait_durable(&self, place: u64) -> Result<()> {
        self.wait_durable(place)
    }
    fn records(&self) -> Result<Vec<(u64, Vec<u8>)>> {
        let number = |event: Option<u64>| event.expect("nothing is damaged");
        self.iter(1..)?.map(|deed| deed.map(|d| (number(d.event), d.jam))).collect()
    }
}

impl Log for engine::Log<Toy> {
    methods_of_the_handle!();

    fn append(&self, payload: &[u8]) -> Result<u64> {
        Ok(self.append_tagged((), payload)?.offset)
    }
    fn commit(&self, payload: &[u8]) -> Result<u64> {
        Ok(self.commit_tagged((), payload)?.offset)
    }
    fn wait_durable(&self, place: u64) -> Result<()> {
        self.wait_durable_at(place)
    }
    fn records(&self) -> Result<Vec<(u64, Vec<u8>)>> {
        let mut cursor = self.cursor_by_offset(None, None, deedbook::OnCorrupt::Raise)?;
        let own = |(offset, bytes): (u64, &[u8])| (offset, bytes.to_vec());
        std::iter::from_fn(|| cursor.next().map(|found| found.map(own)).transpose()).collect()
    }
}
