//! The bytes of records: encode, parse, flags, trailer. Pure, no I/O. Big-endian.
//!
//! ```text
//! head      | record_len 4 | flags 1 |                           size of the whole record
//!           | record_len 4 | flags 1 | continuation_count 2 |    of one that goes on in further pages
//! body      | id 32 | pubkey 32 | created_at 4 | kind 2 | tags_len 4 | tags |
//!           | content_len 4 | content | sig 64 | reserved 1 | [crc 8] |
//! reserved  bit 0: crc follows, CRC-64/XZ of what precedes it, with the flags masked to 80
//! ```
//!
//! The write-ahead log stores a record as these bytes. Pages store the same bytes, interrupted by
//! the heads of continuation pages (`page.rs`). A record of a page's size or more has the longer
//! head.

use super::format::FORMAT;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::checksum::{crc64, crc64_of};
use crate::ground::slice::{part, part_mut, there, u16_be_at, u32_be_at, u64_be_at};
use crate::scan::Bad;

use super::event::{Event, EventRef, Flags, Id};
use super::tags::{self, TagsRef};

/// The default limit of a record, bytes.
pub const RECORD_BYTES_MAX: u32 = 100_000_000;

/// Offset of the flags in a record.
pub(crate) const FLAGS_AT: usize = 4;
/// Size of the head of a record in one page.
pub(crate) const SHORT_HEAD_BYTES: usize = FLAGS_AT + 1;
/// Size of the head of a record that continues on further pages.
pub(crate) const LONG_HEAD_BYTES: usize = SHORT_HEAD_BYTES + CONTINUATIONS_BYTES;
const CONTINUATIONS_BYTES: usize = 2;
/// Size of the head of a continuation page: magic and chunk_len.
pub(super) const CHUNK_HEAD_BYTES: usize = 6;

// In the body.
pub(crate) const PUBKEY_AT: usize = 32;
const CREATED_AT_AT: usize = PUBKEY_AT + 32;
const KIND_AT: usize = CREATED_AT_AT + 4;
const TAGS_LEN_AT: usize = KIND_AT + 2;
const TAGS_AT: usize = TAGS_LEN_AT + 4;
// After the tags.
const CONTENT_LEN_BYTES: usize = 4;
// After the content.
const SIG_BYTES: usize = 64;
const RESERVED_BYTES: usize = 1;
const CRC_BYTES: usize = 8;

/// Size of a record in one page, without tags, content and trailer.
pub(super) const FIXED_BYTES: usize =
    SHORT_HEAD_BYTES + TAGS_AT + CONTENT_LEN_BYTES + SIG_BYTES + RESERVED_BYTES;
/// A CRC follows.
const TRAILER: u8 = 0x01;

const _: () = assert!(FIXED_BYTES == 148 && LONG_HEAD_BYTES == 7 && TAGS_AT == 74);

/// Append the record of an event, for pages of `page_bytes`. On an error, `out` is unchanged.
pub fn encode(
    event: &Event,
    flags: Flags,
    trailer: bool,
    page_bytes: u32,
    out: &mut Vec<u8>,
) -> Result<()> {
    let &Event { id, pubkey, created_at, kind, sig, .. } = event;
    let head = Head { id, pubkey, created_at, kind, sig, flags };
    let tags = |out: &mut Vec<u8>| tags::encode(&event.tags, out);
    whole_or_not(head, tags, &event.content, trailer, page_bytes, out)
}

/// Append the record of a stored event for other pages or with another trailer. The tags keep their
/// stored form. A trailer promises that no names are lost, so a lossy event gets none.
pub fn encode_stored(
    event: &EventRef<'_>,
    trailer: bool,
    page_bytes: u32,
    out: &mut Vec<u8>,
) -> Result<()> {
    let &EventRef { id, pubkey, created_at, kind, sig, flags, .. } = event;
    let head = Head { id, pubkey, created_at, kind, sig, flags };
    let tags = |out: &mut Vec<u8>| {
        out.extend_from_slice(event.tags.bytes());
        Ok(())
    };
    let trailer = trailer && !flags.contains(Flags::LOSSY);
    whole_or_not(head, tags, event.content, trailer, page_bytes, out)
}

/// The parts of an event with a fixed size.
struct Head {
    id: Id,
    pubkey: [u8; 32],
    created_at: u32,
    kind: u16,
    sig: [u8; 64],
    flags: Flags,
}

fn whole_or_not(
    head: Head,
    tags: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    content: &str,
    trailer: bool,
    page_bytes: u32,
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = out.len();
    let encoded = append(head, tags, content, trailer, page_bytes, out);
    if encoded.is_err() {
        out.truncate(start);
    }
    encoded
}

fn append(
    head: Head,
    tags: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    content: &str,
    trailer: bool,
    page_bytes: u32,
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = out.len();
    out.reserve(FIXED_BYTES + CONTINUATIONS_BYTES + CRC_BYTES + content.len());
    out.extend_from_slice(&[0; SHORT_HEAD_BYTES]);
    out.extend_from_slice(&head.id.0);
    out.extend_from_slice(&head.pubkey);
    out.extend_from_slice(&head.created_at.to_be_bytes());
    out.extend_from_slice(&head.kind.to_be_bytes());
    let tags_at = out.len() + 4;
    out.extend_from_slice(&[0; 4]);
    tags(out)?;
    let tags_len = sized(out.len() - tags_at)?;
    part_mut(out, tags_at - 4..tags_at).copy_from_slice(&tags_len.to_be_bytes());
    out.extend_from_slice(&sized(content.len())?.to_be_bytes());
    out.extend_from_slice(content.as_bytes());
    out.extend_from_slice(&head.sig);
    out.push(u8::from(trailer) * TRAILER);
    let crc_bytes = usize::from(trailer) * CRC_BYTES;
    let mut flags = head.flags.of_event();
    if out.len() - start + crc_bytes >= page_bytes as usize {
        let len = sized(out.len() - start + crc_bytes + CONTINUATIONS_BYTES)?;
        let at = start + SHORT_HEAD_BYTES;
        out.splice(at..at, continuations(len, page_bytes)?.to_be_bytes());
        flags = flags | Flags::CONTINUED;
    }
    let len = sized(out.len() - start + crc_bytes)?;
    let (record_len, rest) = part_mut(out, start..).split_at_mut(FLAGS_AT);
    record_len.copy_from_slice(&len.to_be_bytes());
    part_mut(rest, ..1).fill(flags.0);
    if trailer {
        let crc = crc_of(part(out, start..));
        out.extend_from_slice(&crc.to_be_bytes());
    }
    Ok(())
}

/// A size as records store it.
fn sized(bytes: usize) -> Result<u32> {
    u32::try_from(bytes).map_err(|_| {
        let message = format!("record of {bytes} bytes or more, limit {}", u32::MAX);
        Error::new(ErrorKind::TooLarge, message).of(FORMAT)
    })
}

/// How many pages follow the first page of a record of that size, with the long head.
fn continuations(record_len: u32, page_bytes: u32) -> Result<u16> {
    let count = needed_continuations(record_len, page_bytes);
    u16::try_from(count).map_err(|_| {
        let message = format!(
            "record of {record_len} bytes in pages of {page_bytes}: {count} continuation pages, \
             limit {}",
            u16::MAX
        );
        Error::new(ErrorKind::TooLarge, message).of(FORMAT)
    })
}

/// How many pages follow the first, even if the count does not fit its field.
pub(super) fn needed_continuations(record_len: u32, page_bytes: u32) -> u32 {
    let chunk_bytes_max = page_bytes - CHUNK_HEAD_BYTES as u32;
    record_len.saturating_sub(page_bytes).div_ceil(chunk_bytes_max)
}

/// The CRC of a record's bytes `before` the CRC. The flags may change in place, so only the form of
/// the head counts.
fn crc_of(before: &[u8]) -> u64 {
    let (record_len, rest) = before.split_at(FLAGS_AT);
    let (flags, rest) = rest.split_at(1);
    let form = flags.iter().map(|flags| flags & Flags::CONTINUED.0).sum();
    match flags {
        // Most records take this path: one piece is quicker.
        [flags] if *flags == form => crc64(before),
        _ => crc64_of(&[record_len, &[form], rest]),
    }
}

/// Replace the flags of a record. The flag for further pages stays.
pub fn set_flags(record: &mut [u8], flags: Flags) {
    if let Some(stored) = record.get_mut(FLAGS_AT) {
        *stored = flags.of_event().0 | (*stored & Flags::CONTINUED.0);
    }
}

/// Parse the event of a record, which is all of `record`. The parser checks everything but id and
/// signature.
pub fn parse(record: &[u8]) -> Result<EventRef<'_>, Bad> {
    check(record).map(|layout| layout.event(record))
}

/// The offsets of the parts of a checked record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// The store's notes about the event.
    pub flags: Flags,
    /// Whether the record has a checksum. Then this program wrote the record, and no names are
    /// lost.
    pub has_sum: bool,
    body_at: usize,
    tags_len: usize,
    content_len: usize,
}

/// The parts of a checked record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a> {
    pub id: &'a [u8],
    pub pubkey: &'a [u8],
    pub created_at: u32,
    pub kind: u16,
    pub tags: TagsRef<'a>,
    /// Text.
    pub content: &'a [u8],
    pub sig: &'a [u8],
}

/// Check a record, which is all of `record`.
#[inline]
pub(crate) fn check(record: &[u8]) -> Result<Layout, Bad> {
    check_with(record, true)
}

/// Check a record, with or without its checksum.
#[inline]
pub(crate) fn check_with(record: &[u8], sums: bool) -> Result<Layout, Bad> {
    let mut layout = measure(record)?;
    let (tags, content, rest) = layout.sections(record);
    let (reserved, trailer) = part(rest, SIG_BYTES..).split_at(RESERVED_BYTES);
    layout.has_sum = check_trailer(record, reserved, trailer, sums)?;
    TagsRef::parse(tags)?;
    if let Err(e) = std::str::from_utf8(content) {
        let (valid, content_len) = (e.valid_up_to(), content.len());
        return Err(bad("bytes of the content that are UTF-8", valid, "content_len", content_len));
    }
    Ok(layout)
}

/// The event of a record made by this process: the parser checks only lengths.
pub(crate) fn event_of_own(record: &[u8]) -> Result<EventRef<'_>, Bad> {
    measure(record).map(|layout| layout.event(record))
}

/// Find the parts of a record, which is all of `record`, by their lengths.
#[inline]
pub(crate) fn measure(record: &[u8]) -> Result<Layout, Bad> {
    let (Some(record_len), Some(&flags)) = (u32_be_at(record, 0), record.get(FLAGS_AT)) else {
        return Err(bad("record of", record.len(), "minimum", FIXED_BYTES));
    };
    if record_len as usize != record.len() {
        return Err(bad("record_len", record_len as usize, "size of the record", record.len()));
    }
    let body_at = match Flags(flags).contains(Flags::CONTINUED) {
        true => LONG_HEAD_BYTES,
        false => SHORT_HEAD_BYTES,
    };
    let minimum = FIXED_BYTES - SHORT_HEAD_BYTES + body_at;
    let Some(left) = record.len().checked_sub(minimum) else {
        return Err(bad("record_len", record.len(), "minimum", minimum));
    };
    let body = part(record, body_at..);
    let tags_len = there(u32_be_at(body, TAGS_LEN_AT)) as usize;
    let Some(left) = left.checked_sub(tags_len) else {
        return Err(bad("tags_len", tags_len, "bytes left", left));
    };
    let content_len = there(u32_be_at(body, TAGS_AT + tags_len)) as usize;
    if content_len > left {
        return Err(bad("content_len", content_len, "bytes left", left));
    }
    let has_sum = false; // not looked at here
    Ok(Layout { flags: Flags(flags).of_event(), has_sum, body_at, tags_len, content_len })
}

impl Layout {
    /// The event of the record that was checked.
    #[inline]
    pub(crate) fn event(self, record: &[u8]) -> EventRef<'_> {
        let parts = self.parts(record);
        EventRef {
            id: Id(array(parts.id)),
            pubkey: array(parts.pubkey),
            created_at: parts.created_at,
            kind: parts.kind,
            tags: parts.tags,
            content: std::str::from_utf8(parts.content).unwrap_or_else(|_| unreachable!("checked")),
            sig: array(parts.sig),
            flags: self.flags,
        }
    }

    /// Tags, content, and the bytes after the content.
    #[inline]
    fn sections(self, record: &[u8]) -> (&[u8], &[u8], &[u8]) {
        let (tags, rest) = part(record, self.body_at + TAGS_AT..).split_at(self.tags_len);
        let (content, rest) = part(rest, CONTENT_LEN_BYTES..).split_at(self.content_len);
        (tags, content, rest)
    }

    /// The parts of the record that was checked.
    #[inline]
    pub(crate) fn parts(self, record: &[u8]) -> Parts<'_> {
        let body = part(record, self.body_at..);
        let (tags, content, rest) = self.sections(record);
        Parts {
            id: part(body, ..PUBKEY_AT),
            pubkey: part(body, PUBKEY_AT..CREATED_AT_AT),
            created_at: there(u32_be_at(body, CREATED_AT_AT)),
            kind: there(u16_be_at(body, KIND_AT)),
            tags: TagsRef::of_checked(tags),
            content,
            sig: part(rest, ..SIG_BYTES),
        }
    }
}

/// Check the bytes after the signature; returns whether they hold a checksum.
fn check_trailer(record: &[u8], reserved: &[u8], trailer: &[u8], sums: bool) -> Result<bool, Bad> {
    let reserved = *there(reserved.first());
    // A content_len that is 8 too large turns a byte of the CRC into the reserved byte, and leaves
    // no CRC.
    if reserved & !TRAILER != 0 {
        return Err(bad("reserved", reserved.into(), "known", TRAILER.into()));
    }
    let has_crc = reserved & TRAILER != 0;
    let expected = usize::from(has_crc) * CRC_BYTES;
    if trailer.len() != expected {
        let fields = record.len() - trailer.len() + expected;
        return Err(bad("record_len", record.len(), "size of its fields", fields));
    }
    let Some(stored) = u64_be_at(trailer, 0).filter(|_| sums) else { return Ok(has_crc) };
    let found = crc_of(part(record, ..record.len() - CRC_BYTES));
    if found != stored {
        let (what, against) = ("checksum", "stored");
        return Err(Bad { what, found, against, expected: stored, framed_len: None });
    }
    Ok(has_crc)
}

/// A field whose size is fixed.
#[inline]
fn array<const N: usize>(field: &[u8]) -> [u8; N] {
    field.first_chunk().copied().unwrap_or_else(|| unreachable!("checked before"))
}

fn bad(what: &'static str, found: usize, against: &'static str, expected: usize) -> Bad {
    let (found, expected) = (found as u64, expected as u64);
    Bad { what, found, against, expected, framed_len: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(tags: &[&[&str]], content: &str) -> Event {
        let tags = tags.iter().map(|tag| tag.iter().map(|s| s.to_string()).collect()).collect();
        let (created_at, kind) = (1_655_000_000, 30_023);
        let (id, pubkey, sig) = (Id([1; 32]), [2; 32], [3; 64]);
        Event { id, pubkey, created_at, kind, tags, content: content.to_owned(), sig }
    }

    #[test]
    fn both_record_forms_survive_with_and_without_trailer() {
        for content_len in [0, 1, 3945, 3946, 3947, 12_000] {
            for trailer in [false, true] {
                let event =
                    event(&[&["d", "slug"], &["title", "é"], &[]], &"x".repeat(content_len));
                let mut bytes = vec![0xAA];
                encode(&event, Flags::REPLACED, trailer, 4096, &mut bytes).unwrap();
                let record = bytes.get(1..).unwrap();
                let read = parse(record).unwrap();
                assert_eq!((read.to_event(), read.flags), (event, Flags::REPLACED));
                for at in (0..record.len()).filter(|_| trailer) {
                    let mut damaged = record.to_vec();
                    *damaged.get_mut(at).unwrap() ^= 0x10;
                    // The CRC does not cover the flags, which change in place.
                    assert_eq!(parse(&damaged).is_ok(), at == FLAGS_AT, "byte {at}");
                }
            }
        }
    }
}
