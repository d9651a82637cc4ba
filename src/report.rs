//! Reports: the results of opening, checking, repairing, copying and backing up a log.
//!
//! They are values, the same for every log of records. An event store has its own reports under the same names in
//! `deedbook::nostr`, because it has segments and several witnesses.

pub use crate::backup::BackupReport;
pub use crate::log::{OpenReport, Repair, RepairReport, SalvageReport, SalvageRun, VerifyReport};
pub use crate::scan::{Damage, Verdict};
pub use crate::sidecar::{Loss, MarkUse};
