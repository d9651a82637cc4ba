//! Reports: the results of opening, checking, repairing, copying and backing up a log.
//!
//! Reports are values, the same for every log of records. An event store, with its segments and several witnesses, has an
//! `OpenReport`, a `VerifyReport` and a `SalvageReport` of its own in `deedbook::nostr`.

pub use crate::backup::BackupReport;
pub use crate::log::{OpenReport, Repair, RepairReport, SalvageReport, SalvageRun, VerifyReport};
pub use crate::scan::{Damage, Verdict};
pub use crate::sidecar::{Loss, MarkUse};
