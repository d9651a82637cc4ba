//! The engine: one append-only log of framed records in one space of bytes, with a high-water mark
//! and an index beside it. A format plugs in as a [`Framing`](crate::scan::framing::Framing) and a
//! [`Format`](format::Format); [`Book`](crate::book::Book) and [`Wal`](crate::wal::Wal) are logs of
//! theirs.
//!
//! ```text
//! bytes      framing  extent  evidence  resync   pure, or reading a file only
//! opening    inspect (format)  find_end  settle  open   find; decide; write; assemble
//! appending  batch  append  payload  durable  transact  staged  stats  index
//! reading    cursor  reverse  read  refresh  follow  split  bookmark  identity  arrow  notice
//! checking   verify  noted  salvage  carry  repair  report
//! ```

pub(crate) mod append;
mod append_in_parts;
#[cfg(feature = "arrow")]
pub mod arrow;
pub(crate) mod batch;
pub(crate) mod beyond_limit;
pub(crate) mod bookmark;
mod carry;
#[cfg(feature = "arrow")]
pub mod columns;
pub(crate) mod conclude;
pub(crate) mod cursor;
pub(crate) mod durable;
pub(crate) mod evidence;
pub(crate) mod extent;
pub(crate) mod find_end;
pub(crate) mod findings;
pub(crate) mod follow;
pub mod format;
mod handle;
pub(crate) mod identity;
pub(crate) mod index;
pub(crate) mod inspect;
pub(crate) mod noted;
pub(crate) mod notice;
pub(crate) mod open;
pub(crate) mod options;
pub(crate) mod payload;
pub(crate) mod read;
pub(crate) mod refresh;
pub(crate) mod repair;
pub(crate) mod report;
pub(crate) mod resync;
pub(crate) mod reverse;
pub(crate) mod salvage;
pub(crate) mod settle;
pub(crate) mod space;
pub(crate) mod split;
pub(crate) mod stage;
mod state;
pub(crate) mod stats;
pub(crate) mod verify;
pub(crate) mod walk;
mod write;

pub use crate::scan::framing;
pub use format::Log;
pub(crate) use format::Shared;
pub(crate) use state::State;
