//! Looking at a log before anything is decided: which file, which layout, what the mark says.
//! Changes nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::epoch::contradicts_name;
use super::format::{
    FORMAT, HEADER_BYTES, LOG_NAME, Layout, Packed, looks_padded, looks_slots, parse_header,
};
use super::options::Options;
use super::recover::{Depth, Findings, MarkUse, in_header, look};
use crate::error::{Error, ErrorKind, Result};
use crate::scan::{Found as Walked, Scanner, Verdict};
use crate::sidecar::{Found, Mark, MarkFile, sidecar_dir};
use crate::storage::{Access, File, read_full};

/// A log's directory and file, however the caller named it.
pub fn resolve(path: &Path, options: &Options) -> (PathBuf, PathBuf) {
    let names_log = path.file_name().is_some_and(|name| name == LOG_NAME);
    let dir = match path.parent() {
        Some(parent) if names_log && !options.storage.is_dir(path) => parent,
        _ => path,
    };
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    (dir.to_path_buf(), dir.join(LOG_NAME))
}

/// A log that was looked at, before anything is decided.
pub struct Looked {
    pub file: Arc<dyn File>,
    pub findings: Findings,
    pub header_first: u64,
    pub mark: Option<Mark>,
}

/// Open the file and look at it; changes nothing.
pub fn look_at(
    options: &Options,
    dir: &Path,
    log: &Path,
    access: Access,
    depth: Depth,
) -> Result<Looked> {
    options.check()?;
    let storage = &*options.storage;
    let fail = |doing: &str, e: io::Error| Error::io(doing, log, e).of(FORMAT);
    let file: Arc<dyn File> = match storage.open(log, access) {
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
            return Err(Error::new(ErrorKind::NotALog, e.to_string()).of(FORMAT).at(log));
        }
        opened => Arc::from(opened.map_err(|e| fail("open the log", e))?),
    };
    let loaded =
        MarkFile::load(storage, &sidecar_dir(dir)).map_err(|e| fail("read the mark", e))?;
    let mark = match loaded {
        Found::Mark(mark) => Some(mark),
        Found::Missing | Found::Damaged => None,
    };
    let codec = Packed::new(options.deed_bytes_max);
    let look = |header| {
        look(&*file, codec, header, mark, loaded == Found::Damaged, depth)
            .map_err(|e| fail("read the log", e))
    };
    let ours = |findings: &Findings| matches!(findings.mark, MarkUse::Used | MarkUse::Lost);
    let (header, mut findings) = match read_header(&*file, log, mark.as_ref(), codec) {
        Ok(header) => (header, look(header)?),
        // A damaged header in front of an intact deed: whose first number only the mark may know.
        Err(e) if e.kind() == ErrorKind::NotALog && first_deed_is_intact(&*file, codec) => {
            let header = mark.map_or(0, |mark| mark.first);
            let (header, mut findings) = match look(header)? {
                findings if header == 0 || ours(&findings) => (header, findings),
                _ => (0, look(0)?),
            };
            findings.verdict = Verdict::Corrupt;
            findings.damage = Some(in_header(e.offset().unwrap_or(0), e.message().into()));
            (header, findings)
        }
        Err(e) => return Err(e),
    };
    let tip = findings.tip;
    if tip.records > 0 && tip.first.checked_add(tip.records).is_none() {
        let message = format!("first event {} and {} deeds, beyond 2^64", tip.first, tip.records);
        return Err(Error::new(ErrorKind::Corrupt, message).of(FORMAT).at(log).offset_at(8));
    }
    if let Some(damage) = contradicts_name(dir, &findings) {
        findings.verdict = Verdict::Corrupt;
        findings.damage = Some(damage);
    }
    let known = ours(&findings);
    if !known && findings.tip.records == 0 {
        detect_other_layouts(&*file, &findings).map_err(|e| e.at(log))?;
    }
    let mark = mark.filter(|_| known);
    Ok(Looked { file, findings, header_first: header, mark })
}

fn first_deed_is_intact(file: &dyn File, codec: Packed) -> bool {
    let end = file.len().unwrap_or(0);
    matches!(Scanner::new(codec, HEADER_BYTES, end).next(file), Ok(Walked::Record { .. }))
}

fn read_header(file: &dyn File, log: &Path, mark: Option<&Mark>, codec: Packed) -> Result<u64> {
    let fail = |e| Error::io("read the header", log, e).of(FORMAT);
    let mut header = [0; HEADER_BYTES as usize];
    let read = read_full(file, &mut header, 0).map_err(fail)?;
    if let Some(mark) = mark.filter(|mark| mark.records > 0 && read < header.len()) {
        return Err(lost_file(log, &format!("{read} bytes are left"), mark));
    }
    let slot = |at: u64| -> Result<bool> {
        let mut slot = [0; 48];
        let read = read_full(file, &mut slot, at).map_err(fail)?;
        Ok(looks_slots(slot.get(..read).unwrap_or_default()))
    };
    // A payload at byte 4096 of a packed log may hold a slot, but no slot a deed at byte 16.
    let slots = file.len().map_err(fail)? >= 8192 && (slot(0)? || slot(4096)?);
    if slots && !first_deed_is_intact(file, codec) {
        return Err(unsupported(Layout::Slots).at(log));
    }
    parse_header(header.get(..read).unwrap_or_default()).map_err(|e| e.at(log))
}

fn unsupported(layout: Layout) -> Error {
    let message = format!("layout {}: this version reads and writes packed only", layout.name());
    Error::new(ErrorKind::Unsupported, message).of(FORMAT)
}

/// Without a single packed deed and without a mark, the file may be of another layout.
fn detect_other_layouts(file: &dyn File, findings: &Findings) -> Result<()> {
    let mut start = vec![0; 1 << 20];
    let read = read_full(file, &mut start, HEADER_BYTES).unwrap_or(0);
    if looks_padded(start.get(..read).unwrap_or_default()) {
        return Err(unsupported(Layout::Padded));
    }
    if findings.verdict == Verdict::Torn && findings.data_end > HEADER_BYTES {
        let why = findings.damage.as_ref().map(|damage| damage.reason.clone()).unwrap_or_default();
        let message =
            format!("no deed at byte {HEADER_BYTES}; tried packed ({why}), padded, slots");
        let error = Error::new(ErrorKind::NotALog, message).of(FORMAT);
        return Err(error.offset_at(HEADER_BYTES));
    }
    Ok(())
}

/// The error of a log that is gone while its mark says what was in it.
pub fn lost_file(log: &Path, what: &str, mark: &Mark) -> Error {
    let message = format!(
        "lost acknowledged records: {what}, {} deeds up to byte {} were acknowledged; if the log \
         was removed on purpose, remove .deedbook beside it",
        mark.records, mark.end
    );
    Error::new(ErrorKind::LostRecords, message).of(FORMAT).at(log).offset_at(0)
}

/// Refuse what is no book before anything is put beside it.
pub fn look_at_header_only(
    file: &dyn File,
    log: &Path,
    options: &Options,
    sidecar: &Path,
) -> Result<()> {
    let found = MarkFile::load(&*options.storage, sidecar)
        .map_err(|e| Error::io("read the mark", log, e))?;
    let mark = match found {
        Found::Mark(mark) => Some(mark),
        Found::Missing | Found::Damaged => None,
    };
    read_header(file, log, mark.as_ref(), Packed::new(options.deed_bytes_max)).map(drop)
}
