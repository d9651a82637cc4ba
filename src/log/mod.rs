//! The engine: one append-only log of framed records in one space of bytes, with a high-water mark
//! and an index. A format plugs in as a [`Framing`](crate::scan::framing::Framing) and a
//! [`Format`](format::Format); [`Book`](crate::book::Book) and [`Wal`](crate::wal::Wal) are such
//! logs.
//!
//! ```text
//! format    a log and its format, and their parts: space, extent, findings, seal, report, ...
//! resync    the search after damage
//! look      the files: the end of the log, the mark, the index
//! read      cursors in both directions, one record, followers
//! chain     a row of logs, read as one
//! arrow     record batches
//! split     parts and places for other readers
//! write     append, sync, cut, close
//! stage     commits of staged records
//! mend      verify, salvage, repair
//! open      lock, look, settle the end after a crash, assemble
//! facade    the types that users hold, around a log
//! ```
//!
//! A room uses the rooms above it in this list.

#[cfg(feature = "arrow")]
mod arrow;
mod chain;
mod evidence;
mod extent;
mod facade;
mod format;
mod handle;
mod look;
mod mend;
mod notice;
mod open;
mod options;
mod read;
mod report;
mod resync;
mod seal;
mod space;
mod split;
mod stage;
mod stats;
mod write;

// The engine for formats. Rooms are private: a format uses these names, and no others.
#[cfg(feature = "arrow")]
pub use arrow::{Batches, Column, Value};
pub use chain::{Chained, Iter};
pub use evidence::Evidence;
pub use extent::Extent;
pub(crate) use facade::{facade, verbs};
use format::State;
pub use format::{Done, Format, Inspected, Log, Shared};
pub use look::beyond_limit::begins_beyond_limit;
pub use look::conclude::is_of_another_file;
pub use look::find_end::{Known, anchored, find_end};
pub use look::findings::Findings;
pub use look::inspect::{READER_TRIES, inspect_patiently, place_of, with_patience};
pub(crate) use mend::carry::carry_transactions;
pub use mend::repair::repair;
pub use mend::salvage::{Stub, copy_intact, create_copy, salvage};
pub use mend::verify::{check, check_rest};
pub use mend::whole::{cursor_over, verdict};
pub use notice::corrupt;
pub(crate) use open::look_first;
pub use options::Common;
pub(crate) use options::log_options;
pub use read::cursor::{Cursor, Range, Source};
pub use read::follow::Follow;
pub use read::payload::{PART_BYTES, PayloadReader};
pub use read::reverse::Reverse;
pub use report::{OpenReport, Repair, RepairReport, SalvageReport, SalvageRun, VerifyReport};
#[cfg(test)]
pub use resync::cost::is_linear;
pub use seal::Seal;
pub use space::{Beyond, Files, Place, Space, base_of_tail};
pub use split::bookmark::{Bookmark, Reach};
pub use split::identity::{Anchor, Identity};
pub use split::{Split, bytes_of};
pub use stage::Stage;
pub(crate) use stage::{StagedReader, StagedWriter};
pub use stats::{Counters, Stats};
pub use write::append::Wanted;
pub use write::batch::Batch;

#[cfg(feature = "sim")]
pub use format::FrameOf;
#[cfg(feature = "lmdb")]
pub use look::inspect::PAUSE;
#[cfg(feature = "nostr")]
pub use {
    look::conclude::loss,
    mend::noted::{NOTED, note_check},
    mend::whole::all_damages,
};
