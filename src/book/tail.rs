//! What opening for write does about the end of a log: cut a torn tail, refuse damage, make durable
//! what is kept, and mark it.

use std::io;
use std::path::Path;

use super::cursor::corrupt;
use super::epoch::epoch_of;
use super::format::{FORMAT, HEADER_BYTES};
use super::look::Looked;
use super::options::{Options, Recovery};
use super::recover::MarkUse;
use super::report::RecoveryReport;
use super::tip::Tip;
use crate::error::{Error, ErrorKind, Result};
use crate::mend::{rewrite, save_tail, sync_names};
use crate::scan::Verdict;
use crate::sidecar::{Mark, MarkFile};

/// Cut what may be cut, or refuse; then make durable what was found, and mark it.
pub fn settle(
    looked: &mut Looked,
    options: &Options,
    sidecar: &Path,
    log: &Path,
) -> Result<(RecoveryReport, MarkFile)> {
    let storage = &*options.storage;
    let fail = |doing: &str, e: io::Error| Error::io(doing, log, e).of(FORMAT);
    let mut report = RecoveryReport::new(&looked.findings);
    let findings = &mut looked.findings;
    if findings.verdict == Verdict::Corrupt {
        let Some(damage) = &findings.damage else {
            return Err(Error::new(ErrorKind::Corrupt, "damaged").at(log));
        };
        // A damaged header cannot be mended by cutting.
        if options.recovery != Recovery::Spec || damage.offset < HEADER_BYTES {
            let lost = findings.mark == MarkUse::Lost;
            let kind = if lost { ErrorKind::LostRecords } else { ErrorKind::Corrupt };
            return Err(corrupt(log, damage, kind));
        }
    }
    if options.recovery == Recovery::Spec {
        report.saved_to =
            save_tail(storage, &*looked.file, log, options.file_mode, findings.tip.end)?;
    }
    // A mark that is not exact may be older than what was acknowledged.
    let exact = options.recovery == Recovery::Acknowledged;
    if let (true, MarkUse::Used, Some(mark)) =
        (exact, findings.mark, looked.mark.filter(|mark| mark.exact))
    {
        report.cut_deeds = findings.tip.records - mark.records;
        findings.tip = Tip::of_mark(&mark);
        findings.blocks.retain(|&(_, offset)| offset <= mark.end);
    }
    let tip = findings.tip;
    let cut = findings.file_end > tip.end;
    let id = looked.file.id().map_err(|e| fail("look at", e))?;
    // A mark that names another file was copied with the log: the copy may be in the cache only.
    let holds = |mark: Mark| (mark.end, mark.records, mark.file) == (tip.end, tip.records, id);
    let unmarked = !looked.mark.is_some_and(holds);
    let epoch = epoch_of(parent(log), options, findings, looked.header_first, looked.mark.as_ref());
    let mark = Mark { exact, ..tip.mark(epoch.saturating_add(1), id) };
    if looked.mark.is_some_and(|mark| mark.end > tip.end) {
        // Before the cut: a mark above the end would say that acknowledged deeds are lost.
        MarkFile::reset(storage, sidecar, &mark, options.file_mode)
            .map_err(|e| fail("lower the mark", e))?;
    }
    if cut {
        looked.file.set_len(tip.end).map_err(|e| fail("cut the tail", e))?;
        report.cut_bytes = findings.file_end - tip.end;
    }
    if let Some(mark) = looked.mark.filter(|mark| mark.end < tip.end) {
        // After a failed sync the system takes pages for clean that never reached the disk.
        let from = if mark.records == 0 { 0 } else { mark.end };
        rewrite(&*looked.file, from, tip.end).map_err(|e| fail("write the tail again", e))?;
    }
    if cut || unmarked {
        // What survived a crash in the page cache is durable only from here on.
        looked.file.sync_data().map_err(|e| fail("sync", e))?;
    }
    // An exact mark is stored anew: after a failed sync only the cache may have the one found.
    let keeps = looked.mark.filter(|mark| !unmarked && !exact && !mark.exact);
    let mark_file = match keeps {
        Some(_) => MarkFile::open(storage, sidecar).map_err(|e| fail("open the mark", e))?,
        None => {
            let (index_entries, index_chain) = match looked.mark {
                Some(old) if old.end <= tip.end => (old.index_entries, old.index_chain),
                _ => (0, 0),
            };
            let mark = Mark { index_entries, index_chain, ..mark };
            MarkFile::reset(storage, sidecar, &mark, options.file_mode)
                .map_err(|e| fail("store the mark", e))?
        }
    };
    if !keeps.is_some_and(|mark| mark.closed) {
        sync_names(storage, sidecar, parent(log))?;
    }
    Ok((report, mark_file))
}

fn parent(log: &Path) -> &Path {
    log.parent().unwrap_or(Path::new("."))
}
