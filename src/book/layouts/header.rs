//! The first bytes of a file: its layout, and the number of its first deed.

use std::io;
use std::path::Path;

use super::Layout;
use super::codec::Codec;
use super::packed::{HEADER_BYTES, encode_file_header, parse_file_header};
use crate::book::names::FORMAT;
use crate::book::slots::committed::{begins_at, read_slots};
use crate::book::slots::{DEEDS_AT, Slot, newest_first};
use crate::error::{Error, ErrorKind, Result};
use crate::ground::slice::{part, there, u64_at};
use crate::log::{Findings, Seal};
use crate::scan::framing::FramingExt as _;
use crate::scan::search::find_intact;
use crate::scan::{Damage, Scanned, Scanner, Verdict};
use crate::sidecar::Mark;
use crate::storage::{File, read_full, write_full};

/// A header as found.
#[derive(Clone, Debug)]
pub struct Header {
    /// Which layout follows.
    pub layout: Layout,
    /// Number of the first deed, 0 before the first save or where it is not there.
    pub first: u64,
    /// The slots, `None` for a damaged slot. Other layouts have none.
    pub slots: [Option<Slot>; 2],
    /// Damage in the rest.
    pub damage: Option<Damage>,
}

/// The header of `packed` and `padded`, as the seal of an open log: it says the number of the first deed.
#[derive(Clone, Copy, Debug)]
pub struct FirstEvent;

impl Seal for FirstEvent {
    fn begin(&self, file: &dyn File, first: u64) -> io::Result<()> {
        write_full(file, &encode_file_header(first), 0)
    }

    fn first_now(&self, file: &dyn File, _known: u64) -> Result<Option<u64>> {
        let mut header = [0; HEADER_BYTES as usize];
        let read = read_full(file, &mut header, 0).map_err(unreadable)?;
        match parse_file_header(part(&header, ..read))? {
            0 => Ok(None),
            first => Ok(Some(first)),
        }
    }
}

/// A reader's error at a look at the header of an empty log.
pub fn unreadable(error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot read the header: {error}"))
}

/// Read the header. A damaged header is an error unless an intact deed follows it.
pub fn read_header(
    file: &dyn File,
    log: &Path,
    mark: Option<&Mark>,
    deed_bytes_max: u64,
) -> Result<Header> {
    let fail = |e| Error::io("read the header", log, e).of(FORMAT);
    let mut header = [0; HEADER_BYTES as usize];
    let read = read_full(file, &mut header, 0).map_err(fail)?;
    if let Some(mark) = mark.filter(|mark| mark.records > 0 && read < header.len()) {
        return Err(lost_file(log, &format!("{read} bytes are left"), mark));
    }
    if let Some(header) = slots_header(file, mark, deed_bytes_max).map_err(fail)? {
        return Ok(header);
    }
    let parsed = parse_file_header(part(&header, ..read));
    let layout = layout_of_deeds(file, deed_bytes_max, parsed.is_ok()).map_err(fail)?;
    let codec = Codec::new(layout, deed_bytes_max);
    let of = |first, damage| Header { layout, first, slots: [None; 2], damage };
    match parsed {
        Ok(first) => Ok(of(first, None)),
        Err(e) if read == header.len() && first_is_intact(file, codec).map_err(fail)? => {
            let damage = in_header(HEADER_BYTES, e.offset().unwrap_or(0), e.message().into());
            Ok(of(there(u64_at(&header, 8)), Some(damage)))
        }
        Err(e) => Err(e.at(log)),
    }
}

/// The header of a log of the layout `slots`: by an intact slot, or by the deeds where both slots are
/// damaged.
fn slots_header(
    file: &dyn File,
    mark: Option<&Mark>,
    deed_bytes_max: u64,
) -> io::Result<Option<Header>> {
    let end = file.len()?;
    if end < DEEDS_AT {
        return Ok(None);
    }
    let slots = read_slots(file)?;
    let newest = newest_first(&slots).next();
    // A payload at byte 4096 of another layout may hold a slot, but no slot a deed at byte 16.
    let other = |layout| first_is_intact(file, Codec::new(layout, deed_bytes_max));
    let header = |first, damage| Header { layout: Layout::Slots, first, slots, damage };
    if let Some((_, slot)) = newest {
        let is_other = other(Layout::Packed)? || other(Layout::Padded)?;
        return Ok((!is_other).then(|| header(slot.fir.saturating_add(1), None)));
    }
    let records_at = mark.filter(|mark| mark.records > 0).map(|mark| mark.start);
    if records_at == Some(HEADER_BYTES) && first_fits(file, Layout::Packed, deed_bytes_max)? {
        // The mark and the first deed agree: no need to read byte 8192.
        return Ok(None);
    }
    let marked = mark.filter(|_| records_at == Some(DEEDS_AT));
    let codec = Codec::new(Layout::Slots, deed_bytes_max);
    let mut magic = [0; HEADER_BYTES as usize];
    read_full(file, &mut magic, 0)?;
    let is_book = marked.is_some() || parse_file_header(&magic).is_ok();
    if !is_book || !begins_at(file, codec, DEEDS_AT, end)? {
        return Ok(None);
    }
    if marked.is_none() && (other(Layout::Packed)? || other(Layout::Padded)?) {
        return Ok(None);
    }
    let reason = "both header slots are damaged".into();
    let first = marked.map_or(0, |mark| mark.first);
    Ok(Some(header(first, Some(in_header(DEEDS_AT, 0, reason)))))
}

/// Whether the deeds from byte 16 on are padded. An intact first deed shows the padding in a few
/// bytes. Otherwise search for the first intact deed.
fn layout_of_deeds(file: &dyn File, deed_bytes_max: u64, is_book: bool) -> io::Result<Layout> {
    let codec = |layout| Codec::new(layout, deed_bytes_max);
    if first_fits(file, Layout::Packed, deed_bytes_max)? {
        return Ok(Layout::Packed);
    }
    if first_is_intact(file, codec(Layout::Padded))? {
        return Ok(Layout::Padded);
    }
    let end = file.len()?;
    let has = |layout| -> io::Result<bool> {
        Ok(find_intact(file, &codec(layout), HEADER_BYTES, end)?.is_some())
    };
    let padded = is_book && !has(Layout::Packed)? && has(Layout::Padded)?;
    Ok(if padded { Layout::Padded } else { Layout::Packed })
}

/// Whether the lengths around the deed at byte 16 agree, read as those of a layout.
fn first_fits(file: &dyn File, layout: Layout, deed_bytes_max: u64) -> io::Result<bool> {
    let codec = Codec::new(layout, deed_bytes_max);
    let (mut head, mut trailer) = ([0; 8], [0; 8]);
    read_full(file, &mut head, HEADER_BYTES)?;
    let trailer_at = codec.claimed_len(&head).and_then(|len| (HEADER_BYTES - 8).checked_add(len));
    let Some(trailer_at) = trailer_at else { return Ok(false) };
    let read = read_full(file, &mut trailer, trailer_at)?;
    Ok(read == 8 && head == trailer)
}

fn first_is_intact(file: &dyn File, codec: Codec) -> io::Result<bool> {
    let mut scanner = Scanner::of_frames(codec, codec.layout.header_bytes(), file.len()?);
    Ok(matches!(scanner.next(file)?, Scanned::Record { .. }))
}

/// Bytes after the header without a single deed, and without a mark, are no book.
pub fn refuse_other_bytes(log: &Path, findings: &Findings) -> Result<()> {
    if findings.verdict == Verdict::Torn && findings.data_end > HEADER_BYTES {
        let why = findings.damage.as_ref().map(|damage| damage.reason.clone()).unwrap_or_default();
        let message =
            format!("no deed at byte {HEADER_BYTES}; tried packed ({why}), padded, slots");
        let error = Error::new(ErrorKind::NotALog, message).of(FORMAT).at(log);
        return Err(error.offset_at(HEADER_BYTES));
    }
    Ok(())
}

/// The error of a missing log whose mark counts deeds.
pub fn lost_file(log: &Path, what: &str, mark: &Mark) -> Error {
    let message = format!(
        "lost acknowledged records: {what}, but {} deeds up to byte {} were acknowledged; if the log \
         was removed or a backup restored on purpose, remove the log's .deedbook",
        mark.records, mark.end
    );
    Error::new(ErrorKind::LostRecords, message).of(FORMAT).at(log).offset_at(0)
}

/// Damage in the header, before the first deed at byte `start`.
pub fn in_header(start: u64, offset: u64, reason: String) -> Damage {
    Damage {
        offset,
        end: start,
        reason,
        next_intact: Some(start),
        next_proved: true,
        ..Damage::default()
    }
}
