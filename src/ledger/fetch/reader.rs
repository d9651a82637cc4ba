//! Reading a finished file as the body of a request.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::walk::{Payloads, Walk, changed, fail};
use crate::error::{Error, Result};
use crate::ground::slice::{part, part_mut};
use crate::ledger::codec::Frame;
use crate::ledger::directory::Finished;
use crate::ledger::directory::look::Seen;
use crate::scan::framing::Frame as _;
use crate::scan::{Damage, Verdict};

/// The bytes around the records of a body.
#[derive(Clone, Debug, Default)]
pub struct Around {
    pub header: Vec<u8>,
    pub footer: Vec<u8>,
    pub separator: Vec<u8>,
}

/// A finished file as bytes to be sent: header, records with a separator between them, footer.
///
/// A reader outlives its store. In memory it holds a record and a block of the file, whatever the
/// file's size. The fetch checked every record, so the body has exactly
/// [`LedgerReader::content_length`] bytes, or ends with an error if somebody changed the file
/// meanwhile. After a failed attempt, send again from [`Seek::rewind`], or from any other place.
pub struct LedgerReader {
    index: u32,
    path: PathBuf,
    around: Arc<Around>,
    walk: Walk,
    records: u64,
    content_length: u64,
    verdict: Verdict,
    damages: Arc<[Damage]>,
    /// The begin of the next read, as sought.
    wanted: u64,
    /// The end of the last read.
    at: u64,
    place: Coming,
    /// Bytes of that place already given.
    given: usize,
}

/// The next bytes of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coming {
    Header,
    /// The next record must be read, which may fail; the first record has no separator in front.
    Unread {
        first: bool,
    },
    Separator(Frame),
    Payload(Frame),
    Footer,
    End,
}

impl LedgerReader {
    /// A reader of a file after a look.
    pub(super) fn new(found: Finished, seen: Seen, around: Around) -> Self {
        let walk = Walk::new(found.file, seen.codec, seen.runs.into());
        let mut reader = Self::over(walk, Arc::new(around), seen.records, seen.payload_bytes);
        (reader.index, reader.path) = (found.index, found.path);
        (reader.verdict, reader.damages) = (seen.verdict, seen.damages.into());
        reader
    }

    fn over(walk: Walk, around: Arc<Around>, records: u64, payload_bytes: u64) -> Self {
        let separators = around.separator.len() as u64 * records.saturating_sub(1);
        let outside = (around.header.len() + around.footer.len()) as u64;
        Self {
            index: 0,
            path: PathBuf::new(),
            content_length: payload_bytes + separators + outside,
            around,
            walk,
            records,
            verdict: Verdict::Clean,
            damages: Arc::default(),
            wanted: 0,
            at: 0,
            place: Coming::Header,
            given: 0,
        }
    }

    /// How many bytes it gives from beginning to end.
    pub fn content_length(&self) -> u64 {
        self.content_length
    }

    /// Number of records.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The file's number.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes before the records.
    pub fn header(&self) -> &[u8] {
        &self.around.header
    }

    /// The bytes after the records.
    pub fn footer(&self) -> &[u8] {
        &self.around.footer
    }

    /// The bytes between two records.
    pub fn separator(&self) -> &[u8] {
        &self.around.separator
    }

    /// The crate's error for one of reading, with the file's path.
    pub fn error_of(&self, e: io::Error) -> Error {
        self.fail(e)
    }

    /// How the file ends.
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The damaged stretches of the file.
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// Another reader of some of the records, the first one being 0, with the same header and footer;
    /// `None` if there are none. For a server that takes no body as long as this.
    ///
    /// # Errors
    ///
    /// Fails if the files cannot be read; see [Errors](crate#errors).
    pub fn part(&self, records: Range<u64>) -> Result<Option<Self>> {
        let end = records.end.min(self.records);
        if records.start >= end {
            return Ok(None);
        }
        let (runs, payload_bytes) =
            self.walk.runs_of(records.start..end).map_err(|e| self.fail(e))?;
        let walk = Walk::new(self.walk.file.clone(), self.walk.codec, runs.into());
        let part = Self::over(walk, self.around.clone(), end - records.start, payload_bytes);
        let (path, damages) = (self.path.clone(), self.damages.clone());
        Ok(Some(Self { index: self.index, path, verdict: self.verdict, damages, ..part }))
    }

    /// The payloads of the records, one after the other, whatever was read before. The walk ends after the first error:
    /// [`Corrupt`](crate::ErrorKind::Corrupt) for a file that changed since the fetch.
    pub fn payloads(&self) -> impl Iterator<Item = Result<Vec<u8>>> + Send + Sync + use<> {
        Payloads::over(&self.walk, &self.path)
    }

    fn fail(&self, e: io::Error) -> Error {
        fail(&self.path, e)
    }

    fn piece(&self) -> &[u8] {
        match self.place {
            Coming::Header => &self.around.header,
            Coming::Separator(_) => &self.around.separator,
            Coming::Payload(frame) => frame.payload(self.walk.bytes()),
            Coming::Footer => &self.around.footer,
            Coming::Unread { .. } | Coming::End => &[],
        }
    }

    /// Go to the next place. After an error it stays, and the next call fails again.
    fn step(&mut self) -> io::Result<()> {
        self.place = match self.place {
            Coming::Header => Coming::Unread { first: true },
            Coming::Unread { first } => match self.walk.next()? {
                Some(frame) if first => Coming::Payload(frame),
                Some(frame) => Coming::Separator(frame),
                None if self.at == self.footer_at() => Coming::Footer,
                None => {
                    let (at, announced) = (self.at, self.footer_at());
                    return Err(changed(format!("{at} bytes, {announced} announced")));
                }
            },
            Coming::Separator(frame) => Coming::Payload(frame),
            Coming::Payload(_) => Coming::Unread { first: false },
            Coming::Footer | Coming::End => {
                self.walk.forget();
                Coming::End
            }
        };
        self.given = 0;
        Ok(())
    }

    fn footer_at(&self) -> u64 {
        self.content_length - self.around.footer.len() as u64
    }

    /// Go to where the caller sought.
    fn align(&mut self) -> io::Result<()> {
        if self.wanted >= self.footer_at() {
            // Without reading all the records.
            self.walk.forget();
            let past = self.wanted - self.footer_at();
            self.given = past.min(self.around.footer.len() as u64) as usize;
            (self.place, self.at) = (Coming::Footer, self.wanted);
            return Ok(());
        }
        if self.wanted < self.at || matches!(self.place, Coming::Footer | Coming::End) {
            self.walk = self.walk.rewound();
            (self.place, self.given, self.at) = (Coming::Header, 0, 0);
        }
        while self.at < self.wanted {
            let left = self.piece().len() - self.given;
            let skipped = (self.wanted - self.at).min(left as u64) as usize;
            self.given += skipped;
            self.at += skipped as u64;
            if self.at < self.wanted {
                self.step()?;
            }
        }
        Ok(())
    }
}

impl Read for LedgerReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.at != self.wanted {
            self.align()?;
        }
        let mut done = 0;
        while done < buf.len() && self.place != Coming::End {
            let rest = part(self.piece(), self.given..);
            let count = rest.len().min(buf.len() - done);
            part_mut(buf, done..done + count).copy_from_slice(part(rest, ..count));
            done += count;
            self.given += count;
            self.at += count as u64;
            self.wanted = self.at;
            if done < buf.len()
                && let Err(e) = self.step()
            {
                // Return the bytes read first, then the error.
                return if done > 0 { Ok(done) } else { Err(e) };
            }
        }
        Ok(done)
    }
}

/// Costs nothing; the next read goes there, and reads the records before if it goes back.
impl Seek for LedgerReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let from = |start: u64, by: i64| start.checked_add_signed(by);
        let wanted = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => from(self.wanted, by),
            SeekFrom::End(by) => from(self.content_length, by),
        };
        self.wanted = wanted.ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "a place before the beginning")
        })?;
        Ok(self.wanted)
    }
}

impl fmt::Debug for LedgerReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LedgerReader")
            .field("path", &self.path)
            .field("records", &self.records)
            .field("content_length", &self.content_length)
            .field("verdict", &self.verdict)
            .finish_non_exhaustive()
    }
}
