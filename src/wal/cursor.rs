//! Walking over records, without an allocation per record.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Shared;
use super::format::{Codec, FORMAT, Frame, HEADER_BYTES, Lsn};
use super::survey::{Borders, resync};
use crate::error::{Error, ErrorKind, Result};
use crate::locks::atomic::Ordering;
pub use crate::scan::OnCorrupt;
use crate::scan::{Damage, Found, Parse, Scanner, Step, Stop};
use crate::storage::File;

/// A record, borrowed from its cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// The byte at which it begins.
    pub lsn: Lsn,
    /// The payload.
    pub payload: &'a [u8],
}

impl RecordRef<'_> {
    /// Size in the log with the header, bytes.
    pub fn framed_len(&self) -> u64 {
        self.payload.len() as u64 + HEADER_BYTES
    }

    /// LSN of the next record.
    pub fn next_lsn(&self) -> Lsn {
        Lsn(self.lsn.0 + self.framed_len())
    }
}

/// Walks forwards.
#[derive(Debug)]
pub struct Cursor {
    file: Arc<dyn File>,
    path: PathBuf,
    codec: Codec,
    scanner: Scanner<Codec>,
    on_corrupt: OnCorrupt,
    borders: Borders,
    damages: Vec<Damage>,
    /// Damage that no record of the range shows, to be told at its end.
    trailing: Option<Damage>,
    finished: bool,
    /// The log, and how often its end was cut when the walk began: others may change it under us.
    log: Option<(Arc<Shared>, u64)>,
}

impl Cursor {
    /// Walk the records in `start..end`.
    pub(crate) fn new(
        file: Arc<dyn File>,
        path: &Path,
        codec: Codec,
        start: u64,
        end: u64,
        on_corrupt: OnCorrupt,
        borders: Borders,
    ) -> Self {
        let scanner = Scanner::new(codec, start, end);
        let (damages, trailing, path) = (Vec::new(), None, path.to_path_buf());
        let (finished, log) = (false, None);
        Self { file, path, codec, scanner, on_corrupt, borders, damages, trailing, finished, log }
    }

    /// Tell of what was dropped or cut under the walk as such, and not as damage.
    #[must_use]
    pub(super) fn of(mut self, log: Arc<Shared>) -> Self {
        let cuts = log.cuts.load(Ordering::Acquire);
        self.log = Some((log, cuts));
        self
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

    /// Whether the next record lies in memory already, so that [`Cursor::next`] will not read.
    pub fn ready(&self) -> bool {
        let codec = Codec { check: false, ..self.codec };
        self.finished || matches!(codec.parse(self.scanner.ahead()), Step::Record { .. })
    }

    /// Bytes of the log before the end of the range.
    #[cfg(feature = "arrow")]
    pub(crate) fn bytes_left(&self) -> u64 {
        self.scanner.end().saturating_sub(self.scanner.position())
    }

    /// Byte behind the last record given.
    pub fn position(&self) -> Lsn {
        Lsn(self.scanner.position())
    }

    /// The next record.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<RecordRef<'_>>> {
        match self.advance()? {
            None => Ok(None),
            Some((lsn, frame)) => {
                Ok(Some(RecordRef { lsn, payload: frame.payload(self.scanner.bytes()) }))
            }
        }
    }

    /// Step to the next record; [`Cursor::bytes`] gives its bytes.
    pub(crate) fn advance(&mut self) -> Result<Option<(Lsn, Frame)>> {
        let at = self.scanner.position();
        self.step().map_err(|error| match &self.log {
            Some((log, cuts)) => log.why(at, *cuts, error),
            None => error,
        })
    }

    fn step(&mut self) -> Result<Option<(Lsn, Frame)>> {
        loop {
            if self.finished {
                return Ok(None);
            }
            let found = self.scanner.next(&*self.file).map_err(|e| self.read_error(e))?;
            match found {
                Found::Record { offset, frame } => return Ok(Some((Lsn(offset), frame))),
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

    /// The whole bytes of the record stepped to last.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.scanner.bytes()
    }

    fn pass_over(&mut self, offset: u64, why: &Stop) -> Result<()> {
        let end = self.scanner.end();
        let found = resync(&*self.file, self.codec, offset, why, end, &self.borders)
            .map_err(|e| self.read_error(e))?;
        if self.on_corrupt == OnCorrupt::Raise {
            self.finished = true;
            let damage = found.damage.unwrap_or_else(|| Damage {
                offset,
                end,
                reason: format!("record at lsn {offset}: {}", why.reason()),
                next_intact: None,
                first_lost: None,
                records_lost: None,
            });
            return Err(self.corrupt(&damage));
        }
        self.damages.extend(found.damage);
        match found.next {
            Some(next) => self.scanner.seek(next),
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
pub fn corrupt(path: &Path, damage: &Damage, kind: ErrorKind) -> Error {
    let error = Error::new(kind, damage.reason.clone()).of(FORMAT).at(path);
    error.offset_at(damage.offset).with_next_intact(damage.next_intact)
}
