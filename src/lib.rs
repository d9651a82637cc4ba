//! Append-only logs that never lose what they acknowledged, in published on-disk formats.
//!
//! | format | for | type |
//! |---|---|---|
//! | Book | Urbit's event log: numbered deeds with a checksum each | [`book::Book`] |
//! | WAL | a write-ahead log: records at byte positions, in one file or in segments | [`wal::Wal`] |
//! | Ledger | a spool of events that are kept until they were sent, file by file | [`ledger::LedgerStore`] |
//! | Nostr | an event store: pages, a write-ahead log, an index (feature `nostr`) | `nostr::EventStore` |
//!
//! Book and WAL are a [`Log`]: one engine opens, appends, reads and checks them, with one answer on
//! damage. A finished file of a ledger is a log that gets no more records, and the same engine judges
//! it.
//!
//! ```
//! use deedbook::book::Book;
//!
//! # fn main() -> deedbook::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("log");
//! let book = Book::create(&path)?;
//! let event = book.append(0, b"first")?; // on stable storage when it returns
//! book.close()?;
//!
//! let book = Book::open(&path)?;
//! for deed in book.iter(0, None)? {
//!     assert_eq!(deed?.jam, b"first");
//! }
//! # assert_eq!(event, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Words
//!
//! *append* returned: the bytes are in the operating system's page cache and survive the death of
//! the process. *sync* returned: they are on stable storage. *commit* is both. What is covered by
//! a sync that returned is never lost; [`Durability`] chooses when syncs happen.

pub mod book;
mod checksum;
#[cfg(feature = "arrow")]
mod columns;
mod commit;
mod durability;
#[cfg(feature = "sim")]
#[doc(hidden)]
pub mod engine;
mod error;
pub mod ledger;
mod lines;
mod locks;
mod log;
mod mend;
mod mode;
#[cfg(feature = "nostr")]
pub mod nostr;
mod scan;
mod search;
mod sidecar;
mod slice;
pub mod storage;
mod transaction;
pub mod wal;

/// The examples of the README, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// And those of the page on Rust.
#[cfg(doctest)]
#[doc = include_str!("../docs/rust.md")]
struct Guide;

pub use durability::Durability;
pub use error::{Durable, Error, ErrorKind, Result};
// What `book` and `wal` give under their own names: without these, their common methods have no page.
pub use log::Log;
#[cfg(feature = "arrow")]
pub use log::arrow::{Batches, Columns};
pub use log::batch::Batch;
pub use log::bookmark::{Bookmark, Reach};
pub use log::cursor::{Cursor, Iter};
pub use log::follow::Follow;
pub use log::identity::{Anchor, Identity};
pub use log::report::{
    PartReport, RecoveryReport, Repair, RepairReport, SalvageReport, SalvageRun, VerifyReport,
};
pub use log::reverse::Reverse;
pub use log::split::Split;
pub use log::stats::Stats;
pub use log::transact::Stage;
pub use mode::{Mode, Recovery};
pub use scan::{Damage, OnCorrupt, Verdict};
pub use sidecar::{LockTimeout, Loss, MarkUse};
pub use transaction::{Committed, Noted, Part, StagedJob, Transaction, TransactionId};
