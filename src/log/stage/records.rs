//! Records in staged files, for the writing task and the reading commit.

use std::path::PathBuf;

use crate::error::{Error, ErrorKind, Result};
use crate::ground::checksum::crc32_more;
use crate::log::format::{Format, TagOf};
use crate::log::write::batch::Batch;
use crate::scan::framing::Framing;
use crate::scan::{Scanned, Scanner};
use crate::storage::{File, fork_generation};

use crate::transaction::{Desk, Part, StagedFile};

/// The size of a write.
const STAGED_BYTES: usize = 1 << 20;

/// A staged file that gets records.
#[derive(Debug)]
pub struct StagedWriter<F: Format> {
    part: Part,
    file: StagedFile,
    batch: Batch<F>,
    is_finished: bool,
    /// At its beginning.
    fork_generation: u64,
}

impl<F: Format> StagedWriter<F> {
    /// `part` has no records yet.
    pub(crate) fn create(
        desk: &Desk<'_>,
        job: &str,
        part: Part,
        framing: F::Framing,
    ) -> Result<Self> {
        let file = StagedFile::create(desk, job, &part)?;
        let (batch, fork_generation) = (Batch::with_framing(framing), fork_generation());
        Ok(Self { part, file, batch, is_finished: false, fork_generation })
    }

    /// Add a record. The staged file is unchanged if the record is beyond the limit.
    pub(crate) fn push(&mut self, tag: TagOf<F>, payload: &[u8]) -> Result<()> {
        self.batch.push_tagged(tag, payload)?;
        match self.batch.bytes_len() >= STAGED_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write(&self.batch.bytes)?;
        self.part.records += self.batch.len();
        self.batch.clear();
        Ok(())
    }

    /// Records so far.
    pub(crate) fn len(&self) -> u64 {
        self.part.records + self.batch.len()
    }

    /// Bytes up to now.
    pub(crate) fn bytes_len(&self) -> u64 {
        self.file.bytes_len() + self.batch.bytes_len() as u64
    }

    /// Make the file durable.
    pub(crate) fn finish(&mut self, desk: &Desk<'_>) -> Result<Part> {
        self.flush()?;
        let (bytes, sum) = self.file.finish(desk)?;
        self.is_finished = true;
        Ok(Part { bytes, sum, ..self.part.clone() })
    }

    /// Remove the file unless finished: no commit could take the file. A forked child has its
    /// parent's file, and leaves the file alone.
    pub(crate) fn give_up(&self, desk: &Desk<'_>) {
        if !self.is_finished && self.fork_generation == fork_generation() {
            let _ = self.file.discard(desk);
        }
    }
}

/// A staged file's records, whose checksum is compared at its end.
#[derive(Debug)]
pub struct StagedReader<'a, C: Framing> {
    part: &'a Part,
    path: PathBuf,
    file: Box<dyn File>,
    scanner: Scanner<C>,
    records: u64,
    sum: u32,
}

impl<'a, C: Framing> StagedReader<'a, C> {
    pub(crate) fn open(desk: &Desk<'_>, job: &str, part: &'a Part, framing: C) -> Result<Self> {
        let (path, file) = desk.open_part(job, part)?;
        let from = desk.staged_from;
        let scanner = Scanner::new(framing.by_lengths(), from, from + part.bytes);
        Ok(Self { part, path, file, scanner, records: 0, sum: 0 })
    }

    /// The next record.
    pub(crate) fn next(&mut self) -> Result<Option<(&[u8], C::Frame)>> {
        let scanned = self.scanner.next(&*self.file);
        match scanned.map_err(|e| Error::io("read the staged file", &self.path, e))? {
            Scanned::Record { frame, .. } => {
                self.records += 1;
                let record = self.scanner.bytes();
                self.sum = crc32_more(self.sum, record);
                Ok(Some((record, frame)))
            }
            Scanned::End if self.sum == self.part.sum && self.records == self.part.records => {
                Ok(None)
            }
            Scanned::End => Err(self.changed(format!(
                "it has {} records and checksum {:08x}, not {} and {:08x}",
                self.records, self.sum, self.part.records, self.part.sum
            ))),
            Scanned::Stop { offset, why } => {
                Err(self.changed(format!("byte {offset}: {}", why.reason())))
            }
        }
    }

    /// Refuse a file longer than its part.
    pub(crate) fn check_len(&self) -> Result<()> {
        let len = self.file.len();
        let len = len.map_err(|e| Error::io("look at the staged file", &self.path, e))?;
        match self.part.bytes == len {
            true => Ok(()),
            false => Err(self.changed(format!("it has {len} bytes, not {}", self.part.bytes))),
        }
    }

    /// The error of a file that changed after its task ended.
    pub(crate) fn changed(&self, why: String) -> Error {
        let message = format!("the staged file changed since its task wrote it: {why}");
        Error::new(ErrorKind::Corrupt, message).at(&self.path)
    }
}
