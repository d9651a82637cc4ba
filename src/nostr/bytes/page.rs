//! The pages of a segment: the header page, and records spread over pages. Pure, no I/O. Big-endian.
//!
//! ```text
//! page 0    | magic 4 | page_size 4 | created_at 8 | segment_id 4 | num_records 4 |
//!           | next_free_offset 4 | version 4 | compaction_marker 8 | zeros
//! page      | record | zeros                      a record that is shorter than a page
//!           | the first bytes of the record       a longer one, whose head counts the pages after it
//! further   | 43 4F 4E 54 | chunk_len 2 | chunk | zeros
//! ```
//!
//! Every record begins a page. A continuation page cannot be taken for the beginning of a record:
//! its magic, read as record_len, is above the limit of any record. So a reader can classify each
//! page alone, in any order.

use crate::error::{Error, ErrorKind, Result};
use crate::ground::checksum::crc32c;
use crate::ground::slice::{part, part_mut, u16_be_at, u32_be_at, u64_be_at};
use crate::scan::Bad;

use super::event::Flags;
use super::record::{
    CHUNK_HEAD_BYTES, FIXED_BYTES, FLAGS_AT, RECORD_BYTES_MAX, SHORT_HEAD_BYTES,
    needed_continuations,
};

/// `NSTR`.
const MAGIC: u32 = 0x4E53_5452;
const VERSION: u32 = 1;
/// `CONT`.
const CHUNK_MAGIC: u32 = 0x434F_4E54;

// In the header page.
const PAGE_SIZE_AT: usize = 4;
const CREATED_AT_AT: usize = PAGE_SIZE_AT + 4;
const SEGMENT_ID_AT: usize = CREATED_AT_AT + 8;
const NUM_RECORDS_AT: usize = SEGMENT_ID_AT + 4;
const NEXT_FREE_OFFSET_AT: usize = NUM_RECORDS_AT + 4;
/// The counters that appends change.
pub const HINTS_AT: usize = NUM_RECORDS_AT;
const VERSION_AT: usize = NEXT_FREE_OFFSET_AT + 4;
const COMPACTION_MARKER_AT: usize = VERSION_AT + 4;
/// Size of the header page's fields.
pub const HEADER_BYTES: usize = COMPACTION_MARKER_AT + 8;

// In a continuation page.
const CHUNK_LEN_AT: usize = 4;

const _: () = assert!(HEADER_BYTES == 40 && CHUNK_HEAD_BYTES == CHUNK_LEN_AT + 2);

/// A page has a power of two of bytes in this range.
pub const PAGE_BYTES: std::ops::RangeInclusive<u32> = 1024..=65_536;
/// The sizes of pages that the reference implementation reads.
pub const PAGE_BYTES_OF_REFERENCE: [u32; 3] = [4096, 8192, 16_384];
// No record begins as a continuation page does.
const _: () = assert!(RECORD_BYTES_MAX < CHUNK_MAGIC);

/// Whether a page may have so many bytes.
pub fn is_page_bytes(bytes: u32) -> bool {
    bytes.is_power_of_two() && PAGE_BYTES.contains(&bytes)
}

/// Refuse a size of a page.
pub fn check_page_bytes(bytes: u32) -> Result<(), String> {
    let (least, most) = PAGE_BYTES.into_inner();
    match is_page_bytes(bytes) {
        true => Ok(()),
        false => Err(format!("page size {bytes}, may be a power of two from {least} to {most}")),
    }
}

/// The header page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Size of a page.
    pub page_bytes: u32,
    /// When the segment was created, seconds since 1970.
    pub created_at: u64,
    /// Number of the segment.
    pub segment: u32,
    /// How many records were written. A hint: it may be older than the pages.
    pub records: u32,
    /// The first free byte: a hint, too.
    pub next_free: u32,
    /// When the segment was compacted last, or 0.
    pub compacted_at: u64,
}

impl Header {
    /// The fields.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut put = |at: usize, value: &[u8]| {
            part_mut(&mut bytes, at..at + value.len()).copy_from_slice(value);
        };
        put(0, &MAGIC.to_be_bytes());
        put(PAGE_SIZE_AT, &self.page_bytes.to_be_bytes());
        put(CREATED_AT_AT, &self.created_at.to_be_bytes());
        put(SEGMENT_ID_AT, &self.segment.to_be_bytes());
        put(NUM_RECORDS_AT, &self.records.to_be_bytes());
        put(NEXT_FREE_OFFSET_AT, &self.next_free.to_be_bytes());
        put(VERSION_AT, &VERSION.to_be_bytes());
        put(COMPACTION_MARKER_AT, &self.compacted_at.to_be_bytes());
        bytes
    }

    /// The counters that appends change.
    pub fn hints(&self) -> [u8; VERSION_AT - HINTS_AT] {
        part(&self.encode(), HINTS_AT..VERSION_AT).try_into().unwrap_or_default()
    }

    /// A checksum of the fields that never change.
    pub fn sum(&self) -> u32 {
        crc32c(part(&self.encode(), ..NUM_RECORDS_AT))
    }

    /// The header page at the start of a segment's file.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let not = |message: String| Error::new(ErrorKind::NotALog, message);
        let Some(fields) = bytes.get(..HEADER_BYTES) else {
            return Err(not(format!(
                "segment of {} bytes, its header has {HEADER_BYTES}",
                bytes.len()
            )));
        };
        let u32_of = |at| u32_be_at(fields, at).unwrap_or_default();
        let u64_of = |at| u64_be_at(fields, at).unwrap_or_default();
        if u32_of(0) != MAGIC {
            return Err(not(format!("magic {:08x}, a segment's is {MAGIC:08x}", u32_of(0))));
        }
        if u32_of(VERSION_AT) != VERSION {
            let message =
                format!("version {} of a segment, known is {VERSION}", u32_of(VERSION_AT));
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let page_bytes = u32_of(PAGE_SIZE_AT);
        check_page_bytes(page_bytes).map_err(not)?;
        Ok(Self {
            page_bytes,
            created_at: u64_of(CREATED_AT_AT),
            segment: u32_of(SEGMENT_ID_AT),
            records: u32_of(NUM_RECORDS_AT),
            next_free: u32_of(NEXT_FREE_OFFSET_AT),
            compacted_at: u64_of(COMPACTION_MARKER_AT),
        })
    }
}

/// Append a record's pages, the last one padded. `out` begins a page.
pub fn spread(record: &[u8], page_bytes: u32, out: &mut Vec<u8>) {
    let page_bytes = page_bytes as usize;
    let (first, rest) = record.split_at(record.len().min(page_bytes));
    out.extend_from_slice(first);
    for chunk in rest.chunks(page_bytes - CHUNK_HEAD_BYTES) {
        out.extend_from_slice(&CHUNK_MAGIC.to_be_bytes());
        out.extend_from_slice(&(chunk.len() as u16).to_be_bytes());
        out.extend_from_slice(chunk);
    }
    out.resize(out.len().next_multiple_of(page_bytes), 0);
}

/// The size of the pages for a record of that size.
pub fn bytes_for(record_len: u64, page_bytes: u32) -> u64 {
    let page_bytes = u64::from(page_bytes);
    let rest = record_len.saturating_sub(page_bytes);
    (1 + rest.div_ceil(page_bytes - CHUNK_HEAD_BYTES as u64)) * page_bytes
}

/// The size of a record, as read from the beginning of its first page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Size of the record.
    pub record_len: u32,
    /// How many pages follow its first one.
    pub continuations: u32,
}

impl Head {
    /// Check the beginning of a page; the file has `left` bytes from there.
    #[inline]
    pub fn parse(page: &[u8], page_bytes: u32, left: u64) -> Result<Self, Bad> {
        let (Some(record_len), Some(&flags)) = (u32_be_at(page, 0), page.get(FLAGS_AT)) else {
            return Err(bad("bytes of a record", page.len() as u64, "minimum", FIXED_BYTES as u64));
        };
        if record_len == CHUNK_MAGIC {
            return Err(bad("continuation pages", 1, "records before them", 0));
        }
        let continued = Flags(flags).contains(Flags::CONTINUED);
        let (least, most) = match continued {
            false => (FIXED_BYTES as u32, page_bytes - 1),
            true => (page_bytes + 2, RECORD_BYTES_MAX),
        };
        if record_len < least {
            return Err(bad("record_len", record_len.into(), "minimum", least.into()));
        }
        if record_len > most {
            return Err(bad("record_len", record_len.into(), "limit", most.into()));
        }
        let continuations = match continued {
            true => needed_continuations(record_len, page_bytes),
            false => 0,
        };
        let stored = u16_be_at(page, SHORT_HEAD_BYTES).filter(|_| continued).unwrap_or_default();
        if u32::from(stored) != continuations {
            let needed = continuations.into();
            return Err(bad("continuation_count", stored.into(), "pages needed", needed));
        }
        let head = Self { record_len, continuations };
        match head.file_bytes() {
            need if need > left => Err(bad("bytes of pages needed", need, "bytes there", left)),
            _ => Ok(head),
        }
    }

    /// Size of the record in the file, without the padding.
    pub fn file_bytes(self) -> u64 {
        u64::from(self.record_len) + u64::from(self.continuations) * CHUNK_HEAD_BYTES as u64
    }

    /// Size of the record's pages.
    pub fn pages_bytes(self, page_bytes: u32) -> u64 {
        (1 + u64::from(self.continuations)) * u64::from(page_bytes)
    }

    /// Size of the chunk in a continuation page, from 0 on.
    pub fn chunk_bytes(self, number: u32, page_bytes: u32) -> u32 {
        let chunk_bytes_max = page_bytes - CHUNK_HEAD_BYTES as u32;
        let before = page_bytes + number * chunk_bytes_max;
        self.record_len.saturating_sub(before).min(chunk_bytes_max)
    }
}

/// The chunk of a continuation page, which must have `chunk_bytes`.
pub fn chunk(page: &[u8], chunk_bytes: u32) -> Result<&[u8], Bad> {
    let magic = u32_be_at(page, 0).unwrap_or_default();
    if magic != CHUNK_MAGIC {
        let (magic, expected) = (magic.into(), CHUNK_MAGIC.into());
        return Err(bad("magic of a continuation page", magic, "expected", expected));
    }
    let len = u16_be_at(page, CHUNK_LEN_AT).unwrap_or_default();
    if u32::from(len) != chunk_bytes {
        return Err(bad("chunk_len", len.into(), "left of the record", chunk_bytes.into()));
    }
    let chunk = page.get(CHUNK_HEAD_BYTES..CHUNK_HEAD_BYTES + usize::from(len));
    chunk.ok_or_else(|| bad("bytes of a page", page.len() as u64, "chunk_len", len.into()))
}

/// Whether a page goes on with the record of the page before it.
pub fn is_continuation(page: &[u8]) -> bool {
    u32_be_at(page, 0) == Some(CHUNK_MAGIC)
}

/// Whether a page was never written.
pub fn is_blank(page: &[u8]) -> bool {
    page.iter().all(|&byte| byte == 0)
}

/// The whole pages that hold so many bytes of a file.
pub fn whole_pages(bytes: u64, page_bytes: u32) -> u64 {
    bytes.next_multiple_of(page_bytes.into())
}

fn bad(what: &'static str, found: u64, against: &'static str, expected: u64) -> Bad {
    Bad { what, found, against, expected, framed_len: None }
}
