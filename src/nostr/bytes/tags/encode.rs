//! Encode tags: a text longer than an entry continues in fragments.

use super::{
    COUNT_BYTES, ENTRY_HEAD_BYTES, FRAGMENT, GLUED, LENGTH_AT, LETTER, MORE, NAMED,
    VALUE_HEAD_BYTES, VALUES_AT,
};
use crate::error::{Error, ErrorKind, Result};
use crate::ground::slice::part_mut;
use crate::nostr::bytes::format::FORMAT;

const ENTRIES_MAX: usize = u16::MAX as usize;
const ENTRY_LENGTH_MAX: usize = u16::MAX as usize;
const VALUES_MAX: usize = u8::MAX as usize;

/// Append the bytes of tags. Fails if the tags need more than 65,535 entries.
pub fn encode<T: AsRef<[S]>, S: AsRef<str>>(tags: &[T], out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    out.extend_from_slice(&[0; COUNT_BYTES]);
    let mut writer = Writer { out, entries: 0, entry_at: 0, values: 0 };
    for tag in tags {
        writer.tag(tag.as_ref());
    }
    let entries = writer.entries;
    let Ok(count) = u16::try_from(entries) else {
        let message = format!("tags of {entries} entries, limit {ENTRIES_MAX}");
        return Err(Error::new(ErrorKind::TooLarge, message).of(FORMAT));
    };
    part_mut(out, start..start + COUNT_BYTES).copy_from_slice(&count.to_be_bytes());
    Ok(())
}

struct Writer<'o> {
    out: &'o mut Vec<u8>,
    entries: usize,
    /// The start of the entry under construction.
    entry_at: usize,
    /// The number of values in the entry so far.
    values: usize,
}

impl Writer<'_> {
    fn tag<S: AsRef<str>>(&mut self, tag: &[S]) {
        let letter = match tag.first().map(|name| name.as_ref().as_bytes()) {
            Some(&[letter]) if LETTER.contains(&letter) => Some(letter),
            _ => None,
        };
        self.begin(letter.unwrap_or(NAMED));
        for value in tag.iter().skip(usize::from(letter.is_some())) {
            self.value(value.as_ref());
        }
        self.end();
    }

    fn value(&mut self, value: &str) {
        if self.room().is_none_or(|room| value.len() > room) {
            self.fragment(MORE);
        }
        let mut rest = value;
        while let Some(room) = self.room().filter(|&room| rest.len() > room) {
            // Every piece is valid text by itself, for readers that do not know fragments.
            let at = (0..=room).rev().find(|&at| rest.is_char_boundary(at)).unwrap_or_default();
            let (piece, more) = rest.split_at(at);
            self.push(piece.as_bytes());
            self.fragment(GLUED);
            rest = more;
        }
        self.push(rest.as_bytes());
    }

    /// The longest value for which the entry has room.
    fn room(&self) -> Option<usize> {
        let used = self.out.len() - (self.entry_at + VALUES_AT) + VALUE_HEAD_BYTES;
        ENTRY_LENGTH_MAX.checked_sub(used).filter(|_| self.values < VALUES_MAX)
    }

    fn fragment(&mut self, marker: &[u8]) {
        self.end();
        self.begin(FRAGMENT);
        self.push(marker);
    }

    fn begin(&mut self, kind: u8) {
        (self.entry_at, self.values) = (self.out.len(), 0);
        self.entries += 1;
        self.out.extend_from_slice(&[kind, 0, 0, 0]);
    }

    fn push(&mut self, value: &[u8]) {
        self.values += 1;
        self.out.extend_from_slice(&(value.len() as u16).to_be_bytes());
        self.out.extend_from_slice(value);
    }

    fn end(&mut self) {
        let (at, values) = (self.entry_at, self.values as u8);
        let length = (self.out.len() - (at + VALUES_AT)) as u16;
        let head = part_mut(self.out, at + LENGTH_AT..at + ENTRY_HEAD_BYTES);
        let (length_field, values_field) = head.split_at_mut(VALUES_AT - LENGTH_AT);
        length_field.copy_from_slice(&length.to_be_bytes());
        values_field.fill(values);
    }
}
