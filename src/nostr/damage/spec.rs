//! Opening with `recovery="spec"`: where a damaged write-ahead log is refused, it is cut first.
//!
//! "Recover only up to the last valid entry", the specification says of it. Of segments it says nothing:
//! a missing one is refused, and damaged pages stay until a repair. Every opening cuts the last segment at
//! its first damaged page after the checkpoint, and the log brings back what followed. A log that was cut
//! cannot: those events are saved, and count as a loss.
//!
//! The order is that of a repair, and so is what a crash leaves: a loss is noted, all segments are written
//! again and synced, what goes is saved, and the log is cut.

use std::path::Path;

use super::belonging::Belonging;
use super::mend_wal::{self, LogPlan};
use super::rescue::Files;
use super::seen::{Seen, forget_imports};
use crate::error::{Error, ErrorKind, Result};
use crate::lines;
use crate::mode::Recovery;
use crate::nostr::log::entry::WAL_NAME;
use crate::nostr::pages::options::Options;
use crate::nostr::store::opened::OpenReport;
use crate::sidecar::{Loss, WriterLock, sidecar_dir};

/// Whether a store was refused for its write-ahead log, which may be cut.
pub fn is_asked(options: &Options, dir: &Path, error: &Error) -> bool {
    let kinds = [ErrorKind::Corrupt, ErrorKind::LostRecords, ErrorKind::NotALog];
    options.recovery == Recovery::Spec
        && kinds.contains(&error.kind())
        && error.path().is_some_and(|path| path.starts_with(dir.join(WAL_NAME)))
}

/// Cut the write-ahead log where its damage begins, after saving what goes. `None` if it has no damage, or
/// no segment is there: then it may be anybody's. The lock is for the opening that follows.
pub fn cut_log(options: &Options, dir: &Path) -> Result<Option<(OpenReport, WriterLock)>> {
    let (storage, sidecar, wal_dir) = (&*options.storage, sidecar_dir(dir), dir.join(WAL_NAME));
    let lock = options.lock_store(dir)?;
    let (mut belonging, there) = Belonging::load(options, dir)?;
    if there.is_empty() {
        return Ok(None);
    }
    let logs = Files::list(options, dir)?.logs;
    let seen = Seen::look(options, dir, &there, &belonging)?;
    let plan = LogPlan::make(options, &wal_dir, &belonging.manifest, &logs, &seen.ids)?;
    let Some(first) = plan.damages.first() else { return Ok(None) };
    let is_cut_with_pages = plan.cuts() && !seen.damages.is_empty();
    if plan.is_loss || plan.cut_events > 0 || is_cut_with_pages {
        // Noted before anything goes: every later check reports it.
        Loss { records: 0, first: 0, offset: 0 }.store(storage, &sidecar)?;
    }
    forget_imports(storage, &sidecar)?;
    if plan.cuts() {
        belonging.stop_vouching(options, dir)?;
    }
    let saved = mend_wal::mend(options, &wal_dir, &there, &plan)?;
    let (cut_bytes, cut_events) = (plan.cut_bytes, plan.cut_events);
    let (path, reason) = (first.path.display(), &first.reason);
    match saved.is_empty() {
        true => lines::warn(format_args!(
            "the store goes on without what is missing of its write-ahead log ({path}: {reason})"
        )),
        false => lines::warn(format_args!(
            "a damaged write-ahead log was cut: {cut_bytes} bytes, and {cut_events} intact events that only \
             it had; saved beside it ({path}, offset {}: {reason})",
            first.offset
        )),
    }
    Ok(Some((OpenReport { saved, cut_bytes, cut_events, ..OpenReport::default() }, lock)))
}
