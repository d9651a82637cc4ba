//! Looking at the files of a book: header, end and numbers. Nothing is changed.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::epoch::{contradicts_name, demanded_by_name, epoch_of_empty};
use super::format::BookFormat;
use super::layouts::Layout;
use super::layouts::codec::Codec;
use super::layouts::header::{
    FirstEvent, Header, in_header, lost_file, read_header, refuse_other_bytes,
};
use super::layouts::packed::{FIRST_AT, HEADER_BYTES};
use super::names::FORMAT;
use super::options::Options;
use super::slots::Slot;
use super::slots::committed::{Followed, begins_at};
use super::slots::find_end::{FoundBySlots, find_by_slots};
use super::slots::writer::SlotWriter;
use crate::error::{Error, ErrorKind, Result};
use crate::log::{Extent, Findings, Inspected, Known, Place, Seal, Space, find_end};
use crate::mode::Depth;
use crate::scan::{Damage, Verdict};
use crate::sidecar::{Mark, MarkUse, Settings, refuse_other_format};
use crate::storage::{Access, File};

/// Look at the files of a book, to the depth asked for.
pub fn inspect(
    options: &Options,
    place: &Place,
    access: Access,
    depth: Depth,
) -> Result<Inspected<BookFormat>> {
    let log = &*place.log;
    let fail = |e: io::Error| Error::io("read the log", log, e).of(FORMAT);
    let opened = open_file(options, log, access).and_then(|file| {
        // An empty file is a log that is still to be created.
        match access == Access::Write && file.is_empty().map_err(fail)? {
            true => Err(Error::io("open the log", log, io::ErrorKind::NotFound.into()).of(FORMAT)),
            false => Ok(file),
        }
    });
    let file: Arc<dyn File> = match opened {
        Err(e) if e.kind() == ErrorKind::Missing && !place.is_tail => {
            refuse_other_format(&*options.storage, &place.dir, FORMAT)?;
            let mark = load_mark(options, place)?.0.filter(|mark| mark.records > 0);
            return Err(mark.map_or(e, |mark| lost_file(log, "the log is missing or empty", &mark)));
        }
        opened => Arc::from(opened?),
    };
    let settings = Settings::load(&*options.storage, &place.sidecar, FORMAT)?;
    let kept = settings.map_or(0, |settings| settings.record_bytes_max);
    let deed_bytes_max = options.deed_bytes_max.max(kept);
    // Load the mark before the file's length: the file must then have the mark's deeds, even while
    // a writer appends.
    let (mark, damaged_mark) = load_mark(options, place)?;
    let end = file.len().map_err(fail)?;
    let inspected = |format, space, seal, findings, mark| Inspected {
        settings,
        seal,
        ..Inspected::new(format, space, findings, mark)
    };
    if place.is_tail {
        let format =
            BookFormat::reading(tail_layout(&*file, deed_bytes_max).map_err(fail)?, deed_bytes_max);
        let space = Space::new(file, 0, end);
        let known = Known::unmarked(None, Depth::Full);
        let findings = find_end(&format, &space, known).map_err(fail)?;
        let findings = Findings { numbered: false, ..findings };
        let seal = seal_of(&format, Followed::default(), [None; 2], None);
        return Ok(inspected(format, space, seal, findings, None));
    }
    let header = read_header(&*file, log, mark.as_ref(), deed_bytes_max)?;
    let format = BookFormat::reading(header.layout, deed_bytes_max);
    let first = Some(header.first).filter(|&first| first > 0);
    let known = Known { mark, damaged_mark, first, is_ours: false, depth };
    let followed = Followed::default();
    let (space, mut findings, slot) = match header.layout {
        Layout::Packed | Layout::Padded => {
            let space = Space::new(file, HEADER_BYTES, end);
            let findings = find_end(&format, &space, known).map_err(fail)?;
            (space, findings, None)
        }
        Layout::Slots => {
            let found = find_by_slots(&format, &file, &header.slots, known, &followed);
            let FoundBySlots { space, findings, slot } = found.map_err(fail)?;
            (space, findings, slot)
        }
    };
    let mark = mark.filter(|_| findings.mark_is_ours());
    number(&mut findings, &header, mark.as_ref());
    if let Some(damage) = contradicts_name(&place.dir, header.layout, &findings) {
        // All readers number deeds as the error of a refused opening does.
        let named = demanded_by_name(&place.dir, header.layout);
        if let Some(named) = named.filter(|_| mark.is_none_or(|mark| mark.records == 0)) {
            findings.renumber(named.saturating_add(1));
        }
        findings.note_leading(damage);
    }
    let is_slots = header.layout == Layout::Slots;
    if !is_slots && mark.is_none() && findings.extent.records == 0 && depth != Depth::Begin {
        refuse_other_bytes(log, &findings)?;
    }
    if findings.extent.records == 0 && findings.verdict != Verdict::Corrupt {
        let (dir, first) = (&*place.dir, header.first);
        let epoch = epoch_of_empty(dir, header.layout, options, first, mark.as_ref());
        findings.extent.first = epoch.saturating_add(1);
    }
    let seal = seal_of(&format, followed, header.slots, slot);
    Ok(inspected(format, space, seal, findings, mark))
}

/// The seal of a book: the header or the slots.
fn seal_of(
    format: &BookFormat,
    followed: Followed,
    slots: [Option<Slot>; 2],
    at: Option<usize>,
) -> Arc<dyn Seal> {
    match format.layout() {
        Layout::Packed | Layout::Padded => Arc::new(FirstEvent),
        Layout::Slots => Arc::new(SlotWriter::new(format.codec, followed, slots, at)),
    }
}

/// The layout of a saved tail: the first layout with an intact deed at the tail's beginning.
fn tail_layout(file: &dyn File, deed_bytes_max: u64) -> io::Result<Layout> {
    let end = file.len()?;
    for layout in [Layout::Packed, Layout::Padded, Layout::Slots] {
        if begins_at(file, Codec::new(layout, deed_bytes_max), 0, end)? {
            return Ok(layout);
        }
    }
    Ok(Layout::Packed)
}

/// The number of the first deed, from header and mark: all readers share this rule.
fn number(findings: &mut Findings, header: &Header, mark: Option<&Mark>) {
    let records = findings.extent.records;
    let marked = mark.filter(|mark| mark.records > 0).map(|mark| mark.first);
    let start = findings.extent.start;
    if let Some(damage) = &header.damage {
        findings.note_leading(damage.clone());
    }
    if let Some(first) = marked {
        if header.damage.is_none() && header.first != first {
            let reason = format!(
                "the first event is {} by the header and {first} by the mark",
                header.first
            );
            findings.note_leading(in_header(start, FIRST_AT, reason));
        }
        findings.renumber(first);
        return;
    }
    let is_open = findings.mark == MarkUse::Used && mark.is_some_and(Mark::is_open);
    if header.first == 0 && header.damage.is_none() && records > 0 && is_open {
        // The sector of the header never reached the disk, and the first save writes the header
        // first: no deed here was acknowledged.
        let start = findings.extent.start;
        findings.extent = Extent::empty(0, start);
        findings.headless = true;
        findings.blocks.clear();
        findings.verdict = Verdict::Torn;
        findings.damage = Some(Damage {
            offset: start,
            end: findings.file_end,
            reason: "the first deed: no first event in the header".into(),
            ..Damage::default()
        });
        return;
    }
    let damaged = records > 0 || findings.verdict == Verdict::Corrupt;
    if header.first == 0 && header.damage.is_some() {
        findings.numbered = false;
    } else if header.first == 0 && damaged {
        findings.numbered = false;
        let reason = "the first event is 0 by the header, but deeds follow it";
        findings.note_leading(in_header(start, FIRST_AT, reason.into()));
    } else if header.first.checked_add(records).is_none() {
        findings.numbered = false;
        let reason = format!(
            "the first event is {}, and {records} deeds from there on pass 2^64",
            header.first
        );
        findings.note_leading(in_header(start, FIRST_AT, reason));
    }
}

/// Open the log; a directory in its place is no log.
fn open_file(options: &Options, log: &Path, access: Access) -> Result<Box<dyn File>> {
    match options.storage.open(log, access) {
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
            Err(Error::new(ErrorKind::NotALog, e.to_string()).of(FORMAT).at(log))
        }
        Err(e) => {
            let doing = match access {
                Access::Read => "open the log",
                Access::Write => "open the log for writing",
            };
            Err(Error::io(doing, log, e).of(FORMAT))
        }
        Ok(file) => Ok(file),
    }
}

/// The log's mark, and whether an unreadable mark exists.
fn load_mark(options: &Options, place: &Place) -> Result<(Option<Mark>, bool)> {
    let (mark, damaged) = place.load_mark(&*options.storage)?;
    // Older marks do not say where a book begins, which is always the same.
    let start = |mark: Mark| if mark.start == 0 { HEADER_BYTES } else { mark.start };
    Ok((mark.map(|mark| Mark { start: start(mark), ..mark }), damaged))
}
