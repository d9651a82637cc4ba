//! Jobs of many tasks, such as Spark's: places to go on from, parts for parallel readers, and records that tasks stage
//! for one commit.

#[doc(hidden)]
pub use crate::log::{Anchor, Identity};
pub use crate::log::{Bookmark, Reach, Split, Stage};
pub use crate::transaction::{Committed, Part, StagedJob, Transaction, TransactionId};
