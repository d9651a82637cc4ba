//! Walking backwards, from length trailer to length trailer.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::cursor::DeedRef;
use super::format::{FORMAT, FRAMING_BYTES, Frame, HEADER_BYTES, MUG_BYTES, Packed};
use crate::error::{Error, ErrorKind, Result};
use crate::scan::{Parse, Step};
use crate::storage::{File, read_full};

/// Walks backwards, from length trailer to length trailer.
#[derive(Debug)]
pub struct BackCursor {
    file: Arc<dyn File>,
    path: PathBuf,
    codec: Packed,
    /// Byte behind the next deed to give.
    end: u64,
    /// Number of the deed behind it.
    event: u64,
    /// Give no deed below this number.
    start: u64,
    buf: Vec<u8>,
    buf_start: u64,
    long: Vec<u8>,
}

const BACK_BLOCK_BYTES: u64 = 256 << 10;

impl BackCursor {
    pub(crate) fn new(
        file: Arc<dyn File>,
        path: PathBuf,
        codec: Packed,
        end: u64,
        event: u64,
        start: u64,
    ) -> Self {
        let buf_start = end;
        Self { file, path, codec, end, event, start, buf: Vec::new(), buf_start, long: Vec::new() }
    }

    /// The next deed, going down.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<DeedRef<'_>>> {
        if self.event <= self.start {
            return Ok(None);
        }
        let event = self.event - 1;
        let fail = |e| Error::io("read the log", &self.path, e).offset_at(self.end).of(FORMAT);
        if self.end.saturating_sub(self.buf_start) < BACK_BLOCK_BYTES / 4
            && self.buf_start > HEADER_BYTES
        {
            let from = self.end.saturating_sub(BACK_BLOCK_BYTES).max(HEADER_BYTES);
            self.buf.resize((self.end - from) as usize, 0);
            let read = crate::storage::read_full(&*self.file, &mut self.buf, from).map_err(fail)?;
            self.buf.truncate(read);
            self.buf_start = from;
        }
        let window = Window { bytes: &self.buf, start: self.buf_start, file: &*self.file };
        let found = deed_before(&window, self.codec, HEADER_BYTES, self.end, &mut self.long);
        match found.map_err(fail)? {
            Ok((offset, frame)) => {
                self.end = offset;
                self.event = event;
                let jam = frame.jam(&self.long);
                Ok(Some(DeedRef { event: Some(event), offset, mug: frame.mug, jam }))
            }
            Err(reason) => {
                let message = format!("deed {event}, read backwards: {reason}");
                self.start = self.event;
                let error = Error::new(ErrorKind::Corrupt, message).of(FORMAT).at(&self.path);
                Err(error.offset_at(self.end))
            }
        }
    }
}

/// A file of which a stretch is in memory already.
#[derive(Debug)]
struct Window<'a> {
    bytes: &'a [u8],
    start: u64,
    file: &'a dyn File,
}

impl File for Window<'_> {
    fn len(&self) -> std::io::Result<u64> {
        self.file.len()
    }

    fn id(&self) -> std::io::Result<crate::storage::FileId> {
        self.file.id()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> std::io::Result<usize> {
        let at = offset.checked_sub(self.start).and_then(|at| usize::try_from(at).ok());
        match at.and_then(|at| self.bytes.get(at..at.checked_add(buf.len())?)) {
            Some(there) => {
                buf.copy_from_slice(there);
                Ok(buf.len())
            }
            None => self.file.read_at(buf, offset),
        }
    }

    fn write_at(&self, _buf: &[u8], _offset: u64) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn set_len(&self, _len: u64) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn allocate(&self, _len: u64) -> std::io::Result<bool> {
        Ok(false)
    }

    fn sync_data(&self) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

/// Whether an intact deed ends at `end` and starts where its length trailer says; for walking
/// backwards. Returns its offset and frame, with its bytes in `deed`.
pub fn deed_before(
    file: &dyn File,
    codec: Packed,
    start: u64,
    end: u64,
    deed: &mut Vec<u8>,
) -> io::Result<Result<(u64, Frame), String>> {
    let mut trailer = [0; 8];
    if end < start + FRAMING_BYTES + MUG_BYTES {
        return Ok(Err(format!("{} bytes, a deed has at least 24", end.saturating_sub(start))));
    }
    read_full(file, &mut trailer, end - 8)?;
    let len = u64::from_le_bytes(trailer);
    let whole = len.saturating_add(FRAMING_BYTES);
    if len < MUG_BYTES || len > codec.deed_bytes_max || whole > end - start {
        let most = codec.deed_bytes_max.min(end - start - FRAMING_BYTES);
        return Ok(Err(format!("length trailer {len}, possible are {MUG_BYTES} to {most}")));
    }
    let offset = end - whole;
    let mut head = [0; 8];
    read_full(file, &mut head, offset)?;
    if head != trailer {
        let found = u64::from_le_bytes(head);
        return Ok(Err(format!("length {found}, length trailer {len}")));
    }
    deed.resize(whole as usize, 0);
    let read = read_full(file, deed, offset)?;
    match codec.parse(deed.get(..read).unwrap_or_default()) {
        Step::Record { frame, .. } => Ok(Ok((offset, frame))),
        Step::Bad(bad) => Ok(Err(bad.reason())),
        _ => Ok(Err(format!("{read} bytes read, the deed has {whole}"))),
    }
}
