//! Proofs: the files are a log, an intent belongs to the log, the segments have the named size.

use std::io;
use std::path::Path;

use super::codec::{Codec, FORMAT, HEADER_BYTES, segment_name};
use super::files::stored_sum;
use super::format::WalFormat;
use super::options::Options;
use crate::error::{Error, ErrorKind, Result};
use crate::log::{Findings, Inspected, Place, Space};
use crate::scan::search::find_intact;
use crate::scan::{Scanned, Scanner, Verdict};
use crate::sidecar::{Intent, MarkUse};
use crate::storage::read_full;

/// Refuse a path without a log: no intact record, and no sidecar of ours. The user named the wrong
/// path, and opening for writing must not cut the content as a torn tail. Only a repair and
/// `recovery = "spec"` cut a torn first record.
pub(super) fn check_is_log(place: &Place, found: &mut Inspected<WalFormat>) -> Result<()> {
    let Findings { extent, verdict, data_end, .. } = &found.findings;
    let known = place.is_tail || found.settings.is_some() || found.findings.mark_is_ours();
    let nothing = extent.records == 0 && *data_end > extent.start && *verdict == Verdict::Torn;
    if known || !nothing {
        return Ok(());
    }
    let begun = is_first_append(place, found);
    if begun.map_err(|e| Error::io("read the log", &place.log, e).of(FORMAT))? {
        found.unproved = true;
        return Ok(());
    }
    let why = found.findings.damage.as_ref().map(|damage| damage.reason.clone());
    let why = why.unwrap_or_default();
    let message = format!(
        "not a log: it does not begin with a record of a write-ahead log, and nothing in .deedbook says that it is one: {why}"
    );
    Err(Error::new(ErrorKind::NotALog, message).of(FORMAT).at(&place.log).offset_at(extent.start))
}

/// Whether the files look like a crash in a first append: the begin of a record within the limit,
/// whose end lies beyond the files. A single file must have `wal` or `log` in its name, because any
/// file begins with some number. If even the header is incomplete, the name must end with `.wal`.
fn is_first_append(place: &Place, found: &Inspected<WalFormat>) -> io::Result<bool> {
    let (start, end) = (found.findings.extent.start, found.space.files_end);
    let mut header = [0; HEADER_BYTES as usize];
    let read = read_full(&*found.space.file, &mut header, start)?;
    let name = place.log.file_name().map(|name| name.to_string_lossy().to_lowercase());
    if place.single
        && !name.is_some_and(|name| ["wal", "log"].iter().any(|part| name.contains(part)))
    {
        return Ok(false);
    }
    if read < header.len() {
        return Ok(!place.single || place.log.extension().is_some_and(|name| name == "wal"));
    }
    let [.., a, b, c, d] = header;
    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
    Ok(length <= found.format.codec.record_bytes_max
        && length > end.saturating_sub(start + HEADER_BYTES))
}

/// Whether the intent was made for this log. The file, its first byte and its first record must be
/// the same, and the log must have the intended last record. If the log is to be emptied, the first
/// record may already be gone, or torn if it never was durable, but no other record can have come
/// in its place.
pub(super) fn is_ours(space: &Space, codec: Codec, intent: &Intent) -> io::Result<bool> {
    let Space { file, start, end, .. } = space;
    let within = (*start..=*end).contains(&intent.end);
    if intent.start != *start || !within || !intent.file.is_still(file.id()?) {
        return Ok(false);
    }
    if intent.end == *start {
        return Ok(match Scanner::of_frames(codec, *start, *end).next(&**file)? {
            Scanned::Record { frame, .. } => frame.crc == intent.first_sum,
            Scanned::Stop { .. } | Scanned::End => true,
        });
    }
    if intent.last_offset < *start || intent.last_offset >= intent.end {
        return Ok(false);
    }
    if stored_sum(&**file, *start)? != Some(intent.first_sum) {
        return Ok(false);
    }
    let mut scanner = Scanner::of_frames(codec, intent.last_offset, intent.end);
    let Scanned::Record { frame, .. } = scanner.next(&**file)? else { return Ok(false) };
    Ok(frame.crc == intent.last_sum && scanner.position() == intent.end)
}

/// A repair does not cut by a segment size that neither the sidecar nor the records prove: with a
/// wrong size the head would lie elsewhere in its segment, and durable records would look torn. The
/// place of segment 0 does not depend on the size.
pub(super) fn check_size_is_proved(
    found: &Inspected<WalFormat>,
    options: &Options,
    log: &Path,
) -> Result<()> {
    let Inspected { format, space, findings, .. } = found;
    let Some(segments) = space.files.segments() else { return Ok(()) };
    let (extent, bytes) = (findings.extent, format.layout.segment_bytes().unwrap_or(u64::MAX));
    let base = extent.start - extent.start % bytes;
    let known = found.settings.is_some() || findings.mark == MarkUse::Used;
    let cuts = space.files_end > extent.end || segments.has_orphans();
    if known || !cuts || base == 0 {
        return Ok(());
    }
    let name = segment_name(base / bytes);
    if options.layout.is_none() && extent.end - base <= bytes {
        let message = format!(
            "segment size unknown: by the files it is {bytes}, but the records of {name} end at byte \
             {} and do not go on in the next one; pass segment_bytes=",
            extent.end
        );
        return Err(Error::new(ErrorKind::InvalidArgument, message).at(log));
    }
    let fail = |e| Error::io("read the log", log, e);
    let (file, codec) = (&*space.file, format.codec);
    let mut at = base;
    while at < extent.start {
        let mut scanner = Scanner::of_frames(codec, at, space.files_end);
        if !matches!(scanner.next(file).map_err(fail)?, Scanned::Record { .. }) {
            let next = find_intact(file, &codec, at + 1, space.files_end).map_err(fail)?;
            at = next.unwrap_or(extent.start);
            continue;
        }
        let end = scanner.position();
        if end > extent.start {
            let message = format!(
                "segment size {bytes} is not the log's: with it a record of {name} lies from byte \
                 {at} to {end}, across the head, byte {}; pass segment_bytes=",
                extent.start
            );
            return Err(Error::new(ErrorKind::InvalidArgument, message).at(log));
        }
        at = end;
    }
    Ok(())
}
