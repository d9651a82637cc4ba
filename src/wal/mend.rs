//! Mending what opening refuses: cut in place, or copy what is intact. Only on request.

use std::path::Path;

use super::Wal;
use super::batch::Batch;
use super::format::{FORMAT, Lsn};
use super::look::look_at;
use super::open::{look_patiently, place_of};
use super::options::{Mode, Options, Recovery};
use super::report::{RepairReport, SalvageReport, SalvageRun};
use super::verify::cursor;
use crate::durability::Durability;
use crate::error::Result;
use crate::mode::Depth;
use crate::storage::Access;

/// Copied or checked between two calls of a progress function.
pub const PROGRESS_BYTES: u64 = 4 << 20;
const SALVAGE_BATCH_BYTES: usize = 4 << 20;

/// Cut a log behind its valid prefix, after saving what is cut in `log.cut-BYTE` beside it (for a
/// single file `NAME.cut-BYTE`). Segments behind a gap are renamed to `*.wal.cut`, and a head
/// marker that only the mark still knows is written again. A clean log stays as it is.
pub fn repair(path: impl AsRef<Path>, options: &Options) -> Result<RepairReport> {
    let options = Options { recovery: Recovery::Spec, ..options.clone() };
    let place = place_of(path.as_ref(), &options)?;
    // Only an existing log; what there is to cut is decided under the lock.
    drop(look_at(&options, &place, Access::Read, Depth::Quick).map_err(|e| e.of(FORMAT))?);
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
    let looked = look_patiently(&read, &place).map_err(|e| e.of(FORMAT))?;
    let (start, file_end) = (looked.findings.tip.start, looked.findings.file_end);
    let mut records = cursor(&read, &place, &looked);
    let written = Options {
        durability: Durability::Manual,
        layout: options.layout.or(Some(looked.layout)),
        record_bytes_max: Some(looked.codec.record_bytes_max),
        ..options.clone()
    };
    let copy = written.open(target, Mode::Create)?;
    let mut report = SalvageReport::default();
    let mut batch = Batch::new(looked.codec.record_bytes_max);
    let (mut next_progress, mut gaps) = (start, 0);
    let mut base = copy.end()?.0;
    while let Some(record) = records.next()? {
        let at = batch.push(record.payload)?;
        let (source_lsn, Lsn(end)) = (record.lsn, record.next_lsn());
        let behind_gap = records.damages().len() > gaps;
        gaps = records.damages().len();
        report.records += 1;
        match report.runs.last_mut().filter(|_| !behind_gap) {
            Some(run) => run.records += 1,
            None => {
                report.runs.push(SalvageRun { source_lsn, lsn: Lsn(base + at), records: 1 });
            }
        }
        if batch.bytes_len() >= SALVAGE_BATCH_BYTES {
            copy.append_batch(&batch)?;
            batch.clear();
            base = copy.end()?.0;
        }
        if end >= next_progress {
            progress(end - start, file_end - start)?;
            next_progress = end + PROGRESS_BYTES;
        }
    }
    copy.append_batch(&batch)?;
    report.damages = records.damages().to_vec();
    copy.close()?;
    progress(file_end - start, file_end - start)?;
    Ok(report)
}
