//! The files that the library adds to a log, all in the subdirectory `.deedbook/`.
//!
//! Mark, index, settings and lock are advisory: deleting them is safe and costs time only. Not
//! derived are the consumers of a write-ahead log or pier, the record of transactions, and the notes of damage and of a loss.
//!
//! ```text
//! mark      2 slots of 512 bytes  the end of the log known to be on stable storage
//! index     16 + 24 n bytes       every n-th record's ordinal and offset
//! settings  text                  format, limits, size of a segment
//! lock      text                  process id of the writer
//! consumers text                  positions of consumers: `consumers.rs`
//! cut       68 bytes              an unfinished truncation: `cut.rs`
//! damage    text                  damage that a check found and an opening misses
//! loss      text                  acknowledged records that repairs gave up
//! transactions, transaction, staged/
//!           text, records         past and present commits: `src/transaction`
//! backup    text                  in a backup, whether the last backup ended: `src/backup/target.rs`
//! next-BASE, quarantine/, jobs-BASE/
//!                                 in a ledger: `src/ledger/FORMAT.md`
//! manifest, events/               in an event store, the copy of its manifest and its index:
//!                                 `src/nostr/FORMAT.md`
//! ```

mod consumers;
mod cut;
mod damage;
mod dir;
mod index;
mod lock;
mod look;
mod loss;
mod mark;
pub(crate) mod note;
mod settings;

pub use consumers::{CONSUMERS_WAIT, Consumers, Positions, check_name};
pub use cut::{Intent, Left};
pub use damage::{forget_damage, note_damage, noted_damage};
pub use dir::{PRIVATE_MODE, SIDECAR_NAME, make_sidecar, refuse_linked, sidecar_dir};
pub use index::{Entry, INDEX_BLOCK_BYTES, Index};
pub use lock::{LOCK_NAME, LockTimeout, WriterLock, lock_within};
pub use look::{first_setting, has_mark, refuse_other_format, tells_of_no_record};
pub use loss::Loss;
pub use mark::{LoadedMark, Mark, MarkFile, MarkUse};
pub use note::{Found, Note, is_absence, is_missing, with_sum};
pub use settings::Settings;
