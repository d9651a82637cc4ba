//! What the first bytes of a file say: which layout it has, and the number of its first deed.

use std::io;
use std::path::Path;

use super::packed::{
    FORMAT, HEADER_BYTES, Layout, Packed, looks_padded, looks_slots, parse_file_header,
};
use crate::error::{Error, ErrorKind, Result};
use crate::log::find_end::Findings;
use crate::scan::{Damage, Scanned, Scanner, Verdict};
use crate::sidecar::Mark;
use crate::slice::{part, u64_at};
use crate::storage::{File, read_full};

/// A header as found.
#[derive(Clone, Debug)]
pub struct Header {
    /// `fir_d`: number of the first deed, 0 before the first save or where it is not there.
    pub first: u64,
    /// What is wrong with the rest.
    pub damage: Option<Damage>,
}

/// Read the header. One that is damaged is an error unless an intact deed follows it.
pub fn read_header(
    file: &dyn File,
    log: &Path,
    mark: Option<&Mark>,
    codec: Packed,
) -> Result<Header> {
    let fail = |e| Error::io("read the header", log, e).of(FORMAT);
    let mut header = [0; HEADER_BYTES as usize];
    let read = read_full(file, &mut header, 0).map_err(fail)?;
    if let Some(mark) = mark.filter(|mark| mark.records > 0 && read < header.len()) {
        return Err(lost_file(log, &format!("{read} bytes are left"), mark));
    }
    let slot = |at: u64| -> Result<bool> {
        let mut slot = [0; 48];
        let read = read_full(file, &mut slot, at).map_err(fail)?;
        Ok(looks_slots(part(&slot, ..read)))
    };
    // A payload at byte 4096 of a packed log may hold a slot, but no slot a deed at byte 16.
    let slots = file.len().map_err(fail)? >= 8192 && (slot(0)? || slot(4096)?);
    let intact = || first_deed_is_intact(file, codec).map_err(fail);
    if slots && !intact()? {
        return Err(unsupported(Layout::Slots).at(log));
    }
    match parse_file_header(part(&header, ..read)) {
        Ok(first) => Ok(Header { first, damage: None }),
        Err(e) if read == header.len() && intact()? => {
            let damage = Some(in_header(e.offset().unwrap_or(0), e.message().into()));
            Ok(Header { first: u64_at(&header, 8).unwrap_or(0), damage })
        }
        Err(e) => Err(e.at(log)),
    }
}

fn first_deed_is_intact(file: &dyn File, codec: Packed) -> io::Result<bool> {
    let mut scanner = Scanner::new(codec, HEADER_BYTES, file.len()?);
    Ok(matches!(scanner.next(file)?, Scanned::Record { .. }))
}

fn unsupported(layout: Layout) -> Error {
    let message = format!("layout {}: this version reads and writes packed only", layout.name());
    Error::new(ErrorKind::Unsupported, message).of(FORMAT)
}

/// Without a single packed deed and without a mark, the file may be of another layout.
pub fn detect_other_layouts(file: &dyn File, log: &Path, findings: &Findings) -> Result<()> {
    let fail = |e| Error::io("read the log", log, e).of(FORMAT);
    let mut begin = vec![0; 1 << 20];
    let read = read_full(file, &mut begin, HEADER_BYTES).map_err(fail)?;
    if looks_padded(part(&begin, ..read)) {
        return Err(unsupported(Layout::Padded).at(log));
    }
    if findings.verdict == Verdict::Torn && findings.data_end > HEADER_BYTES {
        let why = findings.damage.as_ref().map(|damage| damage.reason.clone()).unwrap_or_default();
        let message =
            format!("no deed at byte {HEADER_BYTES}; tried packed ({why}), padded, slots");
        let error = Error::new(ErrorKind::NotALog, message).of(FORMAT).at(log);
        return Err(error.offset_at(HEADER_BYTES));
    }
    Ok(())
}

/// The error of a log that is gone while its mark says what was in it.
pub fn lost_file(log: &Path, what: &str, mark: &Mark) -> Error {
    let message = format!(
        "lost acknowledged records: {what}, {} deeds up to byte {} were acknowledged; if the log \
         was removed on purpose, or a backup restored, remove .deedbook beside it",
        mark.records, mark.end
    );
    Error::new(ErrorKind::LostRecords, message).of(FORMAT).at(log).offset_at(0)
}

/// Damage in the header, before all deeds.
pub fn in_header(offset: u64, reason: String) -> Damage {
    Damage {
        offset,
        end: HEADER_BYTES,
        reason,
        next_intact: Some(HEADER_BYTES),
        next_proved: true,
        ..Damage::default()
    }
}
