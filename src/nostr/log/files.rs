//! The files of the event store's write-ahead log, and one file as a format of the engine.
//!
//! Each file is a log of its own, with its mark and index in `.deedbook/NAME/`. The engine
//! finds cut, damaged and lost bytes. `wal.rs` checks that the files follow each other.

use std::io;
use std::path::{Path, PathBuf};

use super::codec::{Codec, Frame};
use super::entry::{
    CHECKPOINT_AT, FORMAT, HEADER_BYTES, Lsn, Tag, encode_file_header, file_name, file_number,
    parse_file_header,
};
use crate::error::{Error, ErrorKind, Result};
use crate::log::{Common, Format, Inspected, Known, Place, Space, find_end};
use crate::mode::Depth;
use crate::saving::refuse_link;
use crate::scan::framing::Frame as _;
use crate::scan::{Scanned, Scanner};
use crate::sidecar::{Mark, Settings, refuse_linked, sidecar_dir};
use crate::storage::segmented::remove;
use crate::storage::{Access, File, Storage, names_in, read_full, sync_dir, write_full};

/// An entry, borrowed from its cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRef<'a> {
    /// Its kind, number and time.
    pub tag: Tag,
    /// Its data.
    pub data: &'a [u8],
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw {
    /// Its kind, number and time.
    pub tag: Tag,
    /// Its data.
    pub data: Vec<u8>,
}

/// The options for opening a file.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// The options shared by all formats.
    pub common: Common,
    /// Limit of an entry's data, bytes.
    pub data_bytes_max: u64,
    /// Number of the first entry, if the file is empty.
    pub first: Lsn,
    /// The last checkpoint, for the header of a new file.
    pub checkpoint: Lsn,
}

/// One file of the log.
#[derive(Clone, Debug)]
pub struct FileFormat {
    codec: Codec,
    /// The last checkpoint in the header at opening.
    pub checkpoint: Lsn,
}

impl Format for FileFormat {
    const NAME: &'static str = FORMAT;
    const NOUN: &'static str = "entry";
    const NUMBERED: bool = true;
    const HAS_WITNESSES: bool = true;
    type Framing = Codec;
    type Options = FileOptions;
    type Ref<'a> = RawRef<'a>;
    type Owned = Raw;

    fn framing(&self) -> Codec {
        self.codec
    }

    fn common(options: &FileOptions) -> Result<Common> {
        Ok(options.common.clone())
    }

    fn settings(&self) -> Settings {
        let record_bytes_max = self.codec.data_bytes_max;
        Settings { format: FORMAT, segment_bytes: None, record_bytes_max }
    }

    #[inline]
    fn show(_ordinal: Option<u64>, _offset: u64, frame: Frame, record: &[u8]) -> RawRef<'_> {
        RawRef { tag: frame.tag, data: frame.payload(record) }
    }

    fn own(record: RawRef<'_>) -> Raw {
        Raw { tag: record.tag, data: record.data.to_vec() }
    }

    fn name_of(ordinal: Option<u64>, offset: u64) -> String {
        match ordinal {
            Some(lsn) => format!("entry with lsn {lsn}"),
            None => format!("entry at byte {offset}"),
        }
    }

    fn place(_options: &FileOptions, path: &Path) -> Result<Place> {
        Ok(Place::file(path))
    }

    fn create(options: &FileOptions, place: &Place) -> Result<()> {
        let storage = &*options.common.storage;
        if let Some(mark) = place.load_mark(storage)?.0.filter(|mark| mark.records > 0) {
            return Err(lost_file(&place.log, &mark));
        }
        let header = encode_file_header(options.checkpoint);
        place.create(storage, &header, options.common.file_mode)
    }

    fn inspect(
        options: &FileOptions,
        place: &Place,
        access: Access,
        depth: Depth,
    ) -> Result<Inspected<Self>> {
        let storage = &*options.common.storage;
        let fail = |e| Error::io("read the log", &place.log, e);
        let file = place.open(storage, access)?;
        let (mark, damaged_mark) = place.load_mark(storage)?;
        let checkpoint = read_header(&*file).map_err(fail)?.map_err(|why| match mark {
            Some(mark) if mark.records > 0 => lost_file(&place.log, &mark),
            _ => Error::new(ErrorKind::NotALog, why).at(&place.log).offset_at(0),
        })?;
        let codec = Codec::new(options.data_bytes_max);
        let end = file.len().map_err(fail)?;
        let space = Space::new(file, HEADER_BYTES as u64, end);
        let by_file = first_lsn(&space, codec).map_err(fail)?;
        let by_mark = mark.filter(|mark| mark.records > 0).map(|mark| Lsn(mark.first));
        let first = by_file.or(by_mark).unwrap_or(options.first);
        let format = Self { codec, checkpoint };
        let known = Known { mark, damaged_mark, first: Some(first.0), is_ours: false, depth };
        let findings = find_end(&format, &space, known).map_err(fail)?;
        let settings = Settings::load(storage, &place.sidecar, FORMAT)?;
        Ok(Inspected { settings, ..Inspected::new(format, space, findings, mark) })
    }
}

/// Read the last checkpoint from a file's header; the inner `Err` names the error.
fn read_header(file: &dyn File) -> io::Result<Result<Lsn, String>> {
    let mut header = [0; HEADER_BYTES];
    Ok(match read_full(file, &mut header, 0)? {
        HEADER_BYTES => parse_file_header(&header),
        read => Err(format!("header of {read} bytes, must have {HEADER_BYTES}")),
    })
}

/// Number of the first entry, if the entry is intact.
fn first_lsn(space: &Space, codec: Codec) -> io::Result<Option<Lsn>> {
    let mut scanner = Scanner::new(codec, space.start, space.end);
    Ok(match scanner.next(&*space.file)? {
        Scanned::Record { frame, .. } => Some(frame.tag.lsn),
        Scanned::Stop { .. } | Scanned::End => None,
    })
}

/// The error for a file with a missing name or header whose mark says that entries existed.
fn lost_file(path: &Path, mark: &Mark) -> Error {
    let Mark { records, first, end, .. } = mark;
    let message = format!(
        "lost acknowledged entries: the file is missing or has no header, but {records} entries from \
         lsn {first} up to byte {end} were acknowledged"
    );
    let advice = "a backup may have it; repair with accept_loss goes on without it";
    let error = Error::new(ErrorKind::LostRecords, message).with_advice(advice);
    error.of(FORMAT).at(path).offset_at(0)
}

/// The files in the directory, by their numbers, sorted.
pub fn numbers(storage: &dyn Storage, dir: &Path) -> Result<Vec<u64>> {
    refuse_link(storage, dir).map_err(|e| e.of(FORMAT))?;
    let names = names_in(storage, dir).map_err(|e| e.of(FORMAT))?;
    let mut numbers: Vec<_> = names.iter().filter_map(|name| file_number(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Refuse a log if a file above this number had entries and is missing.
pub fn check_none_lost(storage: &dyn Storage, dir: &Path, newest: Option<u64>) -> Result<()> {
    match lost_files(storage, dir, newest)?.into_iter().next() {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}

/// The missing files with entries above this number. The log itself removes only whole files
/// below a checkpoint, the oldest first.
pub fn lost_files(
    storage: &dyn Storage,
    dir: &Path,
    newest: Option<u64>,
) -> Result<Vec<(PathBuf, Error)>> {
    let mut lost = Vec::new();
    let beside = numbers(storage, &sidecar_dir(dir))?;
    for number in beside.into_iter().filter(|number| Some(*number) > newest) {
        let place = Place::file(&dir.join(file_name(number)));
        let (mark, _) = place.load_mark(storage)?;
        if let Some(mark) = mark.filter(|mark| mark.records > 0) {
            lost.push((number, place.log, mark));
        }
    }
    if !lost.is_empty() {
        // A writer may have created files after the listing.
        let newest = numbers(storage, dir)?.last().copied();
        lost.retain(|(number, ..)| Some(*number) > newest);
    }
    let reported = |(_, log, mark): (u64, PathBuf, _)| {
        let error = lost_file(&log, &mark);
        (log, error)
    };
    Ok(lost.into_iter().map(reported).collect())
}

/// Remove the files with these numbers, the oldest first, and the files next to them. Each removal
/// is durable before the next begins, so a crash leaves no gap between files.
pub fn remove_files(storage: &dyn Storage, dir: &Path, numbers: &[u64]) -> Result<()> {
    for number in numbers {
        let place = Place::file(&dir.join(file_name(*number)));
        let fail = |e| Error::io("remove the file", &place.log, e).of(FORMAT);
        remove(storage, &place.log).map_err(fail)?;
        sync_dir(storage, dir).map_err(|e| e.of(FORMAT))?;
        refuse_linked(storage, &place.sidecar).map_err(|e| e.of(FORMAT))?;
        for name in storage.list(&place.sidecar).unwrap_or_default() {
            remove(storage, &place.sidecar.join(name)).map_err(fail)?;
        }
    }
    Ok(())
}

/// Write a checkpoint's number to the header of an open file, without a sync.
pub fn store_checkpoint(file: &dyn File, checkpoint: Lsn) -> io::Result<()> {
    write_full(file, &checkpoint.0.to_be_bytes(), CHECKPOINT_AT as u64)
}
