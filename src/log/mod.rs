//! The engine: one append-only log of framed records in one space of bytes, with a high-water mark
//! and an index beside it. A format plugs in as a [`Framing`](crate::scan::framing::Framing) and a
//! [`Format`](format::Format); [`Book`](crate::book::Book) and [`Wal`](crate::wal::Wal) are logs of
//! theirs.
//!
//! ```text
//! format    a log and its format; beside it what both are made of: space, extent, findings, seal, report, ...
//! resync    the search after damage
//! look      the files as they are: where the log ends, what the mark and the index say
//! read      cursors in both directions, one record, followers
//! chain     logs that follow each other, read as one
//! arrow     record batches
//! split     parts and places for other readers
//! write     append, sync, close
//! stage     what tasks staged, committed
//! mend      verify, salvage, repair
//! open      lock, look, settle what a crash left, assemble
//! ```
//!
//! A room uses those above it.

#[cfg(feature = "arrow")]
pub mod arrow;
pub mod chain;
pub mod evidence;
pub mod extent;
pub mod findings;
pub mod format;
mod handle;
pub mod look;
pub mod mend;
pub mod notice;
pub mod open;
pub mod options;
pub mod read;
pub mod report;
pub mod resync;
pub mod seal;
pub mod space;
pub mod split;
pub mod stage;
pub mod stats;
pub mod write;

pub use self::format::{Log, Shared, State};
// What formats and the crate's root use of the rooms.
#[cfg(feature = "nostr")]
pub use self::look::inspect;
pub use self::look::{beyond_limit, conclude, find_end};
#[cfg(feature = "nostr")]
pub use self::mend::noted;
pub use self::mend::{repair, salvage, verify, whole};
pub use self::read::{cursor, follow, payload, reverse};
pub use self::split::bookmark;
#[cfg(feature = "nostr")]
pub use self::split::identity;
pub use self::write::{append, batch};
pub use crate::scan::framing;
