#![doc = include_str!("FORMAT.md")]

#[cfg(feature = "arrow")]
mod arrow;
mod bulk;
#[allow(clippy::missing_errors_doc)] // Not public.
pub(crate) mod bytes;
mod damage;
#[allow(clippy::missing_errors_doc)] // Not public.
mod index;
#[allow(clippy::missing_errors_doc)] // Not public.
pub(crate) mod log;
mod mend;
mod open;
#[allow(clippy::missing_errors_doc)] // Not public.
pub(crate) mod pages;
mod store;

#[cfg(feature = "arrow")]
pub use arrow::batches::Batches;
#[cfg(feature = "arrow")]
#[doc(hidden)]
pub use arrow::parsed::ParsedLines;
pub use bulk::export::ExportReport;
pub use bulk::fragmentation::CompactionReport;
pub use bulk::import::{BadLine, Check, ImportOptions, ImportReport};
pub use bytes::event::{Event, EventRef, Flags, Id, Location};
#[doc(hidden)]
pub use bytes::names::{Names, recover};
pub use bytes::tags::{Tag, TagsRef};
pub(crate) use damage::vouching::stop_vouching;
pub use index::filter::Filter;
#[doc(hidden)]
pub use index::filter::Wanted;
#[doc(hidden)]
pub use index::lookup::{Change, Index};
#[doc(hidden)]
pub use index::query::Query as Places;
#[doc(hidden)]
pub use log::wal;
pub use mend::check::{Census, VerifyReport};
pub use mend::salvage::SalvageReport;
pub use pages::options::{History, Options};
pub use store::append::Outcome;
pub use store::handle::EventStore;
pub use store::opened::OpenReport;
pub use store::read::{Events, Include, StoredEvent};
pub use store::transact::Stage;
