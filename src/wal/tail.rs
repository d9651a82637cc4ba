//! What opening for write does about the end of a log: cut a torn tail, refuse damage, make durable
//! what is kept, and mark it.

use std::io;
use std::path::Path;

use super::cursor::corrupt;
use super::format::{FORMAT, HEAD_NAME, segment_name};
use super::intent::Intent;
use super::look::Looked;
use super::options::{Options, Recovery};
use super::place::Place;
use super::report::RecoveryReport;
use super::segments::remove;
use super::tip::Tip;
use crate::error::{Error, ErrorKind, Result};
use crate::mend::{above, rewrite, save_tail, sync_names};
use crate::scan::{Found, Scanner, Verdict, find_intact};
use crate::sidecar::{Mark, MarkFile, MarkUse};

/// Cut what may be cut, or refuse; then make durable what was found, and mark it.
pub fn settle(
    looked: &mut Looked,
    options: &Options,
    place: &Place,
) -> Result<(RecoveryReport, MarkFile)> {
    let (storage, log) = (&*options.storage, &*place.log);
    let fail = |doing: &str, e: io::Error| Error::io(doing, log, e).of(FORMAT);
    let mut report = RecoveryReport::new(&looked.findings);
    refuse_damage(looked, options, log)?;
    refuse_unproved_size(looked, options, log)?;
    let findings = &mut looked.findings;
    if options.recovery == Recovery::Spec && !looked.cut_begun {
        // Of segments behind a gap only those before it can be saved under their byte; the others
        // stay aside whole.
        let base = saved_name(place);
        let end = findings.tip.end;
        report.saved_to = save_tail(storage, &*looked.file, &base, options.file_mode, end)?;
        if let Some(segments) = &looked.segments {
            segments.set_stray_aside().map_err(|e| fail("set segments aside", e))?;
        }
    }
    // A mark that is not exact may be older than what was acknowledged.
    let exact = options.recovery == Recovery::Acknowledged;
    if let (true, MarkUse::Used, Some(mark)) =
        (exact, findings.mark, looked.mark.filter(|mark| mark.exact))
        && mark.start == findings.tip.start
    {
        report.cut_records = findings.tip.records - mark.records;
        findings.tip = Tip::of_mark(&mark);
        findings.blocks.retain(|&(_, offset)| offset <= mark.end);
    }
    let tip = findings.tip;
    if looked.head_lost {
        place.store_head(options, tip.start)?;
    }
    remove_below(looked, options, place)?;
    report.removed_segments = looked.below.clone();
    let stray = looked.segments.as_ref().is_some_and(|segments| segments.has_stray());
    let cut = looked.whole_end > tip.end || stray;
    let id = looked.file.id().map_err(|e| fail("look at", e))?;
    // A mark that names another file was copied with the log: the copy may be in the cache only.
    let holds = |mark: Mark| {
        (mark.start, mark.end, mark.records, mark.file) == (tip.start, tip.end, tip.records, id)
    };
    let unmarked = !looked.mark.is_some_and(holds);
    let from = looked.mark.map_or(tip.start, |mark| mark.end.clamp(tip.start, tip.end));
    if looked.mark.is_some() && from < tip.end {
        // After a failed sync the system takes pages for clean that never reached the disk.
        rewrite(&*looked.file, from, tip.end).map_err(|e| fail("write the tail again", e))?;
    }
    if cut || unmarked || looked.cut_begun {
        // What survived a crash in the page cache is durable only from here on.
        let whole = looked.mark.is_none_or(|mark| mark.file != id);
        looked.sync_from(if whole { tip.start } else { from }).map_err(|e| fail("sync", e))?;
    }
    // An exact mark is stored anew: after a failed sync only the cache may have the one found. And
    // so is the mark of a log in pieces before these are cut: a crash half-way leaves some of them
    // behind a gap, and the mark on the disk must say that they are torn, and not that acknowledged
    // records are missing.
    let in_pieces = looked.cut_begun || (cut && looked.segments.is_some());
    let keeps = looked.mark.filter(|mark| !unmarked && !exact && !mark.exact && !in_pieces);
    let closed = keeps.is_some_and(|mark| mark.closed);
    let mark_file = match keeps {
        Some(found) => {
            let opened = MarkFile::open(storage, &place.sidecar);
            let mut file = opened.map_err(|e| fail("open the mark", e))?;
            if found.closed {
                // Before anything is done that only the cache may know of when we are killed.
                let open = Mark { closed: false, ..found };
                file.store(&open).map_err(|e| fail("store the mark", e))?;
            }
            file
        }
        None => {
            let (index_entries, index_chain) = match looked.mark {
                Some(old) if old.end <= tip.end => (old.index_entries, old.index_chain),
                _ => (0, 0),
            };
            let mark = Mark { exact, index_entries, index_chain, ..tip.mark(id) };
            MarkFile::reset(storage, &place.sidecar, &mark, options.file_mode)
                .map_err(|e| fail("store the mark", e))?
        }
    };
    if cut || !closed {
        // Also if there is nothing to cut: behind a cut whose sync failed there is more on the disk
        // than in the cache. And segments that a killed process removed may still be there.
        looked.file.set_len(tip.end).map_err(|e| fail("cut the tail", e))?;
        report.cut_bytes = looked.whole_end - tip.end;
        let last = tip.end.saturating_sub(1).max(tip.start);
        looked.sync_from(last).map_err(|e| fail("sync", e))?;
    }
    if looked.cut_begun {
        Intent::clear(options, &place.sidecar)?;
        report.finished_truncation = true;
    }
    if !closed {
        sync_names(storage, &place.sidecar, &place.dir)?;
        if place.single {
            // Of several logs in a directory each has a directory in the sidecar's.
            let all = above(&place.sidecar);
            storage.sync_dir(all).map_err(|e| Error::io("sync the directory", all, e))?;
        }
    }
    Ok((report, mark_file))
}

fn refuse_damage(looked: &Looked, options: &Options, log: &Path) -> Result<()> {
    let findings = &looked.findings;
    if findings.verdict != Verdict::Corrupt || options.recovery == Recovery::Spec {
        return Ok(());
    }
    let Some(damage) = &findings.damage else {
        return Err(Error::new(ErrorKind::Corrupt, "damaged").at(log));
    };
    let lost = findings.mark == MarkUse::Lost;
    Err(corrupt(log, damage, if lost { ErrorKind::LostRecords } else { ErrorKind::Corrupt }))
}

/// Nothing is cut by a segment size that neither the sidecar nor the records vouch for: with another
/// one the head would stand elsewhere in its segment, and what is durable would look torn. Segment 0
/// stands where it stands, whatever the size.
fn refuse_unproved_size(looked: &Looked, options: &Options, log: &Path) -> Result<()> {
    let Looked { segments: Some(segments), findings, file, codec, whole_end, .. } = looked else {
        return Ok(());
    };
    let (tip, bytes) = (findings.tip, looked.layout.segment_bytes().unwrap_or(u64::MAX));
    let base = tip.start - tip.start % bytes;
    let known = looked.settings.is_some() || findings.mark == MarkUse::Used;
    let cuts = *whole_end > tip.end || segments.has_stray();
    if known || !cuts || base == 0 {
        return Ok(());
    }
    let name = segment_name(base / bytes);
    if options.layout.is_none() && tip.end - base <= bytes {
        let message = format!(
            "segment size unknown: {name} has {bytes} bytes, but its records end at byte {} and do \
             not go on in the next one; say segment_bytes",
            tip.end
        );
        return Err(Error::new(ErrorKind::InvalidArgument, message).at(log));
    }
    let fail = |e| Error::io("read the log", log, e);
    let mut at = base;
    while at < tip.start {
        let mut scanner = Scanner::new(*codec, at, *whole_end);
        if !matches!(scanner.next(&**file).map_err(fail)?, Found::Record { .. }) {
            let next = find_intact(&**file, codec, at + 1, *whole_end).map_err(fail)?;
            at = next.unwrap_or(tip.start);
            continue;
        }
        let end = scanner.position();
        if end > tip.start {
            let message = format!(
                "segment size {bytes} is not the log's: with it a record of {name} lies from byte \
                 {at} to {end}, across the head, byte {}; say segment_bytes",
                tip.start
            );
            return Err(Error::new(ErrorKind::InvalidArgument, message).at(log));
        }
        at = end;
    }
    Ok(())
}

/// What a crash brought back below the head goes again, oldest first, once the head is durable.
fn remove_below(looked: &Looked, options: &Options, place: &Place) -> Result<()> {
    if looked.below.is_empty() {
        return Ok(());
    }
    let storage = &*options.storage;
    let sync =
        || storage.sync_dir(&place.dir).map_err(|e| Error::io("sync the directory", &place.dir, e));
    sync()?;
    for index in &looked.below {
        let path = place.dir.join(segment_name(*index));
        remove(storage, &path).map_err(|e| Error::io("remove the segment", &path, e))?;
    }
    sync()
}

fn saved_name(place: &Place) -> std::path::PathBuf {
    match place.single {
        true => place.log.clone(),
        // Beside the head marker, under a name that no reader takes for a segment.
        false => place.dir.join(HEAD_NAME).with_file_name("log"),
    }
}
