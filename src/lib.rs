//! Append-only logs that never lose acknowledged records, in published on-disk formats.
//!
//! | format | for | type |
//! |---|---|---|
//! | Book | Urbit's event log: numbered deeds with a checksum each | [`book::Book`] |
//! | WAL | a write-ahead log: records at byte positions, in one file or in segments | [`wal::Wal`] |
//! | Ledger | a spool of events that are kept until they were sent, file by file | [`ledger::LedgerStore`] |
//! | Nostr | an event store: pages, a write-ahead log, an index (feature `nostr`) | `nostr::EventStore` |
//!
//! One engine opens, appends, reads and checks books and WALs, with one answer on damage. A
//! finished file of a ledger is a log without further appends, and the same engine judges it.
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
//! for deed in &book {
//!     assert_eq!(deed?.jam, b"first");
//! }
//! # assert_eq!(event, 1);
//! # Ok(())
//! # }
//! ```
//!
//! A write-ahead log, with options; dropping applied records is safe at any moment:
//!
//! ```
//! use deedbook::Mode;
//! use deedbook::wal::{Layout, Options};
//!
//! # fn main() -> deedbook::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("wal");
//! let options = Options::new().layout(Layout::Segmented { segment_bytes: 1 << 20 });
//! let wal = options.open(&path, Mode::Append)?;
//! let set_x = wal.append(b"set x = 1")?; // survives the death of the process
//! let set_y = wal.commit(b"set y = 2")?; // on stable storage, and so is what came before
//! assert_eq!(wal.read(set_x)?.payload, b"set x = 1");
//! wal.truncate_before(set_y)?;
//! assert_eq!(wal.head()?, set_y);
//! # Ok(())
//! # }
//! ```
//!
//! A ledger, whose events wait until they were sent:
//!
//! ```
//! use deedbook::ledger::{LedgerConfig, LedgerStore};
//!
//! # fn main() -> deedbook::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("spool");
//! let ledger = LedgerStore::new(LedgerConfig::lines(&path, "events"))?;
//! ledger.append(br#"{"event":"page_view"}"#)?;
//! let fetched = ledger.fetch(None, None)?;
//! assert!(fetched.is_some());
//! # Ok(())
//! # }
//! ```
//!
//! An event store:
//!
//! ```
//! # #[cfg(feature = "nostr")]
//! # fn main() -> deedbook::Result<()> {
//! use deedbook::Mode;
//! use deedbook::nostr::{Event, Filter, Id, Options};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("store");
//! let store = Options::new().open(&path, Mode::Append)?;
//! let mut event = Event {
//!     id: Id([0; 32]),
//!     pubkey: [7; 32],
//!     created_at: 1_700_000_000,
//!     kind: 1,
//!     tags: vec![vec!["t".into(), "logs".into()]],
//!     content: "hello".into(),
//!     sig: [0; 64], // not checked here; an import checks it with Check::Signature
//! };
//! event.id = event.canonical_id();
//! store.append(&event)?;
//! store.sync()?;
//! for found in store.query(&[Filter::parse(r##"{"kinds": [1], "#t": ["logs"]}"##)?])? {
//!     assert_eq!(found.event.content, "hello");
//! }
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "nostr"))]
//! # fn main() {}
//! ```
//!
//! # Words
//!
//! *append* returned: the bytes are in the operating system's page cache and survive the death of
//! the process. *sync* returned: they are on stable storage. *commit* of a record is both. A record covered
//! by a sync that returned is never lost. [`Durability`] chooses when syncs happen.
//!
//! # Errors
//!
//! A method names the errors of its own. Besides these:
//!
//! - Every call fails for a closed handle ([`ErrorKind::Closed`]), and in a process that was forked after the opening
//!   ([`ErrorKind::Forked`]).
//! - Every call that reads or writes files fails where the operating system does ([`ErrorKind::Io`]).
//! - Every call that writes fails for a handle for reading ([`ErrorKind::ReadOnly`]), and after a write or sync that
//!   failed ([`ErrorKind::Poisoned`]). [`Error::durable`] returns whether the records are durable then.
//! - Options and arguments that make no sense are [`ErrorKind::InvalidArgument`].
//!
//! # In your process
//!
//! - A handle with [`Durability::Interval`], the default of an event store, has a thread,
//!   `deedbook-sync`, which ends with the handle.
//! - Dropping the last clone of a handle closes it, and may wait for the disk. A drop can only log
//!   an error, so call `close`. A walk that follows a log, and staged records, hold a handle, too.
//! - After a failed sync, a handle takes no more appends ([`ErrorKind::Poisoned`]). In a forked
//!   process the handle's calls fail ([`ErrorKind::Forked`]).
//! - The `log` crate logs recoveries, damage and slow syncs, with target `deedbook`.
//! - On Linux, the first mapped file sets a handler of SIGBUS ([`struct@storage::Disk`]): if
//!   another program cuts a file, you get an error, and your process goes on. Other faults go to
//!   the previous handler.

#![warn(clippy::missing_errors_doc)]

#[macro_use]
mod ground;

mod backup;
pub mod book;
#[cfg(feature = "arrow")]
mod columns;
mod commit;
pub mod detect;
mod durability;
#[cfg(feature = "sim")]
#[doc(hidden)]
#[allow(clippy::missing_errors_doc)]
pub mod engine;
mod error;
pub mod jobs;
pub mod ledger;
#[cfg(test)]
mod linear;
#[allow(clippy::missing_errors_doc)] // The engine is not public.
mod log;
mod mode;
#[cfg(feature = "nostr")]
pub mod nostr;
pub mod report;
mod retention;
mod saving;
#[allow(clippy::missing_errors_doc)] // The engine is not public.
mod scan;
#[allow(clippy::missing_errors_doc)] // The engine is not public.
mod sidecar;
#[allow(clippy::missing_errors_doc)] // The traits of storages are not documented.
pub mod storage;
mod transaction;
pub mod wal;

/// The examples of the page on Rust, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/rust.md")]
struct Guide;

pub use backup::BackupOptions;
pub use durability::Durability;
pub use error::{Durable, Error, ErrorKind, Result};
#[cfg(feature = "arrow")]
pub use log::Batches;
pub use log::{Batch, Chained, Cursor, Follow, Iter, PayloadReader, Reverse, Stats};
pub use mode::{Mode, Recovery};
pub use retention::Retention;
pub use scan::OnCorrupt;
#[doc(hidden)]
pub use sidecar::LockTimeout;

/// The versions of Arrow that record batches are of.
#[cfg(feature = "arrow")]
pub use {arrow_array, arrow_schema};
