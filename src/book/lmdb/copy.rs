//! Events from one log to another: batches, each synced, read back, and compared with the source.

use std::ops::{ControlFlow, RangeInclusive};
use std::path::Path;

use super::read::{Environment, Take};
use super::write::Writer;
use crate::book::copying::convert::{is_long, of_source};
use crate::book::{Batch, Book, JamReader, Meta};
use crate::error::{Error, ErrorKind, Result};
use crate::ground::checksum::{crc32, crc32_more};
use crate::ground::slice::part;
use crate::log::PART_BYTES;
use crate::scan::OnCorrupt;
use crate::scan::framing::Frame as _;

/// Events are written and synced so many bytes at a time.
const BATCH_BYTES: usize = 8 << 20;
/// The comparison reports its progress after this number of events, or of bytes.
const NOTED_EVENTS: u64 = 16 << 10;
const NOTED_BYTES: usize = 8 << 20;

/// A log whose events can be read.
#[derive(Debug)]
pub enum Source {
    Lmdb(Environment),
    Book(Book),
}

/// A borrowed [`Source`], or a borrowed target.
#[derive(Clone, Copy)]
pub enum View<'a> {
    Lmdb(&'a Environment),
    Book(&'a Book),
}

impl Source {
    pub fn view(&self) -> View<'_> {
        match self {
            Self::Lmdb(environment) => View::Lmdb(environment),
            Self::Book(book) => View::Book(book),
        }
    }
}

impl View<'_> {
    pub fn bounds(&self) -> Result<Option<RangeInclusive<u64>>> {
        match self {
            Self::Lmdb(environment) => environment.bounds(),
            Self::Book(book) => book.bounds(),
        }
    }

    pub fn meta(&self) -> Result<Meta> {
        match self {
            Self::Lmdb(environment) => environment.meta(),
            Self::Book(book) => book.meta(),
        }
    }

    /// The events of a range; fewer are an error.
    pub fn each(&self, range: RangeInclusive<u64>, take: &mut Take<'_>) -> Result<()> {
        let mut next = *range.start();
        let mut done = range.is_empty();
        let mut checked = |event: u64, mug: u32, jam: &[u8]| {
            if event != next {
                return Err(self.gap(next, Some(event)));
            }
            let step = take(event, mug, jam)?;
            done = event == *range.end() || step == ControlFlow::Break(());
            next = next.wrapping_add(1);
            Ok(if done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        };
        match self {
            Self::Lmdb(environment) => environment.each(*range.start(), &mut checked)?,
            Self::Book(book) => {
                let mut cursor = book.cursor(range.clone(), OnCorrupt::Raise)?;
                while let Some(deed) = cursor.next().map_err(of_source)? {
                    let event = deed.event.unwrap_or(0);
                    if checked(event, deed.mug, deed.jam)? == ControlFlow::Break(()) {
                        break;
                    }
                }
            }
        }
        if done { Ok(()) } else { Err(self.gap(next, None)) }
    }

    fn gap(&self, wanted: u64, found: Option<u64>) -> Error {
        let found = found.map_or("the end of the log".into(), |event| format!("event {event}"));
        let message = format!("event {wanted} expected, {found} found");
        Error::new(ErrorKind::Contiguity, message).at(self.path())
    }

    pub fn path(&self) -> &Path {
        match self {
            Self::Lmdb(environment) => environment.path(),
            Self::Book(book) => book.path(),
        }
    }

    /// Walk a range without a copy; returns the bytes of the jams.
    pub fn count(
        &self,
        range: RangeInclusive<u64>,
        noted: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<u64> {
        let (mut bytes, mut unnoted) = (0, 0);
        self.each(range, &mut |_, _, jam| {
            bytes += jam.len() as u64;
            unnoted += 1;
            if unnoted == NOTED_EVENTS {
                noted(std::mem::take(&mut unnoted))?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        noted(unnoted)?;
        Ok(bytes)
    }

    /// Compare events of `self` with the events of `other`; returns the bytes of their jams. A
    /// difference is an error of kind `kind`.
    pub fn compare(
        &self,
        other: View<'_>,
        range: RangeInclusive<u64>,
        kind: ErrorKind,
        noted: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<u64> {
        let mut bytes = 0;
        let mut unnoted = (0, 0);
        let mut tell = |jam: usize| {
            bytes += jam as u64;
            unnoted = (unnoted.0 + 1, unnoted.1 + jam);
            if unnoted.0 >= NOTED_EVENTS || unnoted.1 >= NOTED_BYTES {
                noted(std::mem::take(&mut unnoted).0)?;
            }
            Ok(ControlFlow::Continue(()))
        };
        let differs = |event, source, found| differs(event, source, found, kind).at(other.path());
        match other {
            View::Book(book) => {
                let cursor = book.cursor(range.clone(), OnCorrupt::Raise)?;
                let mut cursor = cursor.of_frames();
                self.each(range, &mut |event, mug, jam| {
                    let found = cursor.advance()?;
                    let same = match found {
                        Some((_, at, deed)) if deed.mug == mug => match is_long(deed) {
                            true => book.jam_at(at)?.is_rest(jam)?,
                            false => deed.payload(cursor.bytes()) == jam,
                        },
                        _ => false,
                    };
                    if same {
                        return tell(jam.len());
                    }
                    let found = match found {
                        Some((_, at, deed)) => Some(Facts::read(deed.mug, book.jam_at(at)?)?),
                        None => None,
                    };
                    Err(differs(event, Facts::of(mug, jam), found))
                })?;
            }
            View::Lmdb(held) => self.each(range, &mut |event, mug, jam| {
                let other = |m, j: &[u8]| ((m, j) != (mug, jam)).then(|| Facts::of(m, j));
                match held.get(event, other)? {
                    Some(None) => tell(jam.len()),
                    found => Err(differs(event, Facts::of(mug, jam), found.flatten())),
                }
            })?,
        }
        noted(unnoted.0)?;
        Ok(bytes)
    }
}

/// The facts about an event in an error.
#[derive(Clone, Copy)]
struct Facts {
    mug: u32,
    bytes: usize,
    sum: u32,
}

impl Facts {
    fn of(mug: u32, jam: &[u8]) -> Self {
        Self { mug, bytes: jam.len(), sum: crc32_more(crc32(&mug.to_le_bytes()), jam) }
    }

    fn read(mug: u32, mut jam: JamReader) -> Result<Self> {
        let (bytes, mut sum) = (jam.size() as usize, crc32(&mug.to_le_bytes()));
        let mut block = vec![0; PART_BYTES];
        loop {
            match jam.read_part(&mut block)? {
                0 => return Ok(Self { mug, bytes, sum }),
                read => sum = crc32_more(sum, part(&block, ..read)),
            }
        }
    }
}

impl std::fmt::Display for Facts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "mug {:08x}, {} bytes, checksum {:08x}", self.mug, self.bytes, self.sum)
    }
}

fn differs(event: u64, source: Facts, found: Option<Facts>, kind: ErrorKind) -> Error {
    let found = found.map_or("not there".into(), |facts| facts.to_string());
    let message = format!(
        "event {event} is another one in the destination: {source} in the source; {found} in the \
         destination"
    );
    Error::new(kind, message)
}

/// The log for the copied events.
#[derive(Debug)]
pub enum Target {
    Book(Book, Batch),
    Lmdb(Writer, Chunk),
}

/// Events on their way into an environment.
#[derive(Debug, Default)]
pub struct Chunk {
    bytes: Vec<u8>,
    /// Mug and end of each jam.
    events: Vec<(u32, usize)>,
}

impl Chunk {
    fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let mut start = 0;
        self.events.iter().map(move |&(mug, end)| {
            let jam = part(&self.bytes, start..end);
            start = end;
            (mug, jam)
        })
    }
}

/// The copy of a log.
#[derive(Clone, Copy, Debug, Default)]
pub struct Copied {
    pub events: u64,
    pub bytes: u64,
    /// Events found in the target, and compared.
    pub found: u64,
}

impl Target {
    pub fn view(&self) -> View<'_> {
        match self {
            Self::Book(book, _) => View::Book(book),
            Self::Lmdb(writer, _) => View::Lmdb(&writer.held),
        }
    }

    /// Bring all events of a range to the target, and compare the events that the target has
    /// already.
    pub fn fill(
        &mut self,
        source: View<'_>,
        range: &RangeInclusive<u64>,
        noted: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Copied> {
        let mut copied = Copied::default();
        if let Some(held) = held_before(self.view(), Some(range))? {
            copied.found = held.end() - held.start() + 1;
            copied.bytes = source.compare(self.view(), held, ErrorKind::AlreadyExists, noted)?;
        }
        copied.events =
            seeded!(copied.found, "migration-repeats-an-event" => copied.found.saturating_sub(1));
        let wanted = range.end() - range.start() + 1;
        while copied.events < wanted {
            let first = range.start() + copied.events;
            let events = self.append(source, first..=*range.end())?;
            let written = first..=first + (events - 1);
            copied.bytes +=
                source.compare(self.view(), written, ErrorKind::Corrupt, &mut |_| Ok(()))?;
            copied.events += events;
            noted(events)?;
        }
        Ok(copied)
    }

    /// Append a batch and sync; returns the number of events.
    fn append(&mut self, source: View<'_>, range: RangeInclusive<u64>) -> Result<u64> {
        let first = *range.start();
        match self {
            Self::Book(book, batch) => {
                batch.clear();
                let mut long = 0;
                source.each(range, &mut |_, mug, jam| {
                    if jam.len() < BATCH_BYTES {
                        batch.push(mug, jam)?;
                        let more = batch.bytes_len() < BATCH_BYTES;
                        return Ok(if more {
                            ControlFlow::Continue(())
                        } else {
                            ControlFlow::Break(())
                        });
                    }
                    // A batch would hold it once more.
                    book.append_batch(batch, Some(first), None)?;
                    book.append(mug, jam)?;
                    long = 1;
                    Ok(ControlFlow::Break(()))
                })?;
                if long == 0 {
                    book.append_batch(batch, Some(first), None)?;
                }
                book.sync()?;
                Ok(batch.len() + long)
            }
            Self::Lmdb(writer, chunk) => {
                chunk.bytes.clear();
                chunk.events.clear();
                source.each(range, &mut |_, mug, jam| {
                    chunk.bytes.extend_from_slice(jam);
                    chunk.events.push((mug, chunk.bytes.len()));
                    Ok(if chunk.bytes.len() < BATCH_BYTES {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    })
                })?;
                writer.append(first, chunk.iter())?;
                Ok(chunk.events.len() as u64)
            }
        }
    }
}

/// The events of a target, if a source with the given events can continue after them.
pub fn held_before(
    target: View<'_>,
    source: Option<&RangeInclusive<u64>>,
) -> Result<Option<RangeInclusive<u64>>> {
    let Some(held) = target.bounds()? else {
        return Ok(None);
    };
    let begins = source.is_some_and(|range| range.start() == held.start());
    if begins && source.is_some_and(|range| held.end() <= range.end()) {
        return Ok(Some(held));
    }
    let shown =
        |range: &RangeInclusive<u64>| format!("events {} to {}", range.start(), range.end());
    let message = format!(
        "the destination holds {}, and the source {}",
        shown(&held),
        source.map_or("none".into(), shown)
    );
    Err(Error::new(ErrorKind::AlreadyExists, message).at(target.path()))
}
