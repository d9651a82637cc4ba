//! Book as a format of the engine: which files, what their header says, which number is first.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::epoch::{check_epoch, contradicts_name, epoch_in_name, epoch_of_empty};
use super::header::{Header, detect_other_layouts, in_header, lost_file, read_header};
use super::options::Options;
use super::packed::{
    FIRST_AT, FORMAT, Frame, HEADER_BYTES, LOG_NAME, MUG_BYTES, Packed, encode_file_header,
    parse_file_header,
};
use super::{Deed, DeedRef};
use crate::error::{Error, ErrorKind, Result};
use crate::log::extent::Extent;
use crate::log::find_end::{Findings, Known, find_end};
use crate::log::format::{Format, Inspected};
use crate::log::framing::Frame as _;
use crate::log::options::Common;
use crate::log::space::{Place, Space, base_of_tail};
use crate::mode::{Depth, Mode};
use crate::scan::{Bad, Damage, Stop, Verdict};
use crate::sidecar::{LoadedMark, Mark, MarkFile, MarkUse, Settings, refuse_other_format};
use crate::slice::part;
use crate::storage::{Access, File, read_full, replace};

const GONE: &str = "the log is missing or empty";

/// The layout `packed` of one log.
#[derive(Clone, Copy, Debug)]
pub struct BookFormat {
    codec: Packed,
}

impl Format for BookFormat {
    const NAME: &'static str = FORMAT;
    const NOUN: &'static str = "deed";
    const NUMBERED: bool = true;
    const HEADER_BYTES: u64 = HEADER_BYTES;
    type Framing = Packed;
    type Options = Options;
    type More = ();
    type Ref<'a> = DeedRef<'a>;
    type Owned = Deed;
    #[cfg(feature = "arrow")]
    type Column = super::columns::Column;

    fn framing(&self) -> Packed {
        self.codec
    }

    fn appending(&self, options: &Options) -> Packed {
        Packed::new(options.deed_bytes_max)
    }

    fn common(options: &Options) -> Result<Common> {
        options.check()?;
        Ok(Common {
            durability: options.durability,
            recovery: options.recovery,
            file_mode: options.file_mode,
            slow_sync: options.slow_sync,
            storage: options.storage.clone(),
        })
    }

    fn settings(&self) -> Settings {
        let record_bytes_max = self.codec.deed_bytes_max;
        Settings { format: FORMAT, segment_bytes: None, record_bytes_max }
    }

    #[inline]
    fn show(ordinal: Option<u64>, offset: u64, frame: Frame, record: &[u8]) -> DeedRef<'_> {
        DeedRef { event: ordinal, offset, mug: frame.mug, jam: frame.payload(record) }
    }

    fn own(deed: DeedRef<'_>) -> Deed {
        Deed { event: deed.event, mug: deed.mug, jam: deed.jam.to_vec() }
    }

    fn name_of(ordinal: Option<u64>, offset: u64) -> String {
        match ordinal {
            Some(event) => format!("deed {event}"),
            None if offset == HEADER_BYTES => "the first deed".into(),
            None => format!("deed at byte {offset}"),
        }
    }

    fn bounds_of(extent: &Extent) -> (u64, u64) {
        (extent.first, extent.next().saturating_sub(1))
    }

    fn place(options: &Options, path: &Path) -> Result<Place> {
        let storage = &*options.storage;
        if base_of_tail(path) == Some(LOG_NAME) && !storage.is_dir(path) {
            return Ok(Place::tail(path));
        }
        let names_log = path.file_name().is_some_and(|name| name == LOG_NAME);
        let dir = match path.parent() {
            Some(parent) if names_log && !storage.is_dir(path) => parent,
            _ => path,
        };
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        Ok(Place::file_in(dir, LOG_NAME))
    }

    fn prepare(options: &Options, place: &Place, mode: Mode) -> Result<()> {
        let log = &*place.log;
        if let (Some(asked), Some(named)) = (options.epoch, epoch_in_name(&place.dir)) {
            // What was written under another epoch could not be opened again.
            if asked != named {
                let message =
                    format!("epoch {asked} asked for, but the directory's name says {named}");
                return Err(Error::new(ErrorKind::Contiguity, message).at(log));
            }
        }
        match open_file(options, log, Access::Read) {
            Err(e) if e.kind() == ErrorKind::Missing => Ok(()),
            Ok(_) if mode == Mode::Create => {
                Err(Error::io("create the log", log, io::ErrorKind::AlreadyExists.into()))
            }
            Ok(file) if file.len().map_err(|e| Error::io("open the log", log, e))? > 0 => {
                let mark = load_mark(options, place)?.0;
                let header = read_header(&*file, log, mark.as_ref(), Packed::new(u64::MAX >> 1));
                header.map(drop)
            }
            Ok(_) => Ok(()),
            Err(e) => Err(e),
        }
    }

    fn exists(options: &Options, place: &Place) -> Result<bool> {
        match open_file(options, &place.log, Access::Read) {
            Ok(file) => {
                Ok(!file.is_empty().map_err(|e| Error::io("open the log", &place.log, e))?)
            }
            Err(e) if e.kind() == ErrorKind::Missing => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Only if no mark says that there was one.
    fn create(options: &Options, place: &Place) -> Result<()> {
        if let Some(mark) = load_mark(options, place)?.0.filter(|mark| mark.records > 0) {
            return Err(lost_file(&place.log, GONE, &mark));
        }
        replace(&*options.storage, &place.log, &encode_file_header(0), options.file_mode)
            .map_err(|e| Error::io("create the log", &place.log, e))
    }

    fn inspect(
        options: &Options,
        place: &Place,
        access: Access,
        depth: Depth,
    ) -> Result<Inspected<Self>> {
        let log = &*place.log;
        let fail = |e: io::Error| Error::io("read the log", log, e).of(FORMAT);
        let file: Arc<dyn File> = match open_file(options, log, access) {
            Err(e) if e.kind() == ErrorKind::Missing && !place.is_tail => {
                refuse_other_format(&*options.storage, &place.dir, FORMAT)?;
                let mark = load_mark(options, place)?.0.filter(|mark| mark.records > 0);
                return Err(mark.map_or(e, |mark| lost_file(log, GONE, &mark)));
            }
            opened => Arc::from(opened?),
        };
        let settings = Settings::load(&*options.storage, &place.sidecar, FORMAT)?;
        let kept = settings.map_or(0, |settings| settings.record_bytes_max);
        let codec = Packed::new(options.deed_bytes_max.max(kept));
        let format = Self { codec };
        // The mark before the file's length: what it vouches for must then be there, also beside a
        // writer.
        let (mark, damaged_mark) = match place.is_tail {
            true => (None, false),
            false => load_mark(options, place)?,
        };
        let end = file.len().map_err(fail)?;
        let inspected = |space, findings, mark| Inspected {
            format,
            space,
            findings,
            mark,
            settings,
            mended: Vec::new(),
            more: (),
        };
        if place.is_tail {
            let space = Space::new(file, 0, end);
            let known = Known { mark: None, damaged_mark: false, first: None, depth: Depth::Full };
            let findings = find_end(&format, &space, known).map_err(fail)?;
            let findings = Findings { numbered: false, ..findings };
            return Ok(inspected(space, findings, None));
        }
        let header = read_header(&*file, log, mark.as_ref(), codec)?;
        let space = Space::new(file, HEADER_BYTES, end);
        let first = Some(header.first).filter(|&first| first > 0);
        let known = Known { mark, damaged_mark, first, depth };
        let mut findings = find_end(&format, &space, known).map_err(fail)?;
        let mark = mark.filter(|_| findings.mark_is_ours());
        number(&mut findings, &header, mark.as_ref());
        if let Some(damage) = contradicts_name(&place.dir, &findings) {
            findings.verdict = Verdict::Corrupt;
            findings.damage = Some(damage);
        }
        if mark.is_none() && findings.extent.records == 0 && depth != Depth::Begin {
            detect_other_layouts(&*space.file, log, &findings)?;
        }
        if findings.extent.records == 0 && findings.verdict != Verdict::Corrupt {
            let epoch = epoch_of_empty(&place.dir, options, header.first, mark.as_ref());
            findings.extent.first = epoch.saturating_add(1);
        }
        Ok(inspected(space, findings, mark))
    }

    fn check_found(options: &Options, place: &Place, found: &Inspected<Self>) -> Result<()> {
        check_epoch(options, &found.findings).map_err(|e| e.at(&place.log))
    }

    fn begin(&self, file: &dyn File, first: u64) -> io::Result<()> {
        crate::storage::write_full(file, &encode_file_header(first), 0)
    }

    /// By its lengths, which must agree.
    fn is_beyond_limit(
        &self,
        file: &dyn File,
        at: u64,
        why: Option<&Stop>,
        end: u64,
    ) -> io::Result<bool> {
        let Some(Stop::Bad(Bad { what: "length", against: "limit", found, .. })) = why else {
            return Ok(false);
        };
        let whole = found.checked_add(super::packed::FRAMING_BYTES);
        let to = whole.and_then(|len| at.checked_add(len)).filter(|&to| to <= end);
        let Some(trailer_at) = to.map(|to| to - 8) else { return Ok(false) };
        let mut trailer = [0; 8];
        let read = read_full(file, &mut trailer, trailer_at)?;
        Ok(read == 8 && u64::from_le_bytes(trailer) == *found)
    }

    fn first_now(&self, file: &Arc<dyn File>, known: u64) -> Result<Option<u64>> {
        let mut header = [0; HEADER_BYTES as usize];
        let read = read_full(&**file, &mut header, 0)
            .map_err(|e| Error::new(ErrorKind::Io, format!("cannot read the header: {e}")))?;
        match parse_file_header(part(&header, ..read))? {
            0 => Ok(None),
            first => Ok(Some(first).or(Some(known))),
        }
    }
}

/// The number of the first deed, from header and mark: one rule for all that read.
fn number(findings: &mut Findings, header: &Header, mark: Option<&Mark>) {
    let records = findings.extent.records;
    let marked = mark.filter(|mark| mark.records > 0).map(|mark| mark.first);
    let mut corrupt = |damage: Damage| {
        findings.verdict = Verdict::Corrupt;
        findings.damage = Some(damage);
    };
    if let Some(damage) = &header.damage {
        corrupt(damage.clone());
    }
    if let Some(first) = marked {
        if header.damage.is_none() && header.first != first {
            let reason = format!(
                "the first event is {} by the header and {first} by the mark",
                header.first
            );
            corrupt(in_header(FIRST_AT, reason));
        }
        findings.extent.first = first;
        return;
    }
    if header.first == 0 && records > 0 && findings.mark == MarkUse::Used {
        // The sector of the header never reached the disk, and the first save writes it first: none
        // of this was acknowledged.
        let start = findings.extent.start;
        findings.extent = Extent::empty(0, start);
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
    if header.first == 0 && damaged {
        findings.numbered = false;
        let reason = "the first event is 0 by the header, but deeds follow it";
        findings.verdict = Verdict::Corrupt;
        findings.damage = Some(in_header(FIRST_AT, reason.into()));
    } else if header.first.checked_add(records).is_none() {
        findings.numbered = false;
        let reason = format!(
            "the first event is {}, and {records} deeds from there on pass 2^64",
            header.first
        );
        findings.verdict = Verdict::Corrupt;
        findings.damage = Some(in_header(FIRST_AT, reason));
    }
}

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

/// The mark beside a log, and whether there is one that cannot be read.
fn load_mark(options: &Options, place: &Place) -> Result<(Option<Mark>, bool)> {
    let loaded = MarkFile::load(&*options.storage, &place.sidecar)
        .map_err(|e| Error::io("read the mark", &place.log, e).of(FORMAT))?;
    Ok(match loaded {
        // Older marks do not say where a book begins, which is always the same.
        LoadedMark::Mark(mark) => {
            let start = if mark.start == 0 { HEADER_BYTES } else { mark.start };
            (Some(Mark { start, ..mark }), false)
        }
        LoadedMark::Missing => (None, false),
        LoadedMark::Damaged => (None, true),
    })
}

const _: () = assert!(MUG_BYTES == 4);
