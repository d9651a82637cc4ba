//! The kinds of logs that a backup copies: each written in rounds, and read as payloads. A book in
//! `padded` is only read; a backup copies its bytes as it copies `packed`.

use deedbook::book::{self, Layout};
use deedbook::nostr::{self, Include};

use crate::support::prelude::*;
use crate::support::store::events::{event, on_storage};

type Disk = Arc<dyn Storage>;

#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub name: &'static str,
    /// Whether a crash may leave a copy that readers refuse until the next backup: the files need each other.
    pub may_be_refused: bool,
    pub is_ordered: bool,
    /// Appends to the log of an earlier round, or makes the log. Rounds also roll, drop and send old records.
    pub write: fn(&Disk, &Path, u32) -> Result<()>,
    pub read: fn(&Disk, &Path) -> Result<Vec<Vec<u8>>>,
    /// Appends a record with the payload `more`, as a program that restores the backup does.
    pub append: fn(&Disk, &Path) -> Result<()>,
}

pub const KINDS: [Kind; 7] = [
    BOOK,
    Kind {
        name: "slots",
        write: |disk, log, round| write_book(disk, log, round, Layout::Slots),
        ..BOOK
    },
    Kind {
        name: "segments",
        write: |disk, log, round| {
            write_wal(disk, log, round, wal::Layout::Segmented { segment_bytes: 150 })
        },
        ..WAL
    },
    WAL,
    Kind {
        name: "pier",
        may_be_refused: true,
        is_ordered: true,
        write: write_pier,
        read: |disk, log| {
            let pier = of_book(disk).open_pier(log, Mode::Read)?;
            pier.iter(..)?.map(|deed| Ok(deed?.jam)).collect()
        },
        append: |disk, log| {
            of_book(disk).open_pier(log, Mode::Append)?.commit(0, b"more").map(drop)
        },
    },
    Kind {
        name: "ledger",
        may_be_refused: false,
        is_ordered: false,
        write: write_ledger,
        read: read_ledger,
        append: |disk, log| append_ledger(disk, log, &[b"more".to_vec()]),
    },
    Kind {
        name: "store",
        may_be_refused: true,
        is_ordered: false,
        write: write_store,
        read: |disk, log| {
            let store = of_store(disk).open(log, Mode::Read)?;
            store
                .iter(Include::Live, OnCorrupt::Raise)?
                .map(|found| Ok(found?.event.content.into_bytes()))
                .collect()
        },
        append: |disk, log| {
            let store = of_store(disk).open(log, Mode::Append)?;
            store.append(&event(3, 1_800_000_000, 1, &[], "more"))?;
            store.sync()
        },
    },
];

const BOOK: Kind = Kind {
    name: "packed",
    may_be_refused: false,
    is_ordered: true,
    write: |disk, log, round| write_book(disk, log, round, Layout::Packed),
    read: |disk, log| {
        let book = of_book(disk).open(log, Mode::Read)?;
        book.iter(..)?.map(|deed| Ok(deed?.jam)).collect()
    },
    append: |disk, log| of_book(disk).open(log, Mode::Append)?.commit(0, b"more").map(drop),
};

const WAL: Kind = Kind {
    name: "single",
    may_be_refused: false,
    is_ordered: true,
    write: |disk, log, round| write_wal(disk, log, round, wal::Layout::Single),
    read: |disk, log| {
        let wal = of_wal(disk).open(log, Mode::Read)?;
        wal.iter(..)?.map(|record| Ok(record?.payload)).collect()
    },
    append: |disk, log| of_wal(disk).open(log, Mode::Append)?.commit(b"more").map(drop),
};

impl Kind {
    /// The tests try, and fail, only every n-th call: a store makes a thousand.
    pub fn stride(&self) -> u64 {
        let name = if self.name == "store" {
            "DEEDBOOK_NOSTR_FAULT_STRIDE"
        } else {
            "DEEDBOOK_FAULT_STRIDE"
        };
        of_tier(name).max(1)
    }

    pub fn named(name: &str) -> Self {
        KINDS.into_iter().find(|kind| kind.name == name).expect("a kind of that name")
    }

    /// Whether this error of a reader means an incomplete log.
    pub fn says_so(error: &Error) -> bool {
        use ErrorKind::{Contiguity, Corrupt, InvalidArgument, LostRecords, Missing, NotALog};
        let kinds = [Contiguity, Corrupt, InvalidArgument, LostRecords, Missing, NotALog];
        kinds.contains(&error.kind())
    }
}

/// Payloads of a round: all are different, one is longer than a segment.
fn payloads(round: u32) -> Vec<Vec<u8>> {
    let payload = |number: u32| {
        let len = if number == 2 { 200 } else { 5 + 7 * number as usize };
        [format!("{round}.{number} ").as_bytes(), &vec![b'a' + number as u8; len]].concat()
    };
    (0..5).map(payload).collect()
}

fn of_book(disk: &Disk) -> book::Options {
    book::Options::new().storage(disk.clone())
}

fn write_book(disk: &Disk, log: &Path, round: u32, layout: Layout) -> Result<()> {
    let book = of_book(disk).layout(layout).open(log, Mode::Append)?;
    for payload in payloads(round) {
        book.append(7, &payload)?;
    }
    book.close()
}

fn of_wal(disk: &Disk) -> wal::Options {
    wal::Options::new().storage(disk.clone()).durability(Durability::Always)
}

fn write_wal(disk: &Disk, log: &Path, round: u32, layout: wal::Layout) -> Result<()> {
    let wal = of_wal(disk).layout(layout).open(log, Mode::Append)?;
    let mut lsns = Vec::new();
    for payload in payloads(round) {
        lsns.push(wal.append(&payload)?);
    }
    if layout != wal::Layout::Single && round == 1 {
        wal.set_consumer("reader", lsns[1])?;
    }
    if layout != wal::Layout::Single && round > 1 {
        // Also drops the records of the round before.
        wal.set_consumer("reader", lsns[0])?;
        wal.truncate_before(lsns[0])?;
    }
    wal.close()
}

fn write_pier(disk: &Disk, log: &Path, round: u32) -> Result<()> {
    let pier = of_book(disk).open_pier(log, Mode::Append)?;
    for (number, payload) in payloads(round).into_iter().enumerate() {
        if number == 3 {
            pier.roll()?;
        }
        pier.append(7, &payload)?;
    }
    if round > 1 {
        let mut retention = Retention::default();
        retention.bytes_max = Some(500);
        pier.retain(&retention)?;
    }
    pier.close()
}

fn ledger_of(disk: &Disk, log: &Path) -> Result<LedgerStore> {
    let config = LedgerConfig { max_file_size: 120, ..LedgerConfig::lines(log, "events") };
    ledger::Options::default().storage(disk.clone()).durability(Durability::Always).open(config)
}

fn append_ledger(disk: &Disk, log: &Path, payloads: &[Vec<u8>]) -> Result<()> {
    let ledger = ledger_of(disk, log)?;
    for payload in payloads {
        ledger.append(payload)?;
    }
    ledger.close()
}

fn write_ledger(disk: &Disk, log: &Path, round: u32) -> Result<()> {
    append_ledger(disk, log, &payloads(round))?;
    let ledger = ledger_of(disk, log)?;
    if round > 0 {
        // A sender removes the two oldest files.
        let fetched = ledger.fetch(Some(2), None)?;
        if let Some(removable) = fetched.and_then(|fetched| fetched.removable) {
            ledger.remove(&removable)?;
        }
    }
    ledger.close()
}

fn read_ledger(disk: &Disk, log: &Path) -> Result<Vec<Vec<u8>>> {
    let options = ledger::Options::default().storage(disk.clone());
    options.contents(log, None)?.into_iter().map(|record| Ok(record?.payload)).collect()
}

fn of_store(disk: &Disk) -> nostr::Options {
    on_storage(disk.clone())
        .segment_bytes(3 * 4096)
        .wal_segment_bytes(2 << 10)
        .durability(Durability::Always)
}

fn write_store(disk: &Disk, log: &Path, round: u32) -> Result<()> {
    let store = of_store(disk).open(log, Mode::Append)?;
    for (number, payload) in payloads(round).iter().enumerate() {
        let content = String::from_utf8_lossy(payload).repeat(if number == 2 { 20 } else { 1 });
        let at = 1_700_000_000 + 100 * round + number as u32;
        store.append(&event(1, at, 1, &[], &content))?;
        // The next version replaces this event.
        store.append(&event(2, at, 0, &[], &format!("profile {round}.{number}")))?;
    }
    if round > 0 {
        store.checkpoint()?;
    }
    if round > 1 {
        store.compact(0.0, false)?;
    }
    store.close()
}
