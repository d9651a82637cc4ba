//! Walking over deeds, forwards and backwards, without an allocation per deed.

use std::path::PathBuf;
use std::sync::Arc;

use super::format::{FORMAT, FRAMING_BYTES, Frame, MUG_BYTES, Packed};
use super::survey::{Borders, is_whole, resync};
use crate::error::{Error, ErrorKind, Result};
pub use crate::scan::OnCorrupt;
use crate::scan::{Damage, Found, Scanner, Stop};
use crate::storage::File;

/// A deed, borrowed from its cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeedRef<'a> {
    /// Its number; `None` only behind damage that hid how many deeds are lost.
    pub event: Option<u64>,
    /// Its byte in the log.
    pub offset: u64,
    /// The mug as stored.
    pub mug: u32,
    /// The payload.
    pub jam: &'a [u8],
}

impl DeedRef<'_> {
    /// Size in the log with its framing, bytes.
    pub fn framed_len(&self) -> u64 {
        self.jam.len() as u64 + MUG_BYTES + FRAMING_BYTES
    }
}

/// Where a cursor reads, and up to where.
#[derive(Clone, Debug)]
pub struct Range {
    /// Byte of the first deed.
    pub offset: u64,
    /// Byte behind the last one.
    pub end: u64,
    /// Number of the first deed.
    pub event: Option<u64>,
    /// Stop before this number.
    pub stop: Option<u64>,
}

/// Walks forwards.
#[derive(Debug)]
pub struct Cursor {
    file: Arc<dyn File>,
    path: PathBuf,
    codec: Packed,
    scanner: Scanner<Packed>,
    range: Range,
    on_corrupt: OnCorrupt,
    borders: Borders,
    damages: Vec<Damage>,
    /// Damage that no deed of the range shows, to be told at its end.
    trailing: Option<Damage>,
    finished: bool,
}

impl Cursor {
    pub(crate) fn new(
        file: Arc<dyn File>,
        path: PathBuf,
        codec: Packed,
        range: Range,
        on_corrupt: OnCorrupt,
        borders: Borders,
    ) -> Self {
        let scanner = Scanner::new(codec, range.offset, range.end);
        let (damages, trailing) = (Vec::new(), None);
        Self {
            file,
            path,
            codec,
            scanner,
            range,
            on_corrupt,
            borders,
            damages,
            trailing,
            finished: false,
        }
    }

    /// Check lengths only.
    #[must_use]
    pub fn without_checksums(mut self) -> Self {
        self.codec.check = false;
        self.scanner = Scanner::new(self.codec, self.scanner.position(), self.scanner.end());
        self
    }

    /// Raise this damage at the end of the range, or note it there.
    pub(crate) fn with_trailing(mut self, damage: Option<Damage>) -> Self {
        self.trailing = damage;
        self
    }

    /// The damaged stretches passed over so far.
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// Whether the next deed lies in memory already, so that [`Cursor::next`] will not read.
    pub fn ready(&self) -> bool {
        self.finished || is_whole(self.codec, self.scanner.ahead())
    }

    /// Bytes of the log before the end of the range.
    #[cfg(feature = "arrow")]
    pub(crate) fn bytes_left(&self) -> u64 {
        self.scanner.end().saturating_sub(self.scanner.position())
    }

    /// Byte behind the last deed given.
    pub fn position(&self) -> u64 {
        self.scanner.position()
    }

    /// The next deed.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<DeedRef<'_>>> {
        match self.advance()? {
            None => Ok(None),
            Some((event, offset, frame)) => {
                let jam = frame.jam(self.scanner.bytes());
                Ok(Some(DeedRef { event, offset, mug: frame.mug, jam }))
            }
        }
    }

    /// Pass over the deeds below `start`, and forget damage that hid none but these.
    pub(crate) fn skip_to(&mut self, start: u64) -> Result<()> {
        while self.range.event.is_some_and(|event| event < start) {
            let Some((event, offset, _)) = self.advance()? else { break };
            if event.is_none_or(|event| event >= start) {
                // Behind damage that reached beyond `start`: the next to give.
                self.scanner.seek(offset);
                self.range.event = event;
                break;
            }
        }
        self.damages.retain(|damage| {
            let lost = damage.first_lost.zip(damage.records_lost);
            lost.is_none_or(|(first, lost)| first.saturating_add(lost) > start)
        });
        Ok(())
    }

    /// Step to the next deed; [`Cursor::bytes`] gives its bytes.
    pub(crate) fn advance(&mut self) -> Result<Option<(Option<u64>, u64, Frame)>> {
        loop {
            let done = match (self.range.stop, self.range.event) {
                (Some(stop), Some(event)) => event >= stop,
                _ => false,
            };
            if self.finished || done {
                self.finished = true;
                return Ok(None);
            }
            let found = self.scanner.next(&*self.file).map_err(|e| self.read_error(e))?;
            match found {
                Found::Record { offset, frame } => {
                    let event = self.range.event;
                    self.range.event = event.and_then(|event| event.checked_add(1));
                    return Ok(Some((event, offset, frame)));
                }
                Found::End => {
                    self.finished = true;
                    return match (self.trailing.take(), self.on_corrupt) {
                        (None, _) => Ok(None),
                        (Some(damage), OnCorrupt::Raise) => Err(self.corrupt(&damage)),
                        (Some(damage), OnCorrupt::Skip) => {
                            self.damages.push(damage);
                            Ok(None)
                        }
                    };
                }
                Found::Stop { offset, why } => self.pass_over(offset, &why)?,
            }
        }
    }

    /// The whole bytes of the deed stepped to last.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.scanner.bytes()
    }

    fn pass_over(&mut self, offset: u64, why: &Stop) -> Result<()> {
        let event = self.range.event;
        let found =
            resync(&*self.file, self.codec, offset, why, self.scanner.end(), event, &self.borders)
                .map_err(|e| self.read_error(e))?;
        if self.on_corrupt == OnCorrupt::Raise {
            self.finished = true;
            let damage = found.damage.unwrap_or_else(|| Damage {
                offset,
                end: self.scanner.end(),
                reason: why.reason(),
                next_intact: None,
                first_lost: event,
                records_lost: None,
            });
            return Err(self.corrupt(&damage));
        }
        self.damages.extend(found.damage);
        match found.next {
            Some((next, event)) => {
                self.scanner.seek(next);
                self.range.event = event;
            }
            None => self.finished = true,
        }
        Ok(())
    }

    fn corrupt(&self, damage: &Damage) -> Error {
        corrupt(&self.path, damage, ErrorKind::Corrupt)
    }

    fn read_error(&self, source: std::io::Error) -> Error {
        Error::io("read the log", &self.path, source).offset_at(self.scanner.position()).of(FORMAT)
    }
}

/// The error of a damaged stretch.
pub(crate) fn corrupt(path: &std::path::Path, damage: &Damage, kind: ErrorKind) -> Error {
    let error = Error::new(kind, damage.reason.clone()).of(FORMAT).at(path);
    error.offset_at(damage.offset).with_next_intact(damage.next_intact)
}
