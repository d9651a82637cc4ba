//! Payloads in parts: payloads of any size, in one block of memory.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::ground::slice::{part, part_mut};
use crate::log::extent::Extent;
use crate::log::format::Format;
use crate::log::{Log, Shared};
use crate::scan::framing::{Frame, Framing, FramingExt, Shape};
use crate::scan::{Step, Stop};
use crate::storage::{File, read_full};

/// Reads a record's payload in parts. The reader compares the checksum before it returns the last
/// part: a payload read to the end is intact. Deeds of the layout `slots` have no checksum, so the
/// reader compares lengths.
///
/// Each read goes to the file. A caller that reads few bytes at a time wraps the reader in a
/// [`BufReader`](io::BufReader).
#[derive(Debug)]
pub struct PayloadReader<F: Format> {
    file: Arc<dyn File>,
    path: PathBuf,
    framing: F::Framing,
    name: String,
    /// Byte of the record.
    offset: u64,
    frame: <F::Framing as Framing>::Frame,
    head: Vec<u8>,
    tail: Vec<u8>,
    /// Of the payload: next byte to read, and the one after the last.
    at: u64,
    end: u64,
    sum: Option<u64>,
}

impl<F: Format> PayloadReader<F> {
    /// Size of the whole payload, bytes.
    pub fn size(&self) -> u64 {
        self.frame.payload_len()
    }

    /// Bytes not read yet.
    pub fn left(&self) -> u64 {
        self.end - self.at
    }

    pub(crate) fn frame(&self) -> <F::Framing as Framing>::Frame {
        self.frame
    }

    /// Read up to `block.len()` bytes; 0 at the end. With the last part the record is proved intact.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) if the record is damaged; see [Errors](crate#errors).
    pub fn read_part(&mut self, block: &mut [u8]) -> Result<usize> {
        let want = self.left().min(block.len() as u64) as usize;
        let block = part_mut(block, ..want);
        let read = read_full(&*self.file, block, self.at)
            .map_err(|e| Error::io("read the log", &self.path, e).of(F::NAME).offset_at(self.at))?;
        if read < want {
            let need = self.frame.len();
            let left = self.at + read as u64 - self.offset;
            return Err(self.damaged(&Stop::Incomplete { need, left }));
        }
        let sum = self.sum.map(|sum| F::Framing::SUM.more(sum, block));
        if want > 0 && self.at + want as u64 == self.end {
            self.check(sum)?;
        }
        self.at += want as u64;
        self.sum = sum;
        Ok(want)
    }

    /// Whether the rest of the payload equals `bytes`.
    #[cfg(feature = "lmdb")]
    pub(crate) fn is_rest(&mut self, bytes: &[u8]) -> Result<bool> {
        if self.left() != bytes.len() as u64 {
            return Ok(false);
        }
        let mut block = vec![0; PART_BYTES.min(bytes.len())];
        for part in bytes.chunks(PART_BYTES) {
            let read = self.read_part(&mut block)?;
            if block.get(..read) != Some(part) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn check(&self, sum: Option<u64>) -> Result<()> {
        match self.framing.parse_around(&self.head, &self.tail, sum.unwrap_or_default()) {
            Step::Bad(bad) => Err(self.damaged(&Stop::Bad(bad))),
            _ => Ok(()),
        }
    }

    fn damaged(&self, why: &Stop) -> Error {
        let message = format!("{}: {}", self.name, why.reason());
        Error::new(ErrorKind::Corrupt, message).of(F::NAME).at(&self.path).offset_at(self.offset)
    }
}

impl<F: Format> Read for PayloadReader<F> {
    fn read(&mut self, block: &mut [u8]) -> io::Result<usize> {
        self.read_part(block).map_err(io::Error::from)
    }
}

/// Payloads are copied in parts of this size.
pub const PART_BYTES: usize = 1 << 20;

impl<F: Format> Log<F> {
    /// The payload of a record, by its number.
    pub fn payload_by_ordinal(&self, ordinal: u64) -> Result<PayloadReader<F>> {
        self.numbered_extent()?;
        self.as_it_is_now(|shared| {
            let extent = shared.extent();
            shared.check_is_there(extent, ordinal)?;
            let offset = shared.locate_ordinal(extent, ordinal)?;
            shared.payload_at(extent, Some(ordinal), offset)
        })
    }

    /// The payload of the record that begins at a byte.
    pub fn payload_by_offset(&self, offset: u64) -> Result<PayloadReader<F>> {
        self.as_it_is_now(|shared| {
            let extent = shared.extent();
            shared.locate_offset(extent, offset)?;
            if offset == extent.end {
                return Err(shared.no_record_at_end(offset));
            }
            shared.payload_at(extent, None, offset)
        })
    }
}

impl<F: Format> Shared<F> {
    /// The payload of the record at a byte that is known to lie between records.
    pub fn payload_at(
        &self,
        extent: Extent,
        ordinal: Option<u64>,
        offset: u64,
    ) -> Result<PayloadReader<F>> {
        let framing = self.framing;
        let Shape { head, tail, .. } = framing.shape();
        let (mut head, mut tail) = (vec![0; head], vec![0; tail]);
        let name = F::name_of(ordinal, offset);
        let damaged = |why: Stop| {
            let message = format!("{name}: {}", why.reason());
            self.error(ErrorKind::Corrupt, message).offset_at(offset)
        };
        let read = |bytes: &mut [u8], at: u64| {
            let read = read_full(&*self.file, bytes, at);
            read.map_err(|e| self.fail("read the log", e).offset_at(at))
        };
        let there = extent.end - offset;
        let lengths = framing.by_lengths();
        let got = read(&mut head, offset)?;
        let len = match lengths.parse(part(&head, ..got)) {
            Step::Record { len, .. } => len,
            Step::NeedMore(len) if len <= there => len,
            Step::NeedMore(need) => return Err(damaged(Stop::Incomplete { need, left: there })),
            Step::Blank => return Err(damaged(Stop::Blank)),
            Step::Bad(bad) => return Err(damaged(Stop::Bad(bad))),
        };
        let end = offset + len - tail.len() as u64;
        read(&mut tail, end)?;
        let frame = match lengths.parse_around(&head, &tail, 0) {
            Step::Record { frame, .. } => frame,
            Step::Bad(bad) => return Err(damaged(Stop::Bad(bad))),
            _ => return Err(damaged(Stop::Incomplete { need: len, left: there })),
        };
        let at = offset + head.len() as u64;
        let reader = PayloadReader {
            file: self.file.clone(),
            path: self.place.log.clone(),
            framing,
            sum: framing.needs_sum().then(|| framing.sum_of_head(&head)),
            name,
            offset,
            frame,
            head,
            tail,
            at,
            end,
        };
        if at == end {
            reader.check(reader.sum)?;
        }
        Ok(reader)
    }
}
