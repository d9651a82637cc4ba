//! Transactions: records that tasks staged, perhaps in other processes, are appended all together
//! and once.
//!
//! ```text
//! .deedbook/staged/JOB.PARTITION.SEQUENCE.ATTEMPT   records, encoded as the log will have them
//! .deedbook/transaction                             the intent of a commit that has begun
//! .deedbook/transactions                            the last commit of each application
//! ```
//!
//! A commit stores the intent, appends, syncs, notes the transaction, and removes the intent. After
//! a crash past the first step, the next opening for writing finishes the commit, and never undoes
//! it: no reader sees a record that vanishes later.

mod commit;
mod desk;
mod intent;
mod record;
mod staging;

pub(crate) use commit::{Target, commit, finish, misfit};
pub(crate) use desk::Desk;
pub use desk::{Committed, Part, Transaction, TransactionId};
pub use intent::Intent;
pub(crate) use staging::StagedFile;
pub use staging::StagedJob;
