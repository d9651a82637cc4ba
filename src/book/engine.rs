//! Book for the engine: the implementation of [`Format`].

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::deed::{Deed, DeedRef};
use super::epoch::{check_epoch, demanded_by_name, epoch_of_empty};
use super::format::BookFormat;
use super::inspect::{GONE, inspect, load_mark, open_file};
use super::layouts::codec::{Codec, Frame};
use super::layouts::header::{lost_file, read_header};
use super::layouts::packed::{HEADER_BYTES, encode_file_header, parse_file_header};
use super::layouts::{Layout, refuse_padded};
use super::names::{FORMAT, LOG_NAME};
use super::options::Options;
use super::slots::committed::{end_by_slots, read_slots, sum_more};
use super::slots::{encode_empty, newest_first};
use crate::error::{Error, ErrorKind, Result};
use crate::lines::Locked;
use crate::log::extent::Extent;
use crate::log::format::{Format, Inspected};
use crate::log::framing::Frame as _;
use crate::log::options::Common;
use crate::log::space::{Place, base_of_tail};
use crate::mode::{Depth, Mode};
use crate::sidecar::Settings;
use crate::slice::part;
use crate::storage::{Access, File, read_full, replace, write_full};

impl Format for BookFormat {
    const NAME: &'static str = FORMAT;
    const NOUN: &'static str = "deed";
    const LIMIT: &'static str = "deed_bytes_max";
    const NUMBERED: bool = true;
    type Framing = Codec;
    type Options = Options;
    type More = ();
    type Ref<'a> = DeedRef<'a>;
    type Owned = Deed;
    #[cfg(feature = "arrow")]
    type Column = super::columns::Column;

    fn framing(&self) -> Codec {
        self.codec
    }

    fn appending(&self, options: &Options) -> Codec {
        Codec::new(self.layout(), options.deed_bytes_max)
    }

    fn common(options: &Options) -> Result<Common> {
        options.common()
    }

    fn settings(&self) -> Settings {
        let record_bytes_max = self.codec.deed_bytes_max;
        Settings { format: FORMAT, segment_bytes: None, record_bytes_max }
    }

    #[inline]
    fn show(ordinal: Option<u64>, offset: u64, frame: Frame, record: &[u8]) -> DeedRef<'_> {
        DeedRef {
            event: ordinal,
            offset,
            mug: frame.mug,
            jam: frame.payload(record),
            framed_len: frame.len(),
        }
    }

    #[inline]
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
        // What was written under another epoch could not be opened again.
        let check_asked = |layout| match (options.epoch, demanded_by_name(&place.dir, layout)) {
            (Some(asked), Some(named)) if asked != named => {
                let message =
                    format!("epoch {asked} asked for, but the directory's name says {named}");
                Err(Error::new(ErrorKind::Contiguity, message).at(log))
            }
            _ => Ok(()),
        };
        match open_file(options, log, Access::Read) {
            Err(e) if e.kind() == ErrorKind::Missing => {
                check_asked(options.layout.unwrap_or_default())
            }
            Ok(_) if mode == Mode::Create => {
                Err(Error::io("create the log", log, io::ErrorKind::AlreadyExists.into()))
            }
            Ok(file) if file.len().map_err(|e| Error::io("open the log", log, e))? > 0 => {
                let mark = load_mark(options, place)?.0;
                let header = read_header(&*file, log, mark.as_ref(), u64::MAX >> 1)?;
                if header.layout == Layout::Padded {
                    let message = "layout padded is only read: convert makes a copy to append to";
                    return Err(Error::new(ErrorKind::Unsupported, message).at(log));
                }
                check_layout(options, header.layout, log)?;
                check_asked(header.layout)
            }
            Ok(_) => check_asked(options.layout.unwrap_or_default()),
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
        let layout = options.layout.unwrap_or_default();
        refuse_padded(layout, &place.log)?;
        let file = match layout {
            Layout::Packed | Layout::Padded => encode_file_header(0).to_vec(),
            Layout::Slots => encode_empty(epoch_of_empty(&place.dir, layout, options, 0, None)),
        };
        replace(&*options.storage, &place.log, &file, options.file_mode)
            .map_err(|e| Error::io("create the log", &place.log, e))
    }

    fn inspect(
        options: &Options,
        place: &Place,
        access: Access,
        depth: Depth,
    ) -> Result<Inspected<Self>> {
        inspect(options, place, access, depth)
    }

    fn check_found(options: &Options, place: &Place, found: &Inspected<Self>) -> Result<()> {
        check_layout(options, found.format.layout(), &place.log)?;
        check_epoch(options, &found.findings).map_err(|e| e.at(&place.log))
    }

    fn begin(&self, file: &dyn File, first: u64) -> io::Result<()> {
        match self.layout() {
            Layout::Packed | Layout::Padded => write_full(file, &encode_file_header(first), 0),
            // Its slots say so, with the deeds.
            Layout::Slots => Ok(()),
        }
    }

    /// Not in `slots`: the reference implementation takes zeros after the last deed for damage.
    fn reserves_space(&self) -> bool {
        self.layout() != Layout::Slots
    }

    /// A first batch that is not there is then no loss.
    fn proves_empty(&self) -> bool {
        self.layout() == Layout::Slots
    }

    fn turn(&self) -> Option<Locked<'_, ()>> {
        self.slots.as_ref().map(|slots| slots.turn())
    }

    fn cover(
        &self,
        file: &dyn File,
        from: u64,
        extent: &Extent,
        written: Option<&[u8]>,
    ) -> io::Result<()> {
        match &self.slots {
            Some(slots) => slots.cover(file, from, extent, written),
            None => Ok(()),
        }
    }

    fn is_sealed(&self, extent: &Extent) -> bool {
        self.slots.as_ref().is_none_or(|slots| slots.is_sealed(extent))
    }

    fn seal(&self, file: &dyn File, extent: &Extent) -> io::Result<()> {
        match &self.slots {
            Some(slots) => slots.seal(file, extent),
            None => Ok(()),
        }
    }

    fn block_sum(&self, file: &dyn File, block: Range<u64>) -> io::Result<Option<u32>> {
        match self.layout() {
            Layout::Slots => sum_more(file, 0, block.start, block.end).map(Some),
            Layout::Packed | Layout::Padded => Ok(None),
        }
    }

    fn commit(&self, file: &dyn File, _upto: &Extent) -> io::Result<()> {
        file.sync_data()?;
        if let Some(slots) = &self.slots {
            slots.synced();
        }
        Ok(())
    }

    fn end_now(&self, file: &dyn File, known: &Extent, there: u64) -> io::Result<u64> {
        match self.layout() {
            Layout::Packed | Layout::Padded => Ok(there),
            Layout::Slots => end_by_slots(file, self.codec, known, there, &self.followed),
        }
    }

    /// By its lengths, which must agree.
    fn is_beyond_limit(&self, file: &dyn File, at: u64, len: u64, end: u64) -> io::Result<bool> {
        let whole = len.checked_add(self.layout().framing_bytes());
        let to = whole.and_then(|len| at.checked_add(len)).filter(|&to| to <= end);
        let Some(trailer_at) = to.map(|to| to - 8) else { return Ok(false) };
        let mut trailer = [0; 8];
        let read = read_full(file, &mut trailer, trailer_at)?;
        Ok(read == 8 && u64::from_le_bytes(trailer) == len)
    }

    fn first_now(&self, file: &Arc<dyn File>, known: u64) -> Result<Option<u64>> {
        let fail = |e| Error::new(ErrorKind::Io, format!("cannot read the header: {e}"));
        if self.layout() == Layout::Slots {
            let slots = read_slots(&**file).map_err(fail)?;
            let newest = newest_first(&slots).next().filter(|(_, slot)| slot.records() > 0);
            return Ok(newest.map(|(_, slot)| slot.fir.saturating_add(1)));
        }
        let mut header = [0; HEADER_BYTES as usize];
        let read = read_full(&**file, &mut header, 0).map_err(fail)?;
        match parse_file_header(part(&header, ..read))? {
            0 => Ok(None),
            first => Ok(Some(first).or(Some(known))),
        }
    }
}

/// Refuse a layout asked for that is not the log's.
fn check_layout(options: &Options, layout: Layout, log: &Path) -> Result<()> {
    match options.layout {
        Some(asked) if asked != layout => {
            let (asked, has) = (asked.name(), layout.name());
            let message =
                format!("layout {asked} asked for, but the log has {has}: convert makes a copy");
            Err(Error::new(ErrorKind::InvalidArgument, message).of(FORMAT).at(log))
        }
        _ => Ok(()),
    }
}
