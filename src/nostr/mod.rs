#![doc = include_str!("FORMAT.md")]

mod append;
#[cfg(feature = "arrow")]
mod arrow;
mod belonging;
mod check;
mod check_log;
mod checked_log;
mod checkpoint;
mod codec;
#[cfg(feature = "arrow")]
mod columns;
mod compaction;
mod covered;
mod entry;
mod event;
mod export;
mod files;
mod filter;
mod fragmentation;
#[cfg(feature = "arrow")]
mod growing;
mod hex;
mod hide;
mod import;
mod index;
mod indexing;
mod json;
mod logged_flags;
mod manifest;
mod mend_wal;
mod names;
mod on_all_cores;
mod opening;
mod options;
pub(crate) mod page;
#[cfg(feature = "arrow")]
mod parsed;
mod pending;
mod policy;
mod progress;
mod read;
pub(crate) mod record;
mod records;
mod recovery;
mod repair;
mod replay;
mod rescue;
mod rest;
mod salvage;
pub(crate) mod segment;
mod segments;
mod served_log;
mod signature;
mod spec;
mod split;
#[cfg(feature = "arrow")]
mod stage_arrow;
mod store;
mod tags;
mod tombstones;
mod transact;
pub mod wal;
mod wal_options;
mod wal_state;
pub(crate) mod walk;
mod witnesses;

pub use append::Outcome;
#[cfg(feature = "arrow")]
pub use arrow::Batches;
pub use check::{Census, Fault, StorePartReport, StoreReport};
#[cfg(feature = "arrow")]
pub use columns::Column;
pub use compaction::CompactionReport;
pub use event::{Event, EventRef, Flags, Id, Location};
pub use export::ExportReport;
pub use filter::{Filter, Wanted};
pub use fragmentation::Fragmentation;
pub use import::{BadLine, Check, ImportOptions, ImportReport};
pub use index::{Change, Index, Query as Places};
pub use names::{Names, recover};
pub use opening::is_store;
pub use options::{History, Options};
#[cfg(feature = "arrow")]
pub use parsed::ParsedLines;
pub use read::{Events, Include, Iter, Query, StoredEvent};
pub use record::RECORD_BYTES_MAX;
pub use recovery::Opening;
pub use repair::{StoreRepair, repair};
pub use rescue::DamagedPart;
pub use salvage::{StoreSalvage, salvage};
pub use segment::PageDamage;
pub use store::EventStore;
pub use tags::{Elements, Tag, Tags, TagsRef};
pub use transact::Stage;

/// Name of the format in errors.
const FORMAT: &str = "nostr";
