//! The bytes of tags: lossless encode, check, iterate. Pure, no I/O. Big-endian.
//!
//! ```text
//! tags      | count 2 | entry | entry ...                count of entries; no tags: 00 00 or nothing
//! entry     | type 1 | length 2 | values 1 | value ...   length of what follows it
//! value     | length 2 | text |
//!
//! type      02..7F  the name, one byte; the values follow it
//!           00      the name is value 0; no values: the tag []
//!           01      goes on with the tag before it; value 0 is a marker:
//!                   "+" the next value is glued to the last one, "" values follow
//!           80..FF  the first byte of a name that the reference implementation lost
//! ```

use std::borrow::Cow;

use crate::ground::slice::{part, there, u16_be_at};
use crate::scan::Bad;

mod encode;

pub use encode::encode;

/// The name is value 0.
const NAMED: u8 = 0x00;
/// The entry continues the tag before.
const FRAGMENT: u8 = 0x01;
/// The lowest and the highest byte that can be a name alone.
const LETTER: std::ops::RangeInclusive<u8> = 0x02..=0x7F;
/// Markers of a fragment.
const GLUED: &[u8] = b"+";
const MORE: &[u8] = b"";

/// Size of the count of entries.
const COUNT_BYTES: usize = 2;
/// Offset of an entry's length.
const LENGTH_AT: usize = 1;
/// Offset of an entry's number of values. The length counts from here.
const VALUES_AT: usize = LENGTH_AT + 2;
/// Offset of an entry's first value.
const ENTRY_HEAD_BYTES: usize = VALUES_AT + 1;
/// Size of a value's length.
const VALUE_HEAD_BYTES: usize = 2;

/// Checked tags in their stored form. Only texts in fragments allocate memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TagsRef<'a> {
    /// The count, if written, and the entries.
    bytes: &'a [u8],
}

impl<'a> TagsRef<'a> {
    /// Check tags: lengths, and that all values are text.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, Bad> {
        // A shorter input is empty, or refused below.
        let count = u16_be_at(bytes, 0).unwrap_or(0);
        let Some(entries) = bytes.get(COUNT_BYTES..).or(bytes.is_empty().then_some(bytes)) else {
            return Err(bad("size of the tags", bytes.len(), "minimum", COUNT_BYTES));
        };
        let mut rest = entries;
        for number in 0..count {
            let Some(entry) = Entry::first(rest) else {
                return Err(bad("whole entries of tags", number.into(), "count", count.into()));
            };
            entry.check()?;
            rest = part(rest, entry.bytes.len()..);
        }
        if !rest.is_empty() {
            let used = bytes.len() - rest.len();
            return Err(bad("size of the entries of tags", used, "size of the tags", bytes.len()));
        }
        let tags = Self { bytes };
        // Lengths from 128 on are no ASCII. Then the check looks at each value alone.
        if !entries.is_ascii() {
            tags.check_text()?;
        }
        Ok(tags)
    }

    /// Wrap tags that were checked before.
    #[inline]
    pub(super) fn of_checked(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The tags in their stored form.
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    fn check_text(self) -> Result<(), Bad> {
        for tag in self.iter() {
            for value in tag.raw() {
                if let Err(e) = std::str::from_utf8(&value) {
                    let (valid, len) = (e.valid_up_to(), value.len());
                    return Err(bad("bytes of a tag's value that are UTF-8", valid, "size", len));
                }
            }
        }
        Ok(())
    }

    /// The tags in their order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = Tag<'a>> {
        self.each()
    }

    #[inline]
    fn each(self) -> Tags<'a> {
        // A record without tags may lack even the count.
        Tags { rest: if self.bytes.is_empty() { &[] } else { part(self.bytes, COUNT_BYTES..) } }
    }

    /// Whether a tag may have this name of more than one byte. The quick answer looks at entries
    /// only.
    #[inline]
    pub(crate) fn may_name(self, name: &str) -> bool {
        let mut rest = self.each().rest;
        while let Some(entry) = Entry::first(rest) {
            // A name in pieces begins like this.
            let begins = |values| name.as_bytes().starts_with(split_value(values).0);
            if entry.kind() == NAMED && entry.count() > 0 && begins(entry.values()) {
                return true;
            }
            rest = part(rest, entry.bytes.len()..);
        }
        false
    }

    /// Whether there are no tags.
    pub fn is_empty(self) -> bool {
        self.iter().next().is_none()
    }

    /// Copy the tags into memory of their own.
    pub fn to_vec(self) -> Vec<Vec<String>> {
        self.iter().map(|tag| tag.elements().map(Cow::into_owned).collect()).collect()
    }
}

impl std::fmt::Debug for TagsRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

fn bad(what: &'static str, found: usize, against: &'static str, expected: usize) -> Bad {
    let (found, expected) = (found as u64, expected as u64);
    Bad { what, found, against, expected, framed_len: None }
}

/// One entry.
#[derive(Clone, Copy)]
struct Entry<'a> {
    bytes: &'a [u8],
}

impl<'a> Entry<'a> {
    /// The entry at the start of `bytes`, if complete.
    #[inline]
    fn first(bytes: &'a [u8]) -> Option<Self> {
        let length = usize::from(u16_be_at(bytes, LENGTH_AT)?);
        bytes.get(..VALUES_AT + length).filter(|_| length > 0).map(|bytes| Self { bytes })
    }

    /// Whether the values fill the entry.
    #[inline]
    fn check(self) -> Result<(), Bad> {
        let (count, mut rest) = (self.count(), self.values());
        for number in 0..count {
            let len = u16_be_at(rest, 0).map(usize::from);
            let Some(after) = len.and_then(|len| rest.get(VALUE_HEAD_BYTES + len..)) else {
                return Err(bad("whole values of a tag", number.into(), "count", count.into()));
            };
            rest = after;
        }
        let len = self.bytes.len();
        match rest.len() {
            0 => Ok(()),
            left => Err(bad("size of the values of a tag", len - left, "size of the tag", len)),
        }
    }

    #[inline]
    fn kind(self) -> u8 {
        *there(self.bytes.first())
    }

    /// The number of values, a marker included.
    #[inline]
    fn count(self) -> u8 {
        *there(self.bytes.get(VALUES_AT))
    }

    #[inline]
    fn values(self) -> &'a [u8] {
        part(self.bytes, ENTRY_HEAD_BYTES..)
    }

    /// The marker, if the entry continues a tag. Only a tag with a value (`has_last`) can be glued.
    #[inline]
    fn marker(self, has_last: bool) -> Option<&'a [u8]> {
        if self.kind() != FRAGMENT || self.count() == 0 {
            return None;
        }
        match split_value(self.values()).0 {
            MORE => Some(MORE),
            GLUED if has_last && self.count() > 1 => Some(GLUED),
            _ => None,
        }
    }
}

/// The first of some checked values, and the bytes after the value.
#[inline]
fn split_value(values: &[u8]) -> (&[u8], &[u8]) {
    let len = usize::from(u16_be_at(values, 0).unwrap_or_default());
    part(values, VALUE_HEAD_BYTES..).split_at(len)
}

/// The tags of an event.
#[derive(Clone, Debug)]
struct Tags<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Tags<'a> {
    type Item = Tag<'a>;

    #[inline]
    fn next(&mut self) -> Option<Tag<'a>> {
        let first = Entry::first(self.rest)?;
        let mut len = first.bytes.len();
        let mut has_last = first.count() > 0;
        // An entry of type 01 that continues no tag is a tag of the reference implementation with
        // the name 01.
        while let Some(entry) = Entry::first(part(self.rest, len..)) {
            if entry.marker(has_last).is_none() {
                break;
            }
            has_last |= entry.count() > 1;
            len += entry.bytes.len();
        }
        let (entries, rest) = self.rest.split_at(len);
        self.rest = rest;
        Some(Tag { entries })
    }
}

/// One tag, borrowed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Tag<'a> {
    /// The tag's entry, and the entries that continue the tag.
    entries: &'a [u8],
}

impl<'a> Tag<'a> {
    /// The name, if it is one byte, like the tags that relays index. The call is nearly free.
    #[inline]
    pub fn letter(self) -> Option<u8> {
        self.entries.first().copied().filter(|kind| LETTER.contains(kind))
    }

    /// The name: the first text, or nothing.
    pub fn name(self) -> Cow<'a, str> {
        self.elements().next().unwrap_or_default()
    }

    /// The texts after the name.
    pub fn values(self) -> impl Iterator<Item = Cow<'a, str>> {
        let mut elements = self.elements();
        elements.next();
        elements
    }

    /// The first text after the name.
    pub fn value(self) -> Option<Cow<'a, str>> {
        self.values().next()
    }

    /// All texts, the name first; none for the tag `[]`.
    #[inline]
    pub fn elements(self) -> impl Iterator<Item = Cow<'a, str>> {
        Elements { name: self.kept_name(), raw: self.raw() }
    }

    /// The name, if the entry's type holds the name.
    fn kept_name(self) -> Option<Cow<'a, str>> {
        match self.entries.first().copied()? {
            NAMED => None,
            kind if kind.is_ascii() => Some(Cow::Borrowed(text(part(self.entries, ..1)))),
            kind => Some(Cow::Owned(char::from(kind).to_string())),
        }
    }

    /// Hand over all texts as bytes.
    #[cfg(feature = "arrow")]
    #[inline]
    pub(crate) fn each_text(self, mut take: impl FnMut(&[u8])) {
        if let Some(name) = self.kept_name() {
            take(name.as_bytes());
        }
        let Raw { mut values, rest } = self.raw();
        if !rest.is_empty() {
            return Raw { values, rest }.for_each(|value| take(&value));
        }
        // Nearly every tag is one entry without glued values.
        while !values.is_empty() {
            let (value, after) = split_value(values);
            take(value);
            values = after;
        }
    }

    /// The values as bytes; values in fragments are glued.
    fn raw(self) -> Raw<'a> {
        let first = Entry::first(self.entries).unwrap_or(Entry { bytes: &[0; ENTRY_HEAD_BYTES] });
        let rest = part(self.entries, first.bytes.len().min(self.entries.len())..);
        Raw { values: first.values(), rest }
    }
}

impl std::fmt::Debug for Tag<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.elements()).finish()
    }
}

/// Texts of a tag.
#[derive(Clone, Debug)]
struct Elements<'a> {
    name: Option<Cow<'a, str>>,
    raw: Raw<'a>,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Cow<'a, str>;

    #[inline]
    fn next(&mut self) -> Option<Cow<'a, str>> {
        if let Some(name) = self.name.take() {
            return Some(name);
        }
        Some(match self.raw.next()? {
            Cow::Borrowed(bytes) => Cow::Borrowed(text(bytes)),
            Cow::Owned(bytes) => Cow::Owned(text(&bytes).to_owned()),
        })
    }
}

/// Text that was checked when the tags were parsed.
#[inline]
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_else(|_| unreachable!("checked with the tags"))
}

/// Values of a tag as bytes.
#[derive(Clone, Debug)]
struct Raw<'a> {
    /// The remaining values of the current entry.
    values: &'a [u8],
    /// The entries that continue the current entry.
    rest: &'a [u8],
}

impl<'a> Raw<'a> {
    /// Go to the next entry, after its marker; returns the marker.
    fn advance(&mut self) -> Option<&'a [u8]> {
        let entry = Entry::first(self.rest)?;
        self.rest = part(self.rest, entry.bytes.len()..);
        let (marker, values) = split_value(entry.values());
        self.values = values;
        Some(marker)
    }

    /// Whether the next value continues the last value.
    fn is_glued(&mut self) -> bool {
        while self.values.is_empty() {
            match Entry::first(self.rest).and_then(|entry| entry.marker(true)) {
                Some(MORE) => self.advance(),
                marker => return marker == Some(GLUED),
            };
        }
        false
    }
}

impl<'a> Iterator for Raw<'a> {
    type Item = Cow<'a, [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Cow<'a, [u8]>> {
        while self.values.is_empty() {
            self.advance()?;
        }
        let (value, after) = split_value(self.values);
        self.values = after;
        let mut value = Cow::Borrowed(value);
        while self.is_glued() {
            self.advance();
            let (piece, after) = split_value(self.values);
            value.to_mut().extend_from_slice(piece);
            self.values = after;
        }
        Some(value)
    }
}
