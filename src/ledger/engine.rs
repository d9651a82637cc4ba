//! The files of a ledger for the engine: the implementation of [`Format`].

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::codec::{Codec, FORMAT, Frame, HEADER_BYTES};
use super::format::LedgerFormat;
use super::limits::kept_limit;
use super::options::Options;
use super::record::Record;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::checksum::crc32_more;
#[cfg(feature = "arrow")]
use crate::log::{Column, Value};
use crate::log::{Common, Format, Inspected, Place};
use crate::mode::{Depth, Recovery};
use crate::scan::framing::Frame as _;
use crate::sidecar::{LockTimeout, Settings};
use crate::storage::{Access, File, read_full, sum_of};

impl Format for LedgerFormat {
    const NAME: &'static str = FORMAT;
    const NOUN: &'static str = "record";
    const LIMIT: &'static str = "record_bytes_max";
    const NUMBERED: bool = true;
    type Framing = Codec;
    type Options = Options;
    type Ref<'a> = Record<&'a [u8]>;
    type Owned = Record;
    #[cfg(feature = "arrow")]
    const COLUMNS: &'static [Column] = &[
        ("record", Value::Ordinal),
        ("offset", Value::Offset),
        ("payload", Value::Payload),
        ("length", Value::Length),
    ];
    #[cfg(feature = "arrow")]
    const DEFAULT_COLUMNS: &'static [&'static str] = &["record", "payload"];

    fn framing(&self) -> Codec {
        self.codec
    }

    fn common(options: &Options) -> Result<Common> {
        Ok(Common {
            durability: options.durability,
            recovery: Recovery::Valid,
            file_mode: options.file_mode,
            slow_sync: options.slow_sync,
            lock_timeout: LockTimeout::default(), // only read
            check_all: false,
            storage: options.storage.clone(),
        })
    }

    fn settings(&self) -> Settings {
        let record_bytes_max = self.codec.record_bytes_max;
        Settings { format: FORMAT, segment_bytes: None, record_bytes_max }
    }

    #[inline]
    fn show(number: Option<u64>, offset: u64, frame: Frame, record: &[u8]) -> Record<&[u8]> {
        Record { number, offset, payload: frame.payload(record) }
    }

    fn own(record: Record<&[u8]>) -> Record {
        record.into_owned()
    }

    fn name_of(number: Option<u64>, _offset: u64) -> String {
        match number {
            Some(number) => format!("record {number}"),
            None => "record".into(),
        }
    }

    fn place(_options: &Options, path: &Path) -> Result<Place> {
        Ok(Place::file(path))
    }

    fn exists(_options: &Options, place: &Place) -> Result<bool> {
        Err(read_only(&place.log))
    }

    fn create(_options: &Options, place: &Place) -> Result<()> {
        Err(read_only(&place.log))
    }

    fn inspect(
        options: &Options,
        place: &Place,
        _access: Access,
        depth: Depth,
    ) -> Result<Inspected<Self>> {
        let (storage, log) = (&*options.storage, &*place.log);
        let limit = kept_limit(storage, &place.dir)?;
        let format = Self::new(limit.max(options.record_bytes_max));
        let file: Arc<dyn File> = match storage.open(log, Access::Read) {
            Ok(file) => Arc::from(file),
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                return Err(Error::new(ErrorKind::NotALog, e.to_string()).at(log));
            }
            Err(e) => return Err(Error::io("open the file", log, e)),
        };
        let fail = |e| Error::io("read the file", log, e);
        let len = file.len().map_err(fail)?;
        format.inspect_file(file, len, depth).map_err(fail)
    }

    fn check_found(
        _options: &Options,
        place: &Place,
        _found: Option<&Inspected<Self>>,
        access: Access,
    ) -> Result<()> {
        match access {
            Access::Read => Ok(()),
            Access::Write => Err(read_only(&place.log)),
        }
    }

    /// By its checksum.
    fn is_beyond_limit(&self, file: &dyn File, at: u64, len: u64, end: u64) -> io::Result<bool> {
        if HEADER_BYTES + len > end.saturating_sub(at) {
            return Ok(false);
        }
        let mut header = [0; HEADER_BYTES as usize];
        read_full(file, &mut header, at)?;
        let (_, stored) = header.split_at(4);
        let payload = at + HEADER_BYTES..at + HEADER_BYTES + len;
        let crc = sum_of(file, payload, 0, crc32_more)?;
        Ok(crc.is_some_and(|crc| stored == crc.to_le_bytes()))
    }
}

fn read_only(path: &Path) -> Error {
    let message = "a file of a ledger is written by its store only";
    Error::new(ErrorKind::Unsupported, message).at(path)
}
