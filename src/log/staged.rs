//! Staged files on their way into a log: read record by record, checked, copied.

use std::path::PathBuf;

use crate::checksum::crc32_more;
use crate::error::{Error, ErrorKind, Result};
use crate::log::extent::Extent;
use crate::log::format::Format;
use crate::log::framing::{Frame, Framing};
use crate::log::{Shared, State};
use crate::scan::{Scanned, Scanner};
use crate::sidecar::INDEX_BLOCK_BYTES;
use crate::storage::File;
use crate::transaction::{Part, Target};

/// Appended with one write.
const COPIED_BYTES: usize = 1 << 20;

impl<F: Format> Shared<F> {
    /// Append the parts but for their first `skip` bytes, which end with a record.
    pub(super) fn append_parts(
        &self,
        state: &mut State,
        job: &str,
        parts: &[Part],
        skip: u64,
    ) -> Result<()> {
        let total = parts.iter().map(|part| part.bytes).sum::<u64>() - skip;
        self.begin(state, total)?;
        let mut copy = Copy::after(state, skip);
        for part in parts {
            let copied = Staged::open(self, job, part);
            let mut staged = copied.map_err(|e| self.take_back(state, e))?;
            while let Some((record, sum)) = staged.next().map_err(|e| self.take_back(state, e))? {
                copy.push::<F::Framing>(record, sum);
                if copy.bytes.len() >= COPIED_BYTES {
                    copy.flush(self, state)?;
                }
            }
        }
        copy.flush(self, state)?;
        // Until now no reader took what is there for a record.
        self.write(state, &copy.head, state.extent.end)?;
        state.extent = copy.extent;
        for &(ordinal, offset) in &copy.cuts {
            self.close_block(state, ordinal, offset);
        }
        self.counters.appended(copy.appended, total);
        Ok(())
    }
}

/// A staged file's records, whose checksum is compared at its end.
pub(super) struct Staged<'a, F: Format> {
    part: &'a Part,
    path: PathBuf,
    file: Box<dyn File>,
    scanner: Scanner<F::Framing>,
    records: u64,
    sum: u32,
}

impl<'a, F: Format> Staged<'a, F> {
    pub(super) fn open(shared: &'a Shared<F>, job: &str, part: &'a Part) -> Result<Self> {
        let (path, file) = shared.desk().open_part(job, part)?;
        let scanner = Scanner::new(shared.appending.by_lengths(), 0, part.bytes);
        Ok(Self { part, path, file, scanner, records: 0, sum: 0 })
    }

    /// The next record, and its stored checksum.
    pub(super) fn next(&mut self) -> Result<Option<(&[u8], u32)>> {
        let scanned = self.scanner.next(&*self.file);
        let fail = |e| Error::io("read the staged file", &self.path, e);
        match scanned.map_err(fail)? {
            Scanned::Record { frame, .. } => {
                self.records += 1;
                let record = self.scanner.bytes();
                self.sum = crc32_more(self.sum, record);
                Ok(Some((record, frame.sum())))
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

    fn changed(&self, why: String) -> Error {
        let message = format!("the staged file changed since its task wrote it: {why}");
        Error::new(ErrorKind::Corrupt, message).of(F::NAME).at(&self.path)
    }
}

/// Records on their way into a log.
struct Copy {
    /// Bytes of the parts that are there already.
    skip: u64,
    /// The log with what was copied.
    extent: Extent,
    /// Records copied.
    appended: u64,
    /// The first record's head.
    head: Vec<u8>,
    /// What is to be written next, and where.
    bytes: Vec<u8>,
    at: u64,
    /// Begin of the index's open block.
    block_start: u64,
    /// Where blocks for the index may end: number of the record to come, and byte.
    cuts: Vec<(u64, u64)>,
}

impl Copy {
    fn after(state: &State, skip: u64) -> Self {
        let State { extent, block_start, .. } = *state;
        let (head, bytes, cuts) = (Vec::new(), Vec::with_capacity(COPIED_BYTES), Vec::new());
        Self { skip, extent, appended: 0, head, bytes, at: extent.end, block_start, cuts }
    }

    fn push<C: Framing>(&mut self, record: &[u8], sum: u32) {
        let len = record.len() as u64;
        if self.skip > 0 {
            self.skip -= len;
            return;
        }
        let mut rest = record;
        if self.head.is_empty() {
            let (head, body) = record.split_at(C::HEAD_BYTES.min(record.len()));
            (self.head, rest) = (head.to_vec(), body);
            self.at += head.len() as u64;
        }
        self.bytes.extend_from_slice(rest);
        self.appended += 1;
        let offset = self.extent.end;
        self.extent.push_parts(offset, len, sum);
        if self.extent.end >= self.block_start + INDEX_BLOCK_BYTES {
            self.block_start = self.extent.end;
            self.cuts.push((self.extent.next(), self.extent.end));
        }
    }

    fn flush<F: Format>(&mut self, shared: &Shared<F>, state: &mut State) -> Result<()> {
        shared.write(state, &self.bytes, self.at)?;
        self.at += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }
}
