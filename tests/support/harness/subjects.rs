//! The logs of the crash and fault tests, and the steps of their histories.

use std::ops::Deref;

use deedbook::wal::{Layout, Options};

use super::history::{LONG_BYTES, SECTOR_BYTES};
use super::{How, Steps, Subject};
use crate::support::formats::nostr;
use crate::support::formats::wal::{self, WalFormat};
use crate::support::formats::{book, toy};
#[cfg(feature = "nostr")]
use crate::support::prelude::*;

/// The log lies one directory deep: a crash can lose the name of the log, too.
pub const PATH: &str = "/log";

const USUAL: Subject = Subject {
    name: "",
    format: &toy::TOY,
    looks: &toy::TOY,
    path: PATH,
    first: 0,
    steps: Steps {
        alphabet: "01<=>bLsr",
        longer: "01<=>bLsr01<=>bLsrKHB",
        families: &[("", 0)],
        blocks: ("HBs", "1bHBsr"),
        scripts: &["0=sbLr>s1rK", "Lbs", "r1r"],
        share: 10,
    },
    nested: (&toy::TOY, &[8, 0, 40, 100, 1, 300]),
    trailer_tells: false,
    border_bytes: SECTOR_BYTES,
    long_bytes: LONG_BYTES,
    counts_records: false,
    appends_sync: false,
    appends_wait_for_syncs: false,
};

pub const TOY: Subject = Subject { name: "toy", first: 8, ..USUAL };

pub const BOOK: Subject = Subject {
    name: "book",
    format: &book::BOOK,
    looks: &book::BOOK,
    first: 1,
    steps: Steps {
        // Records of many sectors, some longer than an index block.
        longer: "01<=>bLsr01<=>bLsr01<=>bLsr01<=>bLsr01<=>bLsr01<=>bLsrKHB",
        share: 1,
        ..USUAL.steps
    },
    nested: (&book::BOOK, USUAL.nested.1),
    ..USUAL
};
/// A log with the number of its last earlier event in the directory's name.
pub const EPOCH: Subject = Subject {
    name: "book-epoch",
    path: "/0i70000",
    first: 70_001,
    steps: Steps { share: 10, ..BOOK.steps },
    ..BOOK
};
/// A log whose header has the committed end.
pub const SLOTS: Subject = Subject {
    name: "book-slots",
    format: &book::SLOTS,
    steps: Steps { share: 10, ..BOOK.steps },
    nested: (&book::SLOTS, USUAL.nested.1),
    trailer_tells: true,
    counts_records: true,
    appends_wait_for_syncs: true,
    ..BOOK
};

#[cfg(feature = "nostr")]
pub const NOSTR_WAL: Subject = Subject {
    name: "nostr-wal",
    format: &nostr::ONE_FILE,
    looks: &nostr::ONE_FILE,
    first: 1,
    nested: (&nostr::ONE_FILE, &[8, 0, 40, 100, 1, 200]),
    ..USUAL
};
#[cfg(feature = "nostr")]
pub const NOSTR_WAL_FILES: Subject = Subject {
    name: "nostr-wal-files-600",
    format: &nostr::FILES,
    looks: &nostr::FILES,
    // Many files make many calls, and each call fails in turn.
    steps: Steps { scripts: &["0bLsr1K", "r1r"], ..USUAL.steps },
    appends_sync: true,
    ..NOSTR_WAL
};

pub struct WalSubject {
    subject: Subject,
    pub layout: Layout,
}

impl WalSubject {
    const fn new(format: &'static WalFormat, path: &'static str, steps: Steps) -> Self {
        let Some(layout) = format.layout else { panic!("any layout") };
        let border_bytes = match layout {
            Layout::Segmented { segment_bytes } if segment_bytes < 10 * SECTOR_BYTES => {
                segment_bytes
            }
            _ => SECTOR_BYTES,
        };
        let (sizes, long_bytes): (&[usize], _) = match border_bytes < SECTOR_BYTES {
            true => (&[8, 0, 20], 250),
            false => (USUAL.nested.1, LONG_BYTES),
        };
        let (name, nested): (_, (&dyn Format, _)) = (format.name, (&wal::SINGLE, sizes));
        let looks = &wal::ANY;
        let own = Subject { name, format, looks, path, steps, nested, ..USUAL };
        Self { subject: Subject { border_bytes, long_bytes, ..own }, layout }
    }

    pub const fn segments(format: &'static WalFormat) -> Self {
        Self::new(format, PATH, SEGMENT_STEPS)
    }

    pub fn options(&self, disk: &Sim, how: How) -> Options {
        let format = WalFormat { name: self.name, layout: Some(self.layout) };
        format.options(&self.at(Arc::new(disk.clone())), how)
    }

    pub fn wal(&self, disk: &Sim, how: How) -> Result<Wal> {
        self.options(disk, how).open(self.path, Mode::Append)
    }
}

impl Deref for WalSubject {
    type Target = Subject;
    fn deref(&self) -> &Subject {
        &self.subject
    }
}

/// Appends up to, over and far over a border, a batch, one full of records; syncs, drops, cuts, reopenings.
const SEGMENT_STEPS: Steps = Steps {
    alphabet: "0<=>SbLshxtcr",
    longer: "0<=>SbLsr0<=>SbLsr1hmxtucC",
    // With records to drop, which makes long histories anyway.
    families: &[("", 0), ("bLs", 1)],
    blocks: ("", ""),
    scripts: &["0=sbLsh>r1x", "bLst1", "r1r"],
    share: 25,
};

/// A single file in a directory of its own. No prefix can be dropped.
pub const SINGLE: WalSubject = WalSubject::new(
    &wal::SINGLE,
    "/log/wal",
    Steps {
        alphabet: "0<=>SbLstcr",
        longer: "0<=>SbLsr0<=>SbLsr1tucCKHB",
        blocks: ("HBs", "1bHBsrtucC"),
        scripts: &["0=sbLt1r>c", "Lbsu", "r1r"],
        ..SEGMENT_STEPS
    },
);
pub const SEGMENTS: WalSubject =
    WalSubject::segments(&WalFormat::segmented("wal-segments-600", 600));
/// Segments smaller than many records. In the third script, more segments are unsynced than may be open.
pub const TINY: WalSubject = WalSubject::new(
    &wal::TINY,
    PATH,
    Steps { scripts: &["=S>sm0c", "Lsx1r", "LLLLLs"], ..SEGMENT_STEPS },
);
/// Segments of half a block of the index, with longer records only: smaller segments have the other records.
pub const LARGE: WalSubject = WalSubject::new(
    &WalFormat::segmented("wal-segments-50000", 50_000),
    PATH,
    Steps {
        alphabet: "",
        longer: "1HBKs1HBKsrhmxtucC",
        families: &[],
        blocks: ("HBs", "1HBsrhmtuc"),
        scripts: &["Hsh1"],
        share: 100,
    },
);
