//! Copying a log into another layout, event by event, and comparing the copy with the source.

use std::path::Path;

use super::aside::NewBook;
use crate::book::layouts::codec::Frame;
use crate::book::names::FORMAT;
use crate::book::{Book, Cursor, JamReader, Layout, Options};
use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
use crate::log::PART_BYTES;
use crate::scan::framing::Frame as _;
use crate::scan::{Damage, HELD_BYTES_MAX, Verdict};
use crate::{Mode, OnCorrupt};

/// The size of a write.
const BATCH_BYTES: usize = 4 << 20;
/// Compared between two calls of the progress function.
const PROGRESS_DEEDS: u64 = 1 << 14;

/// The result of a conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConvertReport {
    /// Layout of the source.
    pub from: Layout,
    /// Layout of the copy.
    pub to: Layout,
    /// Deeds copied and compared.
    pub deeds: u64,
    /// Bytes of the jams.
    pub jam_bytes: u64,
    /// First and last event; `None` for a log without deeds.
    pub bounds: Option<(u64, u64)>,
    /// Size of the source up to its last deed, bytes.
    pub source_bytes: u64,
    /// Size of the copy, bytes.
    pub target_bytes: u64,
    /// The rest after the last valid deed of a torn source, missing in the copy.
    pub left_out: Option<Damage>,
}

impl Options {
    /// Copy a log, with its epoch and metadata, to a new one in layout `to`, then read both and compare every event.
    /// The source never changes. The call refuses a corrupt source and an existing target. From a torn source it copies
    /// the valid deeds, and the report names the rest. `progress` gets the bytes done and the total of both passes; its
    /// error ends the conversion. The copy is made aside, in `.converting` of the target's directory, so the target is
    /// a whole copy or no log. If another program makes a log there meanwhile, the conversion fails and leaves that log
    /// alone.
    ///
    /// # Errors
    ///
    /// Fails for a damaged source and for an existing target; see [Errors](crate#errors). An error of `progress` ends
    /// the work and is returned.
    ///
    /// # Examples
    ///
    /// ```
    /// use deedbook::book::{Book, Layout, Options};
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("log");
    /// let book = Book::create(&path)?;
    /// book.append(0, b"first")?;
    /// book.close()?;
    /// let copy = dir.path().join("slots");
    /// let report = Options::new().convert(&path, &copy, Layout::Slots, |_, _| Ok(()))?;
    /// assert_eq!((report.deeds, Book::open(&copy)?.layout()), (1, Layout::Slots));
    /// # Ok(())
    /// # }
    /// ```
    pub fn convert(
        &self,
        source: impl AsRef<Path>,
        target: impl AsRef<Path>,
        to: Layout,
        mut progress: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<ConvertReport> {
        let reading = Options { layout: None, ..self.clone() };
        let book = reading.open(source.as_ref(), Mode::Read)?;
        refuse_corrupt(&book)?;
        let writing = Options {
            layout: Some(to),
            epoch: Some(book.epoch()?),
            durability: Durability::Manual,
            deed_bytes_max: book.0.shared.framing.deed_bytes_max,
            ..self.clone()
        };
        let mut place = NewBook::new(&writing, target.as_ref())?;
        let copied = copy(&book, &writing, place.path(), &mut progress);
        let done = copied.and_then(|report| place.put(report.deeds == 0).map(|()| report));
        if done.is_err() {
            place.give_up();
        }
        done
    }
}

/// Refuse a damaged source: a copy would lack records without a sign of the loss.
pub fn refuse_corrupt(book: &Book) -> Result<()> {
    let found = book.recovery();
    match found.damage.as_ref().filter(|_| found.verdict == Verdict::Corrupt) {
        None => Ok(()),
        Some(damage) => {
            let error = book.0.shared.error(ErrorKind::Corrupt, damage.reason.clone());
            Err(of_source(error.offset_at(damage.offset).with_next_intact(damage.next_intact)))
        }
    }
}

/// Add the user's advice to an error of damage in the source.
pub fn of_source(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Corrupt | ErrorKind::LostRecords => {
            error.with_advice("salvage copies what is intact")
        }
        _ => error,
    }
}

/// Copy the deeds and the metadata, and compare them.
fn copy(
    book: &Book,
    writing: &Options,
    path: &Path,
    progress: &mut impl FnMut(u64, u64) -> Result<()>,
) -> Result<ConvertReport> {
    let (first, next) = (book.epoch()?.saturating_add(1), book.last()?.saturating_add(1));
    let copy = writing.open(path, Mode::Create)?;
    let meta = book.meta()?;
    if meta != crate::book::Meta::default() {
        copy.save_meta(&meta)?;
    }
    let all = 2 * book.end()?;
    let mut deeds = book.cursor(first..next, OnCorrupt::Raise)?.of_frames();
    let mut batch = copy.batch();
    progress(0, all)?;
    while let Some((_, offset, frame)) = deeds.advance().map_err(of_source)? {
        let long = is_long(frame);
        if !long {
            batch.push(frame.mug, frame.payload(deeds.bytes()))?;
        }
        if long || batch.bytes_len() >= BATCH_BYTES {
            copy.append_unsynced(&batch)?;
            batch.clear();
        }
        if long {
            let mut jam = book.jam_at(offset).map_err(of_source)?;
            copy.append_from(frame.mug, jam.size(), &mut jam)?;
        }
        if long || batch.is_empty() {
            progress(deeds.offset(), all)?;
        }
    }
    copy.append_unsynced(&batch)?;
    let (deeds, jam_bytes) = compare(book, &copy, (first, next), all, progress)?;
    let report = ConvertReport {
        from: book.layout(),
        to: copy.layout(),
        deeds,
        jam_bytes,
        bounds: copy.bounds()?.map(|bounds| bounds.into_inner()),
        source_bytes: book.end()?,
        target_bytes: copy.end()?,
        left_out: book.recovery().damage.clone(),
    };
    copy.close()?;
    progress(all, all)?;
    Ok(report)
}

/// Whether a cursor over frames does not hold its bytes.
pub fn is_long(frame: Frame) -> bool {
    frame.len() > HELD_BYTES_MAX
}

/// Read both logs and compare each event. Returns the number of events and the bytes of their jams.
fn compare(
    book: &Book,
    copy: &Book,
    (first, next): (u64, u64),
    all: u64,
    progress: &mut impl FnMut(u64, u64) -> Result<()>,
) -> Result<(u64, u64)> {
    let open = |log: &Book| -> Result<Cursor> {
        Ok(log.cursor(first..next, OnCorrupt::Raise)?.of_frames())
    };
    let (mut ours, mut theirs) = (open(copy)?, open(book)?);
    let (mut count, mut bytes) = (0, 0);
    loop {
        let source = theirs.advance().map_err(of_source)?;
        let same = match (source, ours.advance()?) {
            (None, None) => return Ok((count, bytes)),
            (Some((event, at, deed)), Some((event_there, at_there, copied))) => {
                let same_facts =
                    (event, deed.mug, deed.jam_len) == (event_there, copied.mug, copied.jam_len);
                same_facts
                    // A deed may be short enough to be held in memory in one layout only.
                    && match is_long(deed) || is_long(copied) {
                        true => same_parts(book.jam_at(at)?, copy.jam_at(at_there)?)?,
                        false => deed.payload(theirs.bytes()) == copied.payload(ours.bytes()),
                    }
            }
            _ => false,
        };
        let Some((_, offset, deed)) = source.filter(|_| same) else {
            let event = first + count;
            let message = format!("event {event} of the copy is not that of the source");
            return Err(Error::new(ErrorKind::Corrupt, message).at(copy.path()).of(FORMAT));
        };
        count += 1;
        bytes += deed.jam_len;
        if count % PROGRESS_DEEDS == 0 || is_long(deed) {
            progress(all / 2 + offset, all)?;
        }
    }
}

fn same_parts(mut ours: JamReader, mut theirs: JamReader) -> Result<bool> {
    let (mut block, mut other) = (vec![0; PART_BYTES], vec![0; PART_BYTES]);
    loop {
        let (read, there) = (ours.read_part(&mut block)?, theirs.read_part(&mut other)?);
        if block.get(..read) != other.get(..there) {
            return Ok(false);
        }
        if read == 0 {
            return Ok(true);
        }
    }
}
