//! Mending, only when asked: `repair` cuts in place, `salvage` copies what is good.

use std::path::Path;

use super::Book;
use super::batch::Batch;
use super::cursor::{Cursor, OnCorrupt, Range};
use super::format::{FORMAT, HEADER_BYTES, Packed};
use super::look::{look_at, resolve};
use super::meta::Meta;
use super::options::{Mode, Options, Recovery};
use super::recover::Depth;
use super::report::{RepairReport, SalvageReport, SalvageRun};
use super::survey::Borders;
use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
use crate::storage::Access;

/// Copied or checked between two calls of a progress function.
pub(super) const PROGRESS_BYTES: u64 = 4 << 20;
const SALVAGE_BATCH_BYTES: usize = 4 << 20;

/// Cut a log behind its valid prefix, after saving what is cut in `book.log.cut-OFFSET` beside it.
/// A clean log stays as it is.
pub fn repair(path: impl AsRef<Path>, options: &Options) -> Result<RepairReport> {
    let options = Options { recovery: Recovery::Spec, ..options.clone() };
    let (dir, log) = resolve(path.as_ref(), &options);
    // Only an existing log; what there is to cut is decided under the lock.
    drop(look_at(&options, &dir, &log, Access::Read, Depth::Quick)?);
    // Opening does the cutting, but checks every deed first: it cuts what `verify` complains
    // about. A header that is damaged is refused there.
    let book = Book::open_writer(dir, log.clone(), Mode::Append, options, Depth::Full)
        .map_err(|e| e.of(FORMAT))?;
    let report = book.recovery().clone();
    book.close()?;
    Ok(RepairReport {
        path: log,
        valid_end: report.valid_end,
        cut_bytes: report.cut_bytes,
        saved_to: report.saved_to,
        damage: report.damage,
    })
}

/// Copy every intact deed, and the metadata, to a new log; of an unacknowledged tail those before
/// its first damage. Deeds behind a gap get new numbers, because a packed log has no gaps; the
/// report tells them. `progress` is called with bytes done and bytes in all, and what it fails with
/// ends the copying.
pub fn salvage(
    source: impl AsRef<Path>,
    target: impl AsRef<Path>,
    options: &Options,
    mut progress: impl FnMut(u64, u64) -> Result<()>,
) -> Result<SalvageReport> {
    let (dir, log) = resolve(source.as_ref(), options);
    let looked = look_at(options, &dir, &log, Access::Read, Depth::Quick)?;
    let findings = &looked.findings;
    let first = if findings.tip.records > 0 { findings.tip.first } else { looked.header_first };
    let borders = Borders::of(options, &dir, &looked);
    let range = Range {
        offset: HEADER_BYTES,
        end: findings.file_end,
        event: Some(first).filter(|&first| first > 0),
        stop: None,
    };
    let codec = Packed::new(options.deed_bytes_max);
    let mut deeds = Cursor::new(looked.file.clone(), log, codec, range, OnCorrupt::Skip, borders);

    let epoch = Some(first.saturating_sub(1));
    let written = Options { durability: Durability::Manual, epoch, ..options.clone() };
    let copy = written.open(target, Mode::Create)?;
    let mut report = SalvageReport::default();
    let mut batch = Batch::new(options.deed_bytes_max);
    let (mut next_progress, mut gaps) = (0, 0);
    let mut event = first.max(1);
    while let Some(deed) = deeds.next()? {
        batch.push(deed.mug, deed.jam)?;
        let (source_event, source_offset) = (deed.event, deed.offset);
        let end = deed.offset + deed.framed_len();
        let behind_gap = deeds.damages().len() > gaps;
        gaps = deeds.damages().len();
        note_run(&mut report, behind_gap, source_event, source_offset, event);
        event = event.checked_add(1).ok_or_else(beyond)?;
        if batch.bytes_len() >= SALVAGE_BATCH_BYTES {
            copy.append_batch(&batch, None, None)?;
            batch.clear();
        }
        if end >= next_progress {
            progress(end, findings.file_end)?;
            next_progress = end + PROGRESS_BYTES;
        }
    }
    copy.append_batch(&batch, None, None)?;
    report.damages = deeds.damages().to_vec();
    let meta = Meta::read(&*options.storage, &dir)?;
    if meta != Meta::default() {
        copy.save_meta(&meta)?;
    }
    copy.close()?;
    progress(findings.file_end, findings.file_end)?;
    Ok(report)
}

fn beyond() -> Error {
    Error::new(ErrorKind::TooLarge, "event numbers beyond 2^64").of(FORMAT)
}

/// Count a deed into the run that it continues, or begin a new run behind a gap.
fn note_run(
    report: &mut SalvageReport,
    behind_gap: bool,
    source_event: Option<u64>,
    source_offset: u64,
    event: u64,
) {
    report.deeds += 1;
    match report.runs.last_mut().filter(|_| !behind_gap) {
        Some(run) => run.deeds += 1,
        None => report.runs.push(SalvageRun { source_event, event, deeds: 1, source_offset }),
    }
}
