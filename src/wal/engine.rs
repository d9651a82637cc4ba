//! The WAL for the engine: the implementation of [`Format`].

use std::io;
use std::path::{Path, PathBuf};

use super::codec::{Codec, FORMAT, Frame, HEADER_BYTES, Lsn, RECORD_BYTES_MAX, segment_name};
use super::dropping::intent::Intent;
use super::files::{Head, head_marker, indices, names_segment, store_head_marker};
use super::format::WalFormat;
use super::inspect::{Look, More, access_of, check_layout, lost_log};
use super::options::{Layout, Options};
use super::proof::check_size_is_proved;
use super::record::{Record, RecordRef};
use crate::checksum::crc32c_more;
use crate::error::{Error, ErrorKind, Result};
use crate::lines;
use crate::log::extent::Extent;
use crate::log::format::{Format, Inspected};
use crate::log::framing::Frame as _;
use crate::log::options::Common;
use crate::log::report::RecoveryReport;
use crate::log::space::{Place, base_of_tail};
use crate::log::{Log, Shared};
use crate::mode::{Depth, Mode};
use crate::sidecar::Settings;
use crate::storage::segmented::remove;
use crate::storage::{Access, File, read_full, replace, sum_of, sync_dir};

impl Format for WalFormat {
    const NAME: &'static str = FORMAT;
    const NOUN: &'static str = "record";
    const LIMIT: &'static str = "record_bytes_max";
    const NUMBERED: bool = false;
    type Framing = Codec;
    type Options = Options;
    type More = More;
    type Ref<'a> = RecordRef<'a>;
    type Owned = Record;
    #[cfg(feature = "arrow")]
    type Column = super::columns::Column;

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
    fn show(_ordinal: Option<u64>, offset: u64, frame: Frame, record: &[u8]) -> RecordRef<'_> {
        RecordRef { lsn: Lsn(offset), payload: frame.payload(record) }
    }

    #[inline]
    fn own(record: RecordRef<'_>) -> Record {
        Record { lsn: record.lsn, payload: record.payload.to_vec() }
    }

    fn name_of(_ordinal: Option<u64>, offset: u64) -> String {
        format!("record at lsn {offset}")
    }

    fn bounds_of(extent: &Extent) -> (u64, u64) {
        (extent.start, extent.last_offset)
    }

    fn place(options: &Options, path: &Path) -> Result<Place> {
        let storage = &*options.storage;
        let single = match storage.is_dir(path) {
            true => false,
            false => match storage.open(path, Access::Read) {
                Ok(_) => true,
                Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                    return Err(Error::new(ErrorKind::NotALog, e.to_string()).at(path));
                }
                // What lies beside a file that is gone says that there was one.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    options.layout == Some(Layout::Single)
                        || storage.is_dir(&Place::file(path).sidecar)
                }
                Err(e) => return Err(Error::io("open the log", path, e)),
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

    fn prepare(options: &Options, place: &Place, mode: Mode) -> Result<()> {
        let storage = &*options.storage;
        let known = Settings::load(storage, &place.sidecar, FORMAT)?.is_some()
            || place.load_mark(storage)?.0.is_some();
        if mode == Mode::Create || known || !Self::exists(options, place)? {
            return Ok(());
        }
        match Self::inspect(options, place, Access::Read, Depth::Quick) {
            Err(e) if e.kind() == ErrorKind::NotALog => Err(e),
            // Anything else is looked at again under the lock.
            _ => Ok(()),
        }
    }

    fn exists(options: &Options, place: &Place) -> Result<bool> {
        let storage = &*options.storage;
        if !place.single {
            let marker = head_marker(storage, place)?;
            return Ok(!indices(storage, place)?.is_empty() || marker != Head::Absent);
        }
        match storage.open(&place.log, Access::Read) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(Error::io("open the log", &place.log, e)),
        }
    }

    /// Only if no mark says that there was one.
    fn create(options: &Options, place: &Place) -> Result<()> {
        let storage = &*options.storage;
        if let Some(mark) = place.load_mark(storage)?.0.filter(|mark| mark.end > 0) {
            return Err(lost_log(place, &mark));
        }
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
        check_layout(settings, options.layout, &place.log)?;
        let asked = options.record_bytes_max;
        let limit = settings.map_or(asked.unwrap_or(RECORD_BYTES_MAX), |settings| {
            settings.record_bytes_max.max(asked.unwrap_or(0))
        });
        let (mark, damaged_mark) = place.load_mark(storage)?;
        let codec = Codec::new(limit);
        let look = Look { options, place, access, depth, codec, settings, mark, damaged_mark };
        match place.single {
            true => look.single(),
            false => look.segmented(),
        }
    }

    /// A size that the caller names, or the log's own settings, come before the part's.
    fn options_of_part(
        options: &Options,
        place: &Place,
        segment_bytes: Option<u64>,
    ) -> Result<Options> {
        let mut options = options.clone();
        if options.layout.is_none()
            && !place.single
            && Settings::load(&*options.storage, &place.sidecar, FORMAT)?.is_none()
        {
            options.layout = segment_bytes.map(|segment_bytes| Layout::Segmented { segment_bytes });
        }
        options.check()?;
        Ok(options)
    }

    fn check_found(options: &Options, place: &Place, found: &Inspected<Self>) -> Result<()> {
        if let (Some(why), Access::Write) = (&found.more.only_readable, access_of(found)) {
            return Err(Error::new(ErrorKind::Corrupt, why.clone()).of(FORMAT).at(&place.log));
        }
        if access_of(found) == Access::Read {
            return Ok(());
        }
        check_size_is_proved(found, options, &place.log)
    }

    fn sync_from(&self, file: &dyn File, offset: u64) -> io::Result<()> {
        match &self.segments {
            Some(segments) => segments.sync_from(offset),
            None => file.sync_data(),
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

    fn has_orphans(&self) -> bool {
        self.segments.as_ref().is_some_and(|segments| segments.has_orphans())
    }

    fn orphans(&self) -> io::Result<Vec<PathBuf>> {
        self.segments.as_ref().map_or(Ok(Vec::new()), |segments| segments.orphans())
    }

    fn set_orphans_aside(&self) -> io::Result<Vec<PathBuf>> {
        self.segments.as_ref().map_or(Ok(Vec::new()), |segments| segments.set_orphans_aside())
    }

    /// The head marker again where only the mark still knows it; and what a crash brought back below
    /// the head goes again, oldest first, once the head is durable.
    fn before_cut(
        &self,
        options: &Options,
        place: &Place,
        more: &More,
        extent: &Extent,
        report: &mut RecoveryReport,
    ) -> Result<()> {
        if more.head_lost {
            store_head_marker(options, place, extent.start)?;
        }
        report.removed_segments = more.stale.clone();
        if more.stale.is_empty() {
            return Ok(());
        }
        let storage = &*options.storage;
        sync_dir(storage, &place.dir)?;
        for index in &more.stale {
            let path = place.dir.join(segment_name(*index));
            remove(storage, &path).map_err(|e| Error::io("remove the segment", &path, e))?;
        }
        lines::warn(format_args!(
            "removed {} segments below the head, byte {} ({})",
            more.stale.len(),
            extent.start,
            place.log.display()
        ));
        sync_dir(storage, &place.dir)
    }

    fn cut_begun(more: &More) -> bool {
        more.cut_begun
    }

    fn is_unproved(more: &More) -> bool {
        more.unproved
    }

    fn after_cut(
        &self,
        options: &Options,
        place: &Place,
        more: &More,
        report: &mut RecoveryReport,
    ) -> Result<()> {
        // A foreign one before anything is appended that it might come to fit.
        if more.cut_begun || more.foreign_cut {
            Intent::clear(options, &place.sidecar)?;
        }
        report.finished_truncation = more.cut_begun;
        Ok(())
    }

    /// A crash or a repair may have taken records that a consumer had seen.
    fn opened(wal: &Log<Self>) -> Result<()> {
        match wal.shared.lower_consumers(wal.extent()?.end, wal.recovery().was_cut()) {
            // Truncations refuse it; appending and reading go on.
            Err(e) if e.kind() == ErrorKind::Corrupt => {}
            lowered => lowered?,
        }
        if wal.shared.options.retention.is_some() {
            wal.shared.check_segmented()?;
        }
        wal.shared.keep_to_retention();
        Ok(())
    }

    #[inline]
    fn synced(log: &Shared<Self>) {
        log.keep_to_retention();
    }

    fn head_now(options: &Options, place: &Place) -> Result<Option<u64>> {
        Ok(match head_marker(&*options.storage, place)? {
            Head::At(head) => Some(head),
            _ => None,
        })
    }

    fn give_back(&self) {
        if let Some(segments) = &self.segments {
            segments.give_back();
        }
    }

    fn reopen(&self) {
        if let Some(segments) = &self.segments {
            segments.reopen();
        }
    }

    fn adopt(&self, found: &Self) {
        if let (Some(segments), Some(found)) = (&self.segments, &found.segments) {
            segments.adopt(found);
        }
    }
}
