//! The WAL for the engine: the implementation of [`Format`].

use std::io;
use std::path::Path;

use super::codec::{Codec, FORMAT, Frame, HEADER_BYTES, Lsn, RECORD_BYTES_MAX, segment_name};
use super::files::{indices, names_segment};
use super::format::WalFormat;
use super::inspect::Look;
use super::options::{Layout, Options};
use super::proof::check_size_is_proved;
use super::record::Record;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::checksum::crc32c_more;
#[cfg(feature = "arrow")]
use crate::log::{Column, Value};
use crate::log::{Common, Done, Format, Inspected, Place, Shared, base_of_tail};
use crate::mode::Depth;
use crate::scan::framing::Frame as _;
use crate::sidecar::Settings;
use crate::storage::segmented::head::Head;
use crate::storage::{Access, File, read_full, replace, sum_of};

impl Format for WalFormat {
    const NAME: &'static str = FORMAT;
    const NOUN: &'static str = "record";
    const LIMIT: &'static str = "record_bytes_max";
    /// A WAL has no header: only records prove its presence.
    const PROVED_BY: Depth = Depth::Quick;
    const NUMBERED: bool = false;
    type Framing = Codec;
    type Options = Options;
    type Ref<'a> = Record<&'a [u8]>;
    type Owned = Record;
    #[cfg(feature = "arrow")]
    const COLUMNS: &'static [Column] =
        &[("lsn", Value::Offset), ("payload", Value::Payload), ("length", Value::Length)];
    #[cfg(feature = "arrow")]
    const DEFAULT_COLUMNS: &'static [&'static str] = &["lsn", "payload"];

    fn framing(&self) -> Codec {
        self.codec
    }

    fn appending(&self, options: &Options) -> Codec {
        Codec::new(options.record_bytes_max.unwrap_or(self.codec.record_bytes_max))
    }

    fn common(options: &Options) -> Result<Common> {
        options.common()
    }

    fn settings(&self) -> Settings {
        Settings {
            format: FORMAT,
            segment_bytes: self.layout.segment_bytes(),
            record_bytes_max: self.codec.record_bytes_max,
        }
    }

    #[inline]
    fn show(_ordinal: Option<u64>, offset: u64, frame: Frame, record: &[u8]) -> Record<&[u8]> {
        Record { lsn: Lsn(offset), payload: frame.payload(record) }
    }

    #[inline]
    fn own(record: Record<&[u8]>) -> Record {
        record.into_owned()
    }

    fn name_of(_ordinal: Option<u64>, offset: u64) -> String {
        format!("record at lsn {offset}")
    }

    fn place(options: &Options, path: &Path) -> Result<Place> {
        let storage = &*options.storage;
        let single = match storage.is_dir(path) {
            true => false,
            // A sidecar next to the path proves a single file, present or lost.
            false if storage.is_dir(&Place::file(path).sidecar) => true,
            false => match Place::file(path).open(storage, Access::Read) {
                Err(e) if e.kind() == ErrorKind::Missing => options.layout == Some(Layout::Single),
                opened => opened.map(|_| true)?,
            },
        };
        if single && base_of_tail(path).is_some() {
            return Ok(Place::tail(path));
        }
        let asked = options.layout.map(Layout::name);
        let has = if single { "single" } else { "segmented" };
        if asked.is_some_and(|asked| asked != has) {
            let message = format!("layout {} asked for, the log is {has}", asked.unwrap_or(""));
            return Err(Error::new(ErrorKind::InvalidArgument, message).at(path));
        }
        if !storage.is_dir(path) && names_segment(path) {
            let message = "this is one segment of a log; name the log's directory";
            return Err(Error::new(ErrorKind::InvalidArgument, message).at(path));
        }
        let log = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Ok(if single { Place::file(log) } else { Place::directory(log) })
    }

    fn exists(options: &Options, place: &Place) -> Result<bool> {
        let storage = &*options.storage;
        if !place.single {
            let marker = Head::load(storage, &place.dir)?;
            return Ok(!indices(storage, place)?.is_empty() || marker != Head::Absent);
        }
        match place.open(storage, Access::Read) {
            Err(e) if e.kind() == ErrorKind::Missing => Ok(false),
            opened => opened.map(|_| true),
        }
    }

    fn create(options: &Options, place: &Place) -> Result<()> {
        let storage = &*options.storage;
        let layout = match place.single {
            true => Layout::Single,
            false => options.layout.unwrap_or_default(),
        };
        let settings = Settings {
            format: FORMAT,
            segment_bytes: layout.segment_bytes(),
            record_bytes_max: options.record_bytes_max.unwrap_or(RECORD_BYTES_MAX),
        };
        settings.store(storage, &place.sidecar)?;
        let first = match place.single {
            true => place.log.clone(),
            false => place.dir.join(segment_name(0)),
        };
        replace(storage, &first, &[], options.file_mode)
            .map_err(|e| Error::io("create the log", &first, e))
    }

    fn inspect(
        options: &Options,
        place: &Place,
        access: Access,
        depth: Depth,
    ) -> Result<Inspected<Self>> {
        let storage = &*options.storage;
        let settings = Settings::load(storage, &place.sidecar, FORMAT)?;
        let mut options = options.clone();
        if options.layout.is_none() && settings.is_none() && !place.single {
            let segmented = |segment_bytes| Layout::Segmented { segment_bytes };
            options.layout = place.segment_bytes.map(segmented);
            options.check()?;
        }
        let asked = options.record_bytes_max;
        let limit = settings.map_or(asked.unwrap_or(RECORD_BYTES_MAX), |settings| {
            settings.record_bytes_max.max(asked.unwrap_or(0))
        });
        let (mark, damaged_mark) = place.load_mark(storage)?;
        let codec = Codec::new(limit);
        let options = &options;
        let look = Look { options, place, access, depth, codec, settings, mark, damaged_mark };
        match place.single {
            true => look.single(),
            false => look.segmented(),
        }
    }

    fn check_found(
        options: &Options,
        place: &Place,
        found: Option<&Inspected<Self>>,
        access: Access,
    ) -> Result<()> {
        match (found, access) {
            (Some(found), Access::Write) => check_size_is_proved(found, options, &place.log),
            _ => Ok(()),
        }
    }

    /// By its checksum.
    fn is_beyond_limit(&self, file: &dyn File, at: u64, len: u64, end: u64) -> io::Result<bool> {
        if HEADER_BYTES + len > end.saturating_sub(at) {
            return Ok(false);
        }
        let mut header = [0; HEADER_BYTES as usize];
        read_full(file, &mut header, at)?;
        let (stored, length) = header.split_at(4);
        let payload = at + HEADER_BYTES..at + HEADER_BYTES + len;
        let crc = sum_of(file, payload, crc32c_more(0, length), crc32c_more)?;
        Ok(crc.is_some_and(|crc| stored == crc.to_le_bytes()))
    }

    #[inline]
    fn tend(log: &Shared<Self>, after: Done) -> Result<()> {
        if after == Done::Opening {
            // A crash or a repair may have cut records that a consumer had seen.
            match log.lower_consumers(log.extent().end, log.recovery.was_cut()) {
                // A damaged file of consumers: truncations refuse, appending and reading continue.
                Err(e) if e.kind() == ErrorKind::Corrupt => {}
                lowered => lowered?,
            }
            if log.options.retention.is_some() {
                log.check_segmented()?;
            }
        }
        log.keep_to_retention();
        Ok(())
    }
}
