//! What opening for write does about the end of a log: cut a torn tail, refuse damage, make durable
//! what is kept, and mark it.

use std::io;
use std::path::{Path, PathBuf};

use super::cursor::corrupt;
use super::epoch::epoch_of;
use super::format::{FORMAT, HEADER_BYTES, LOG_NAME};
use super::look::Looked;
use super::options::{Options, Recovery};
use super::recover::MarkUse;
use super::report::RecoveryReport;
use super::tip::Tip;
use crate::error::{Error, ErrorKind, Result};
use crate::scan::Verdict;
use crate::sidecar::{Mark, MarkFile};
use crate::storage::{File, read_full, write_full};

const COPY_BYTES: usize = 1 << 20;
const PAGE_BYTES: u64 = 4096;

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
        report.saved_to = save_tail(options, &*looked.file, log, findings.tip.end)?;
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
        sync_names(options, sidecar, parent(log))?;
    }
    Ok((report, mark_file))
}

/// Make the names of log, sidecar and directory durable: a writer that died between a creation and
/// the sync of its directory leaves names that only the cache has, and nobody else would sync them.
fn sync_names(options: &Options, sidecar: &Path, dir: &Path) -> Result<()> {
    let storage = &*options.storage;
    let above = dir.parent().filter(|above| !above.as_os_str().is_empty());
    let above = above.unwrap_or(Path::new("."));
    for dir in [sidecar, dir, above] {
        match storage.sync_dir(dir) {
            // The directory above need not be ours; if we made one in it, we may read it.
            Err(e) if dir == above && e.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced.map_err(|e| Error::io("sync the directory", dir, e))?,
        }
    }
    Ok(())
}

/// Write a stretch of a file again as it is, so that the next sync writes it to the disk.
fn rewrite(file: &dyn File, from: u64, to: u64) -> io::Result<()> {
    let mut block = vec![0; (to - from).min(1 << 20) as usize];
    let mut at = from;
    while at < to {
        let want = (to - at).min(block.len() as u64) as usize;
        let target = block.get_mut(..want).unwrap_or_default();
        let read = read_full(file, target, at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        write_full(file, target.get(..read).unwrap_or_default(), at)?;
        at += read as u64;
    }
    Ok(())
}

/// Copy the bytes from `from` on to a new file beside the log, durably, but not whole pages of
/// zeros at the end: these were reserved and never written. `None` if there are only zeros.
pub fn save_tail(
    options: &Options,
    file: &dyn File,
    log: &Path,
    from: u64,
) -> Result<Option<PathBuf>> {
    let storage = &*options.storage;
    let fail = |doing: &str, path: &Path, e: io::Error| Error::io(doing, path, e).of(FORMAT);
    let end = file.len().map_err(|e| fail("look at the log", log, e))?;
    let data =
        crate::scan::end_of_data(file, from, end).map_err(|e| fail("read the log", log, e))?;
    if data == from {
        return Ok(None);
    }
    let end = end.min(data.next_multiple_of(PAGE_BYTES));
    let mut name = format!("{LOG_NAME}.cut-{from}");
    let mut tries = 1;
    let (path, copy) = loop {
        let path = log.with_file_name(&name);
        match storage.create_new(&path, options.file_mode) {
            Ok(copy) => break (path, copy),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && tries < 1000 => {
                tries += 1;
                name = format!("{LOG_NAME}.cut-{from}.{tries}");
            }
            Err(e) => return Err(fail("save the tail", &path, e)),
        }
    };
    let mut block = vec![0; COPY_BYTES];
    let mut at = from;
    while at < end {
        let want = (end - at).min(COPY_BYTES as u64) as usize;
        let target = block.get_mut(..want).unwrap_or_default();
        let read = read_full(file, target, at).map_err(|e| fail("read the log", log, e))?;
        let there = target.get(..read).unwrap_or_default();
        if there.is_empty() {
            break;
        }
        write_full(&*copy, there, at - from).map_err(|e| fail("save the tail", &path, e))?;
        at += there.len() as u64;
    }
    copy.sync_data().map_err(|e| fail("save the tail", &path, e))?;
    let dir = path.parent().unwrap_or(Path::new("."));
    storage.sync_dir(dir).map_err(|e| fail("save the tail", &path, e))?;
    Ok(Some(path))
}

fn parent(log: &Path) -> &Path {
    log.parent().unwrap_or(Path::new("."))
}
