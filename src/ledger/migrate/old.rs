//! The files of a DirectoryStore: names and events.
//!
//! ```text
//! names     INDEX-BASE while it is written; INDEX-STEM.temp once it is finished, where STEM is BASE
//!           without the part after its last full stop
//! file      { "batch": [EVENT,EVENT,...],"sentAt":"2026-01-02T03:04:05.678Z","writeKey":"KEY"}
//! ```
//!
//! The part from `]` on is the footer. A starting store appends a footer to every file that was
//! being written: also to a torn event, to a file without a header, and to a torn footer. So a
//! footer does not prove that the event in front is complete, and a file may have several footers.
//!
//! Source: the crate transientdb 0.2.5, `directory.rs`.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::json::{Fault, Scanner, Unexpected};
use crate::error::{Error, Result};
use crate::ground::slice::part;
use crate::ledger::codec::{FORMAT, file_name};
use crate::storage::Storage;

const SENT_AT: &[u8] = b"],\"sentAt\":\"";
const TIME_BYTES: usize = 24;
const WRITE_KEY: &[u8] = b"\",\"writeKey\":\"";
const END: &[u8] = b"\"}";
/// Footers at the end of a file are together no longer.
const FOOTERS_BYTES_MAX: usize = 64 << 10;

/// A file of a DirectoryStore.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OldFile {
    pub index: u32,
    /// Whether it was being written.
    pub active: bool,
    pub path: PathBuf,
}

/// The files of that base, the oldest first. Everything else in the directory is ignored.
pub fn old_files(storage: &dyn Storage, dir: &Path, base: &str) -> Result<Vec<OldFile>> {
    let names = storage.list(dir).map_err(|e| Error::io("list the files", dir, e).of(FORMAT))?;
    let mut found: Vec<_> = names
        .iter()
        .filter_map(|name| {
            let (index, active) = old_index(name, base)?;
            Some(OldFile { index, active, path: dir.join(name) })
        })
        .collect();
    found.sort_unstable();
    Ok(found)
}

fn old_index(name: &OsStr, base: &str) -> Option<(u32, bool)> {
    let index = name.to_str()?.split('-').next()?.parse().ok()?;
    let written = file_name(index, base);
    match name {
        _ if *name == *written => Some((index, true)),
        _ if *name == *Path::new(&written).with_extension("temp") => Some((index, false)),
        _ => None,
    }
}

/// The next item of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// An event between these bytes: [`Events::event`].
    Event { start: u64, end: u64 },
    /// The end. Nothing but a footer follows, or less.
    End,
    /// From this byte on no event can be read, up to the end of the file.
    Rest { from: u64, why: Unexpected },
    /// It does not begin as files of a DirectoryStore do.
    Foreign(Unexpected),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Header,
    Event,
    /// After an event.
    After,
    End,
}

/// The events of a file, one after the other.
#[derive(Debug)]
pub struct Events<'a> {
    scanner: Scanner<'a>,
    place: Position,
}

impl<'a> Events<'a> {
    pub fn new(scanner: Scanner<'a>) -> Self {
        Self { scanner, place: Position::Header }
    }

    /// The event that `next` gave last.
    pub fn event(&self) -> &[u8] {
        self.scanner.value_read()
    }

    /// How far the file was read.
    pub fn at(&self) -> u64 {
        self.scanner.at()
    }

    pub fn next(&mut self) -> std::result::Result<Next, Fault> {
        if self.place == Position::Header {
            match self.header() {
                Ok(()) => self.place = Position::Event,
                // A store that died at once wrote no event.
                Err(Fault::Unexpected(Unexpected { found: None, .. })) => return Ok(Next::End),
                Err(Fault::Unexpected(why)) => return Ok(Next::Foreign(why)),
                Err(fault) => return Err(fault),
            }
        }
        self.scanner.blanks()?;
        let start = self.scanner.at();
        match (self.place, self.scanner.peek()?) {
            (Position::End, _) | (_, None) => return Ok(Next::End),
            (_, Some(b']')) => return self.footers(),
            (Position::After, Some(b',')) => {
                self.scanner.take(b',');
                self.place = Position::Event;
                return self.next();
            }
            (Position::After, Some(byte)) => {
                self.place = Position::End;
                let (expected, found) = ("',' or ']'", Some(byte));
                return Ok(Next::Rest {
                    from: start,
                    why: Unexpected { at: start, expected, found },
                });
            }
            _ => {}
        }
        let read = self.scanner.value().and_then(|()| self.check_complete());
        match read {
            Ok(end) => {
                self.place = Position::After;
                Ok(Next::Event { start, end })
            }
            Err(Fault::Unexpected(why)) => {
                self.place = Position::End;
                Ok(Next::Rest { from: start, why })
            }
            Err(fault) => Err(fault),
        }
    }

    /// A store whose finishing of the file before failed leaves the header out.
    fn header(&mut self) -> std::result::Result<(), Fault> {
        match self.scanner.peek()? {
            Some(b',') => {
                self.scanner.take(b',');
                return Ok(());
            }
            Some(b']') => return Ok(()),
            _ => {}
        }
        for token in [&b"{"[..], b"\"batch\"", b":", b"["] {
            self.scanner.exactly(token, "{ \"batch\": [")?;
            self.scanner.blanks()?;
        }
        Ok(())
    }

    /// After a value: the value's end, if the value is a whole event.
    fn check_complete(&mut self) -> std::result::Result<u64, Fault> {
        let end = self.scanner.at();
        self.scanner.blanks()?;
        let follows = self.scanner.peek()?;
        // A number may have had further digits.
        let more_digits = !matches!(follows, Some(b',' | b']'))
            && self.event().last().is_some_and(|last| last.is_ascii_digit());
        let torn = more_digits || self.holds_footer(end)?;
        if torn {
            return Err(self.scanner.unexpected("the rest of an event", follows));
        }
        Ok(end)
    }

    fn footers(&mut self) -> std::result::Result<Next, Fault> {
        let from = self.scanner.at();
        self.place = Position::End;
        if self.is_footers(from)? {
            return Ok(Next::End);
        }
        let expected = "],\"sentAt\":\"...\",\"writeKey\":\"...\"} and the end of the file";
        Ok(Next::Rest { from, why: Unexpected { at: from, expected, found: Some(b']') } })
    }

    /// Whether the bytes that a footer closed only look like an event: a torn array, an object
    /// around an event, a string. Nobody can recognise a footer in three bytes or fewer.
    fn holds_footer(&self, end: u64) -> std::result::Result<bool, Fault> {
        let event = self.event();
        for (at, _) in event.iter().enumerate().filter(|(_, byte)| **byte == b']') {
            let there = part(event, at..);
            // The bytes in the event must at least look like a footer, which is rare.
            let alike = footer_bytes(there) == there.len() || there.starts_with(SENT_AT);
            let from = end - there.len() as u64;
            if alike && self.tail(from)?.is_some_and(|tail| is_footer_seen(&tail)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn tail(&self, from: u64) -> std::result::Result<Option<Vec<u8>>, Fault> {
        self.scanner.tail(from, FOOTERS_BYTES_MAX).map_err(Fault::Io)
    }

    fn is_footers(&self, from: u64) -> std::result::Result<bool, Fault> {
        Ok(self.tail(from)?.is_some_and(|tail| are_footers(&tail)))
    }
}

/// Whether the bytes are footers and nothing else. Each footer may be torn: the next footer follows
/// it.
fn are_footers(mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        let len = footer_bytes(bytes);
        if len == 0 {
            return false;
        }
        bytes = part(bytes, len..);
    }
    true
}

/// How many of the first bytes are a footer, or a torn one. The key may hold anything.
fn footer_bytes(bytes: &[u8]) -> usize {
    let same = |at: usize, text: &[u8]| {
        // After the end of the bytes, nothing matches.
        let there = bytes.get(at..).unwrap_or_default();
        there.iter().zip(text).take_while(|(a, b)| a == b).count()
    };
    let mut len = same(0, SENT_AT);
    if len < SENT_AT.len() {
        return len;
    }
    let time = bytes.iter().skip(len).take(TIME_BYTES);
    len += time.take_while(|byte| b"0123456789-:.TZ".contains(byte)).count();
    if len < SENT_AT.len() + TIME_BYTES {
        return len;
    }
    let more = same(len, WRITE_KEY);
    len += more;
    if more < WRITE_KEY.len() {
        return len;
    }
    let key = part(bytes, len..);
    let end = key.windows(END.len()).position(|there| there == END);
    len + end.map_or(key.len(), |at| at + END.len())
}

/// Whether the first of these footers is more than a bracket, a comma and a quote.
fn is_footer_seen(bytes: &[u8]) -> bool {
    footer_bytes(bytes) > 3 && are_footers(bytes)
}

/// The error of a file that cannot be read.
pub fn unreadable(path: &Path, e: io::Error) -> Error {
    Error::io("read the file", path, e).of(FORMAT)
}
