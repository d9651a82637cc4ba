//! Opening with `recovery="spec"`: cut a damaged write-ahead log instead of refusing the store.
//!
//! The specification says: "Recover only up to the last valid entry". The specification has no rule
//! for segments. A missing segment is refused, and damaged pages stay until a repair. Every opening
//! cuts the last segment at its first damaged page after the checkpoint, and the log brings the
//! later events back. A cut log cannot: the cut saves those events, and they count as a loss.
//!
//! The order of a repair applies, with the same states after a crash: note a loss, write all
//! segments again, sync the segments, save the bytes to be cut, and cut the log.

use std::path::Path;

use super::belonging::Belonging;
use super::mend_wal::{self, LogPlan};
use super::rescue::Files;
use super::seen::{Seen, forget_imports};
use crate::error::{Error, ErrorKind, Result};
use crate::ground::lines;
use crate::mode::Recovery;
use crate::nostr::log::entry::WAL_NAME;
use crate::nostr::pages::options::Options;
use crate::nostr::store::opened::OpenReport;
use crate::sidecar::{Loss, WriterLock, sidecar_dir};

/// Whether opening refused a store for a write-ahead log that may be cut.
pub fn is_asked(options: &Options, dir: &Path, error: &Error) -> bool {
    let kinds = [ErrorKind::Corrupt, ErrorKind::LostRecords, ErrorKind::NotALog];
    options.recovery == Recovery::Spec
        && kinds.contains(&error.kind())
        && error.path().is_some_and(|path| path.starts_with(dir.join(WAL_NAME)))
}

/// Cut the write-ahead log at its first damage, after saving the bytes. `None` without damage, or
/// without a segment: the log may then belong to another store. The lock passes to the following
/// opening.
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
        // The note comes before the cut: every later check reports the loss.
        Loss { records: 0, first: 0, offset: 0 }.store(storage, &sidecar)?;
    }
    forget_imports(storage, &sidecar)?;
    if plan.cuts() {
        belonging.stop_vouching(options, dir)?;
    }
    let saved = mend_wal::mend(options, &wal_dir, &there, &plan)?;
    let (cut_bytes, cut_events) = (plan.cut_bytes, plan.cut_events);
    let (path, reason) = (first.path.as_deref().unwrap_or(dir).display(), &first.reason);
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
