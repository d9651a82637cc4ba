//! The memory of one walk over damage: found places, and budgets of bytes to read. Without both,
//! the time to read a log with many damaged records grows with the square of the log's size.

use std::fmt::{self, Debug, Formatter};
use std::io;
use std::sync::Arc;

use super::trailers::Trailers;
use crate::ground::locks::{Mutex, lock};
use crate::ground::slice::{part, part_mut};
use crate::scan::Scanner;
use crate::scan::framing::Framing;
use crate::scan::search::Budget;
use crate::storage::end_of_data;
use crate::storage::{File, FileId, read_full};

/// A longer read bypasses the window.
const SMALL_READ_BYTES: usize = 64 << 10;
/// The file is kept in blocks of this size.
const BLOCK_BYTES: usize = 16 << 10;
/// The number of blocks in memory.
const BLOCKS: usize = 32;

/// The places found by a walk over damage, and the walk's budgets.
pub struct Learnt<F: Framing> {
    /// The records that end near the damage, by the lengths at their ends.
    pub trailers: Trailers,
    /// The records that end near the heads of chains, further on. All chains share one: with one
    /// for each candidate, each candidate read the rest of the file again.
    pub ahead: Trailers,
    /// The chain of records that was walked last.
    pub chain: Option<Walked<F>>,
    /// The bytes that searches for records may still read.
    pub search: Budget,
    /// The bytes that checks for one wrong bit in a length may still read.
    pub corrections: Budget,
    /// A damaged record claims more bytes than the log has. The record may be torn, and its payload
    /// may hold all later records.
    pub is_torn: bool,
    /// The end of the bytes searched for data, and the end of the data.
    pub data: Option<(u64, u64)>,
    /// Blocks near the damage: the search reads them many times.
    window: Arc<Mutex<Window>>,
}

impl<F: Framing> Default for Learnt<F> {
    fn default() -> Self {
        let (trailers, ahead) = (Trailers::default(), Trailers::default());
        let (search, corrections) = (Budget::for_bytes(0), Budget::for_bytes(0));
        Self {
            trailers,
            ahead,
            chain: None,
            search,
            corrections,
            is_torn: false,
            data: None,
            window: Arc::default(),
        }
    }
}

impl<F: Framing> Learnt<F> {
    /// Begin to read on after the damage at `at`, in a log whose bytes end at `end`; returns the
    /// end of the data. A log that grew since the last damage has new bytes and a new budget.
    pub fn begin(&mut self, file: &dyn File, at: u64, end: u64) -> io::Result<u64> {
        if self.data.is_none_or(|(known_end, _)| known_end != end) {
            let budget = Budget::for_bytes(end.saturating_sub(at));
            *self = Self { search: budget, corrections: budget, ..Self::default() };
        }
        if let Some((_, data_end)) = self.data.filter(|&(_, data_end)| data_end > at) {
            return Ok(data_end);
        }
        let data_end = end_of_data(file, at, end)?;
        self.data = Some((end, data_end));
        Ok(data_end)
    }

    /// The file through the window, so that short reads close to each other are read once.
    pub fn near<'a>(&self, file: &'a dyn File) -> Near<'a> {
        Near { file, window: self.window.clone(), flip: None }
    }
}

impl<F: Framing> Debug for Learnt<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Learnt").finish_non_exhaustive()
    }
}

/// A chain of records. Damaged records belong to the chain if a length leads on.
#[derive(Debug)]
pub struct Walked<F: Framing> {
    /// Reads the chain again, next to the search, to tell which candidates are on the chain.
    pub tail: Scanner<F>,
    /// The place that the chain has reached.
    pub head: Scanner<F>,
    /// Records between the two.
    pub records: u64,
    /// No record of the chain follows the head.
    pub is_broken: bool,
    /// The border and the end of data at the time of the walk.
    pub goal: (Option<u64>, u64),
}

/// The blocks of the file read last. A walk over damage looks at a few places that each move on:
/// the damage, the target of its length, and both ends of the chain. A single window would be read
/// again at each step from one place to another.
#[derive(Debug, Default)]
struct Window {
    /// Block `n` of the file is kept at `n % BLOCKS`, with its number.
    blocks: Vec<(u64, Vec<u8>)>,
}

/// A file as the walk over damage reads it.
#[derive(Clone, Debug)]
pub struct Near<'a> {
    file: &'a dyn File,
    window: Arc<Mutex<Window>>,
    /// A byte, and its bits to read inverted.
    flip: Option<(u64, u8)>,
}

impl Near<'_> {
    /// Read through the blocks in memory. A block may begin before the log does, in bytes that were
    /// dropped and cannot be read: then only the bytes asked for are.
    fn read_near(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = lock(&self.window).read(self.file, buf, offset);
        read.or_else(|_| self.file.read_at(buf, offset))
    }

    /// The same file with other bits in a byte.
    pub fn flipped(&self, at: u64, bits: u8) -> Self {
        Self { flip: Some((at, bits)), ..self.clone() }
    }
}

impl File for Near<'_> {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn id(&self) -> io::Result<FileId> {
        self.file.id()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = match buf.len() <= SMALL_READ_BYTES {
            true => self.read_near(buf, offset)?,
            false => self.file.read_at(buf, offset)?,
        };
        if let Some((at, bits)) = self.flip
            && let Some(at) = at.checked_sub(offset)
            && let Some(byte) = part_mut(buf, ..read).get_mut(at as usize)
        {
            *byte ^= bits;
        }
        Ok(read)
    }

    fn data_from(&self, offset: u64) -> io::Result<u64> {
        self.file.data_from(offset)
    }
}

impl Window {
    fn read(&mut self, file: &dyn File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            let at = offset + done as u64;
            let rest = part_mut(buf, done..);
            let skip = (at % BLOCK_BYTES as u64) as usize;
            let wanted = rest.len().min(BLOCK_BYTES - skip);
            let block = self.block(file, at / BLOCK_BYTES as u64, skip + wanted)?;
            let there = block.get(skip..).unwrap_or_default();
            let read = there.len().min(wanted);
            part_mut(rest, ..read).copy_from_slice(part(there, ..read));
            done += read;
            if read < wanted {
                break;
            }
        }
        Ok(done)
    }

    /// Block `number`, read again if it has less than `need` bytes: the file may have grown.
    fn block(&mut self, file: &dyn File, number: u64, need: usize) -> io::Result<&[u8]> {
        self.blocks.resize_with(BLOCKS, Default::default);
        let kept = (number % BLOCKS as u64) as usize;
        let Some((kept_number, bytes)) = self.blocks.get_mut(kept) else { return Ok(&[]) };
        if *kept_number != number || bytes.len() < need {
            // A failed read leaves an empty block.
            let mut block = std::mem::take(bytes);
            block.resize(BLOCK_BYTES, 0);
            let read = read_full(file, &mut block, number * BLOCK_BYTES as u64)?;
            block.truncate(read);
            (*kept_number, *bytes) = (number, block);
        }
        Ok(bytes)
    }
}
