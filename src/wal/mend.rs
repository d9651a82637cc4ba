//! Mending what opening refuses: cut in place, or copy what is intact. Only on request.

use std::path::Path;
use std::sync::Arc;

use super::Wal;
use super::batch::Batch;
use super::cursor::{Cursor, OnCorrupt};
use super::format::{FORMAT, Lsn};
use super::look::{Looked, look_at};
use super::open::{look_patiently, place_of, vouched};
use super::options::{Mode, Options, Recovery};
use super::place::Place;
use super::report::{RepairReport, SalvageReport, SalvageRun};
use super::survey::Borders;
use super::verify::cursor;
use crate::durability::Durability;
use crate::error::{Error, Result};
use crate::locks::Mutex;
use crate::mode::Depth;
use crate::storage::{Access, File};

/// Copied or checked between two calls of a progress function.
pub const PROGRESS_BYTES: u64 = 4 << 20;
const SALVAGE_BATCH_BYTES: usize = 4 << 20;

/// Cut a log behind its valid prefix, after saving what is cut in `log.cut-BYTE` beside it (for a
/// single file `NAME.cut-BYTE`). Segments behind a gap are renamed to `*.wal.cut`, and a head
/// marker that only the mark still knows is written again. A clean log stays as it is.
pub fn repair(path: impl AsRef<Path>, options: &Options) -> Result<RepairReport> {
    let place = place_of(path.as_ref(), options)?;
    // Only an existing log, and nothing that is none; what there is to cut is decided under the
    // lock.
    let careful = Options { recovery: Recovery::Valid, ..options.clone() };
    drop(look_at(&careful, &place, Access::Read, Depth::Quick).map_err(|e| e.of(FORMAT))?);
    let options = Options { recovery: Recovery::Spec, ..options.clone() };
    let log = place.log.clone();
    // Opening does the cutting, but checks every record first: it cuts what `verify` complains
    // about.
    let wal =
        Wal::open_writer(place, Mode::Append, options, Depth::Full).map_err(|e| e.of(FORMAT))?;
    let report = wal.recovery().clone();
    wal.close()?;
    Ok(RepairReport {
        path: log,
        valid_end: report.valid_end,
        cut_bytes: report.cut_bytes,
        saved_to: report.saved_to,
        damage: report.damage,
    })
}

/// Copy every intact record to a new log, of the same layout unless the options say another. The
/// copies get new LSNs from 0 on; the report tells which. `progress` is called with bytes done and
/// bytes in all, and what it fails with ends the copying.
pub fn salvage(
    source: impl AsRef<Path>,
    target: impl AsRef<Path>,
    options: &Options,
    mut progress: impl FnMut(u64, u64) -> Result<()>,
) -> Result<SalvageReport> {
    // The layout asked for is the new log's.
    let read = Options { layout: None, ..options.clone() };
    let place = place_of(source.as_ref(), &read)?;
    let looked = look_patiently(&read, &place, Depth::Quick).map_err(|e| e.of(FORMAT))?;
    let (start, file_end) = (looked.findings.tip.start, looked.findings.file_end);
    let mut sources = vec![cursor(&read, &place, &looked)];
    sources.extend(behind_gaps(&read, &place, &looked)?);
    let written = Options {
        durability: Durability::Manual,
        layout: options.layout.or(Some(looked.layout)),
        record_bytes_max: Some(looked.codec.record_bytes_max),
        ..options.clone()
    };
    let copy = written.open(target, Mode::Create)?;
    let mut report = SalvageReport::default();
    let mut batch = Batch::new(looked.codec.record_bytes_max);
    let mut next_progress = start;
    let mut base = copy.end()?.0;
    for records in &mut sources {
        // `None` at the beginning: what follows a gap between segments is a run of its own.
        let mut gaps = None;
        while let Some(record) = records.next()? {
            let at = batch.push(record.payload)?;
            let (source_lsn, Lsn(end)) = (record.lsn, record.next_lsn());
            let behind_gap = gaps != Some(records.damages().len());
            gaps = Some(records.damages().len());
            report.records += 1;
            match report.runs.last_mut().filter(|_| !behind_gap) {
                Some(run) => run.records += 1,
                None => {
                    let lsn = Lsn(base + at);
                    report.runs.push(SalvageRun { source_lsn, lsn, records: 1 });
                }
            }
            if batch.bytes_len() >= SALVAGE_BATCH_BYTES {
                copy.append_batch(&batch)?;
                batch.clear();
                base = copy.end()?.0;
            }
            if end >= next_progress {
                progress((end - start).min(file_end - start), file_end - start)?;
                next_progress = end + PROGRESS_BYTES;
            }
        }
        report.damages.extend_from_slice(records.damages());
    }
    copy.append_batch(&batch)?;
    copy.close()?;
    progress(file_end - start, file_end - start)?;
    Ok(report)
}

/// Cursors over the segments behind gaps, a run without gaps each. A run may begin inside of a
/// record, so its first records are those whose chain is believed. What lies above the mark is a
/// torn tail, of which nothing behind a gap counts.
fn behind_gaps(options: &Options, place: &Place, looked: &Looked) -> Result<Vec<Cursor>> {
    let Some(segments) = &looked.segments else { return Ok(Vec::new()) };
    let bytes = looked.layout.segment_bytes().unwrap_or(u64::MAX);
    let index = Arc::new(Mutex::new(vouched(options, place, looked.mark.as_ref(), Access::Read)));
    let known_end = looked.findings.durable_end;
    let fail = |e| Error::io("look at the log", &place.log, e);
    let mut cursors = Vec::new();
    for run in segments.stray_runs().map_err(fail)? {
        let start = run.start.saturating_mul(bytes);
        if known_end.is_some_and(|end| start >= end) {
            continue;
        }
        let file: Arc<dyn File> = Arc::new(segments.over(run));
        let end = file.len().map_err(fail)?;
        let borders = Borders { index: index.clone(), known_end, durable_end: known_end };
        let (skip, codec) = (OnCorrupt::Skip, looked.codec);
        cursors.push(Cursor::new(file, &place.log, codec, start, end, skip, borders));
    }
    Ok(cursors)
}
