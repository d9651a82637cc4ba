//! The end of a log at an opening for write: cut a torn tail, refuse damage, make the rest durable,
//! and store the mark. The only part of opening that writes.
//!
//! The order survives a crash at any step: save the bytes to cut; write the unmarked tail again and
//! sync; mark; cut; sync; sync the names. The mark is lowered before the cut, because a mark above
//! the end would mean a loss of acknowledged records.

use std::io;
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::ground::lines;
use crate::log::extent::Extent;
use crate::log::format::{Format, Inspected};
use crate::log::look::conclude::{is_of_another_file, loss};
use crate::log::notice::corrupt;
use crate::log::options::Common;
use crate::log::report::OpenReport;
use crate::log::space::{Place, Space};
use crate::log::stage::is_staged;
use crate::mode::Recovery;
use crate::saving::{rewrite, save_tail, sync_names};
use crate::scan::Verdict;
use crate::sidecar::{Intent, Left, Loss, Mark, MarkFile, MarkUse, Settings};
use crate::storage::{above, sync_dir};

/// The advice about a log that lost acknowledged records.
const LOST: &str = "repair says what is missing, and goes on without it if the loss is accepted; if a \
                    backup was restored on purpose, remove the log's .deedbook";
/// The same advice, if other files know more of the log.
const LOST_OF_STORE: &str =
    "repair says what is missing, and goes on without it if the loss is accepted";
/// The advice about a copy that ends below its mark.
const COPIED: &str = "this copy has less than its mark says: make it again, best with deedbook backup; \
                      to go on with what is here, repair it, or remove its .deedbook";

/// The advice for a torn record that may not be a record at all.
const UNPROVED: &str = "it is the only record, and nothing in .deedbook says that this is a log: if it is one, \
                        repair it, or open it with recovery=\"spec\"";

/// Cut a torn tail, or refuse; then make the rest durable, and store the mark.
pub fn settle<F: Format>(
    found: &mut Inspected<F>,
    common: &Common,
    place: &Place,
) -> Result<(OpenReport, MarkFile)> {
    let (storage, log) = (&*common.storage, &*place.log);
    let fail = |doing: &str, e: io::Error| Error::io(doing, log, e).of(F::NAME);
    refuse_damage(found, common.recovery, log)?;
    let lost = loss(found);
    if let Some(lost) = lost {
        // The caller accepts the loss of acknowledged records. Store the note before lowering the mark: no later check
        // may call the log complete.
        lost.store(storage, &place.sidecar)?;
    }
    let noted = Loss::load(storage, &place.sidecar)?;
    let mut report = OpenReport::new(&found.findings, noted);
    let cut_begun = found.cut_begun();
    let exact = common.recovery == Recovery::Acknowledged;
    if exact {
        cut_back_to_mark(found, &mut report);
    }
    let extent = found.findings.extent;
    if !cut_begun {
        let file = &*found.space.file;
        let (base, end) = (&*place.saved, extent.end);
        if !is_staged(common, &place.sidecar, found) {
            report.saved_to = save_tail(storage, file, base, common.file_mode, end)?;
        }
        if let Some(segments) = found.space.files.segments() {
            let aside = segments.set_orphans_aside();
            report.set_aside = aside.map_err(|e| fail("set files aside", e))?;
        }
    }
    restore_head(&found.space, log, &mut report)?;

    let cut = found.space.files_end > extent.end || found.space.files.has_orphans();
    let id = found.space.file.id().map_err(|e| fail("look at the log", e))?;
    // A mark with another file's identity was copied with the log: the copy may be in the cache only.
    let holds = |mark: Mark| {
        let Extent { start, end, records, .. } = extent;
        (mark.start, mark.end, mark.records, mark.file) == (start, end, records, id)
    };
    let unmarked = !found.mark.is_some_and(holds);
    let from = found.mark.map_or(extent.start, |mark| mark.end.clamp(extent.start, extent.end));
    if found.mark.is_some() && from < extent.end {
        // After a failed sync the system takes pages for clean that never reached the disk. A
        // header lies in the page of the first record, or the format seals it.
        rewrite(&*found.space.file, from, extent.end)
            .map_err(|e| fail("write the tail again", e))?;
    }
    let is_copy = found.mark.map_or(extent.records > 0, |mark| mark.file != id);
    if cut || unmarked || !found.seal.is_sealed(&extent) {
        let sealed = found.seal.seal(&*found.space.file, &extent);
        sealed.map_err(|e| fail("write the tail again", e))?;
        // Bytes that survived a crash in the page cache become durable only here.
        let whole = found.mark.is_none_or(|mark| mark.file != id);
        let from = if whole { extent.start } else { from };
        let synced = found.space.files.sync_from(&*found.space.file, from);
        synced.map_err(|e| fail("sync", e))?;
    }
    // Store an exact mark again, because after a failed sync the mark may exist only in the cache.
    // Store the mark of a log in pieces before cutting the pieces: a crash half-way leaves some of
    // the pieces after a gap, and the mark on the disk must then say torn, not that acknowledged
    // records are missing.
    let in_pieces = cut_begun || (cut && !place.single);
    // A mark next to a damaged slot is also stored again.
    let is_kept = |mark: &Mark| !mark.exact && !mark.older && !unmarked && !exact && !in_pieces;
    let keeps = found.mark.filter(is_kept);
    let was_closed = keeps.is_some_and(|mark| mark.closed);
    let mark_file = match keeps {
        Some(_) => MarkFile::open(storage, &place.sidecar).map_err(|e| fail("open the mark", e))?,
        None => {
            let (index_entries, index_chain) = match found.mark {
                Some(old) if old.end <= extent.end => (old.index_entries, old.index_chain),
                _ => (0, 0),
            };
            let mark = Mark { exact, index_entries, index_chain, ..extent.mark(id) };
            found.mark = Some(mark);
            MarkFile::reset(storage, &place.sidecar, &mark)
                .map_err(|e| fail("store the mark", e))?
        }
    };
    if cut || !was_closed {
        // Also with nothing to cut: after a cut with a failed sync, the file on the disk is longer than in the cache.
        // Files removed by a killed process may still exist, too.
        found.space.file.set_len(extent.end).map_err(|e| fail("cut the tail", e))?;
        report.cut_bytes = found.space.files_end - extent.end;
        let last = extent.end.saturating_sub(1).max(extent.start);
        let synced = found.space.files.sync_from(&*found.space.file, last);
        synced.map_err(|e| fail("sync", e))?;
    }
    if found.left != Left::Absent {
        // Remove another log's intent before an append could make it fit.
        Intent::clear(storage, &place.sidecar)?;
    }
    report.finished_truncation = cut_begun;
    if is_copy {
        Settings::sync(storage, &place.sidecar)?;
    }
    if !was_closed {
        sync_names(storage, &place.sidecar, &place.dir)?;
        let all = above(&place.sidecar);
        if all != place.dir {
            // Several logs in a directory each have a directory in the common sidecar.
            sync_dir(storage, all)?;
        }
    }
    let written = found.findings.data_end.saturating_sub(extent.end);
    log_recovery::<F>(&report, written, lost, log);
    Ok((report, mark_file))
}

/// Store the head again if only the mark still has the head, and remove segments below the head that a crash brought
/// back.
fn restore_head(space: &Space, log: &Path, report: &mut OpenReport) -> Result<()> {
    let Some(segments) = space.files.segments() else { return Ok(()) };
    if space.head_is_lost {
        segments.store_head(space.start)?;
    }
    report.removed_segments = segments.remove_stale()?.to_vec();
    if !report.removed_segments.is_empty() {
        lines::warn(format_args!(
            "removed {} segments below the head, byte {} ({})",
            report.removed_segments.len(),
            space.start,
            log.display()
        ));
    }
    Ok(())
}

/// Cut back to the acknowledged records. An inexact mark may be older than the last acknowledgement, and so may a mark
/// next to a damaged slot, which may have held a newer mark.
fn cut_back_to_mark<F: Format>(found: &mut Inspected<F>, report: &mut OpenReport) {
    let findings = &mut found.findings;
    let is_exact = |mark: &Mark| mark.exact && !mark.older && findings.mark == MarkUse::Used;
    let Some(mark) = found.mark.filter(is_exact) else {
        return;
    };
    if mark.start == findings.extent.start && mark.end < findings.extent.end {
        report.cut_records = findings.extent.records - mark.records;
        findings.extent = Extent::of_mark(&mark);
        report.valid_end = mark.end;
    }
}

fn refuse_damage<F: Format>(found: &Inspected<F>, recovery: Recovery, log: &Path) -> Result<()> {
    let Inspected { findings, space, mark, .. } = found;
    let is_unproved = found.unproved && recovery != Recovery::Spec;
    if let Some(damage) = findings.damage.as_ref().filter(|_| is_unproved) {
        return Err(corrupt::<F>(log, damage, ErrorKind::Corrupt).with_advice(UNPROVED));
    }
    if findings.verdict != Verdict::Corrupt {
        return Ok(());
    }
    let Some(damage) = &findings.damage else {
        return Err(Error::new(ErrorKind::Corrupt, "damaged").of(F::NAME).at(log));
    };
    // A cut does not repair damage before the records. A record that only exceeds this caller's
    // limit is no damage.
    let can_be_cut = damage.offset >= findings.extent.start && !findings.beyond_limit;
    if recovery == Recovery::Spec && can_be_cut {
        return Ok(());
    }
    if findings.mark != MarkUse::Lost || findings.beyond_limit {
        return Err(corrupt::<F>(log, damage, ErrorKind::Corrupt));
    }
    let fail = |e| Error::io("look at the log", log, e).of(F::NAME);
    let another = match mark {
        Some(mark) => is_of_another_file(space, mark).map_err(fail)?,
        None => false,
    };
    // A copy made too early lacks records at its end. Records after the damage show another cause.
    let advice = match another && damage.next_intact.is_none() {
        _ if F::HAS_WITNESSES => LOST_OF_STORE,
        true => COPIED,
        false => LOST,
    };
    Err(corrupt::<F>(log, damage, ErrorKind::LostRecords).with_advice(advice))
}

/// `written` is the number of removed bytes that were not merely reserved space.
fn log_recovery<F: Format>(report: &OpenReport, written: u64, lost: Option<Loss>, log: &Path) {
    let OpenReport { verdict, cut_bytes, valid_end, .. } = report;
    if report.mark == MarkUse::Damaged {
        let scanned = report.scanned_bytes;
        lines::warn(format_args!(
            "{} recovered: its mark is damaged, the end was found by a scan of {scanned} bytes ({})",
            F::NAME,
            log.display()
        ));
    }
    let clean = matches!(verdict, Verdict::Clean | Verdict::Open) && report.cut_records == 0;
    if clean && !report.finished_truncation {
        return;
    }
    let saved = report.saved_to.as_ref().map(|to| format!(", saved to {}", to.display()));
    let aside: String =
        report.set_aside.iter().map(|to| format!(", set aside as {}", to.display())).collect();
    let finished = match report.finished_truncation {
        true => ", by finishing a truncation that a crash interrupted",
        false => "",
    };
    let lost =
        lost.map(|loss| format!(", acknowledged {}s are missing from {} on", F::NOUN, loss.first));
    lines::warn(format_args!(
        "{} recovered: {}, {cut_bytes} bytes cut after byte {valid_end}{finished}, {written} of \
         them written{}{aside}{} ({})",
        F::NAME,
        verdict.name(),
        saved.unwrap_or_default(),
        lost.unwrap_or_default(),
        log.display()
    ));
}
