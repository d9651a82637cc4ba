//! Book for the engine: the implementation of [`Format`].

use std::io;
use std::path::Path;

use super::deed::Deed;
use super::epoch::{check_epoch, check_named, epoch_of_empty};
use super::format::BookFormat;
use super::inspect::inspect;
use super::layouts::codec::{Codec, Frame};
use super::layouts::packed::{HEADER_BYTES, encode_file_header};
use super::layouts::{Layout, refuse_padded};
use super::names::{FORMAT, LOG_NAME};
use super::options::Options;
use super::slots::encode_empty;
use crate::error::{Error, ErrorKind, Result};
#[cfg(feature = "arrow")]
use crate::log::{Column, Value};
use crate::log::{Common, Format, Inspected, Place, base_of_tail};
use crate::mode::Depth;
use crate::scan::framing::Frame as _;
use crate::sidecar::Settings;
use crate::storage::{Access, File, read_full};

impl Format for BookFormat {
    const NAME: &'static str = FORMAT;
    const NOUN: &'static str = "deed";
    const LIMIT: &'static str = "deed_bytes_max";
    const NUMBERED: bool = true;
    type Framing = Codec;
    type Options = Options;
    type Ref<'a> = Deed<&'a [u8]>;
    type Owned = Deed;
    #[cfg(feature = "arrow")]
    const COLUMNS: &'static [Column] = &[
        ("event", Value::Ordinal),
        ("mug", Value::Tag),
        ("jam", Value::Payload),
        ("payload", Value::Payload),
        ("offset", Value::Offset),
        ("length", Value::Length),
    ];
    #[cfg(feature = "arrow")]
    const DEFAULT_COLUMNS: &'static [&'static str] = &["event", "mug", "jam"];

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
    fn show(ordinal: Option<u64>, offset: u64, frame: Frame, record: &[u8]) -> Deed<&[u8]> {
        Deed { event: ordinal, offset, mug: frame.mug, jam: frame.payload(record) }
    }

    #[inline]
    fn own(deed: Deed<&[u8]>) -> Deed {
        deed.into_owned()
    }

    fn name_of(ordinal: Option<u64>, offset: u64) -> String {
        match ordinal {
            Some(event) => format!("deed {event}"),
            None if offset == HEADER_BYTES => "the first deed".into(),
            None => format!("deed at byte {offset}"),
        }
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

    fn create(options: &Options, place: &Place) -> Result<()> {
        let layout = options.layout.unwrap_or_default();
        refuse_padded(layout, &place.log)?;
        let file = match layout {
            Layout::Packed | Layout::Padded => encode_file_header(0).to_vec(),
            Layout::Slots => encode_empty(epoch_of_empty(&place.dir, layout, options, 0, None)),
        };
        place.create(&*options.storage, &file, options.file_mode)
    }

    fn inspect(
        options: &Options,
        place: &Place,
        access: Access,
        depth: Depth,
    ) -> Result<Inspected<Self>> {
        inspect(options, place, access, depth)
    }

    fn check_found(
        options: &Options,
        place: &Place,
        found: Option<&Inspected<Self>>,
        access: Access,
    ) -> Result<()> {
        let log = &*place.log;
        let layout =
            found.map_or(options.layout.unwrap_or_default(), |found| found.format.layout());
        let is_padded = found.is_some() && layout == Layout::Padded;
        if access == Access::Write && is_padded {
            let message = "layout padded is only read: convert makes a copy to append to";
            return Err(Error::new(ErrorKind::Unsupported, message).at(log));
        }
        check_layout(options, layout, log)?;
        if access == Access::Write {
            // A deed under another epoch could not be opened again.
            check_named(options, &place.dir, layout).map_err(|e| e.at(log))?;
        }
        match found {
            Some(found) => check_epoch(options, &found.findings).map_err(|e| e.at(log)),
            None => Ok(()),
        }
    }

    /// By the lengths, which must agree.
    fn is_beyond_limit(&self, file: &dyn File, at: u64, len: u64, end: u64) -> io::Result<bool> {
        let whole = len.checked_add(self.layout().framing_bytes());
        let to = whole.and_then(|len| at.checked_add(len)).filter(|&to| to <= end);
        let Some(trailer_at) = to.map(|to| to - 8) else { return Ok(false) };
        let mut trailer = [0; 8];
        let read = read_full(file, &mut trailer, trailer_at)?;
        Ok(read == 8 && u64::from_le_bytes(trailer) == len)
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
