//! Finds the end of a JSON value by the grammar (RFC 8259), without its meaning. The value is
//! copied unchanged.

use std::io;

use crate::ground::slice::{part, part_mut};
use crate::storage::{File, read_full};

const PIECE_BYTES: usize = 64 << 10;

/// Why no value can be read.
#[derive(Debug)]
pub enum Fault {
    /// The file cannot be read.
    Io(io::Error),
    /// The bytes differ from the expected text.
    Unexpected(Unexpected),
    /// The value exceeds the limit, by its length in bytes.
    TooLong(u64),
}

/// The expected text at a byte, where the file differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unexpected {
    pub at: u64,
    pub expected: &'static str,
    /// `None` at the end of the file.
    pub found: Option<u8>,
}

impl std::fmt::Display for Unexpected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { at, expected, found } = self;
        write!(f, "byte {at}: {expected} expected, ")?;
        match found {
            None => write!(f, "the file ends"),
            Some(byte) if byte.is_ascii_graphic() => write!(f, "'{}' found", char::from(*byte)),
            Some(byte) => write!(f, "byte 0x{byte:02x} found"),
        }
    }
}

/// Reads a file from its beginning on.
#[derive(Debug)]
pub struct Scanner<'a> {
    file: &'a dyn File,
    at: u64,
    piece: Vec<u8>,
    piece_at: u64,
    /// Whether a value is being read; the value up to the limit, and its length.
    in_value: bool,
    value: Vec<u8>,
    value_bytes: u64,
    value_bytes_max: u64,
}

impl<'a> Scanner<'a> {
    /// For values of at most so many bytes.
    pub fn new(file: &'a dyn File, value_bytes_max: u64) -> Self {
        let (piece, value, in_value) = (Vec::new(), Vec::new(), false);
        Self { file, at: 0, piece, piece_at: 0, in_value, value, value_bytes: 0, value_bytes_max }
    }

    /// The next byte to read.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The value read last.
    pub fn value_read(&self) -> &[u8] {
        &self.value
    }

    pub fn peek(&mut self) -> Result<Option<u8>, Fault> {
        let within = (self.at - self.piece_at) as usize;
        if let Some(byte) = self.piece.get(within) {
            return Ok(Some(*byte));
        }
        self.piece.resize(PIECE_BYTES, 0);
        let read = read_full(self.file, part_mut(&mut self.piece, ..), self.at);
        self.piece.truncate(read.map_err(Fault::Io)?);
        self.piece_at = self.at;
        Ok(self.piece.first().copied())
    }

    /// Go on over a byte that was peeked at.
    pub fn take(&mut self, byte: u8) {
        self.at += 1;
        if self.in_value {
            self.value_bytes += 1;
            if self.value_bytes <= self.value_bytes_max {
                self.value.push(byte);
            }
        }
    }

    pub fn blanks(&mut self) -> Result<(), Fault> {
        while let Some(byte @ (b' ' | b'\t' | b'\n' | b'\r')) = self.peek()? {
            self.take(byte);
        }
        Ok(())
    }

    /// Read `text`, or fail.
    pub fn exactly(&mut self, text: &[u8], expected: &'static str) -> Result<(), Fault> {
        text.iter().try_for_each(|byte| self.one(&|found| found == *byte, expected))
    }

    /// A whole value; blanks before it are left out.
    pub fn value(&mut self) -> Result<(), Fault> {
        self.blanks()?;
        let start = self.at;
        self.value.clear();
        (self.in_value, self.value_bytes) = (true, 0);
        let read = self.nested();
        self.in_value = false;
        read.and_then(|()| self.finish(start))
    }

    fn nested(&mut self) -> Result<(), Fault> {
        // The ends of the open arrays and objects.
        let mut open = Vec::new();
        loop {
            self.blanks()?;
            let begun = match self.peek()? {
                Some(byte @ (b'{' | b'[')) => Some(byte + 2),
                Some(b'"') => self.string().map(|()| None)?,
                Some(b'-' | b'0'..=b'9') => self.number().map(|()| None)?,
                Some(b't') => self.exactly(b"true", "true").map(|()| None)?,
                Some(b'f') => self.exactly(b"false", "false").map(|()| None)?,
                Some(b'n') => self.exactly(b"null", "null").map(|()| None)?,
                found => return Err(self.unexpected("a value", found)),
            };
            if let Some(end) = begun {
                self.take(end - 2);
                self.blanks()?;
                if self.peek()? != Some(end) {
                    open.push(end);
                    if end == b'}' {
                        self.key()?;
                    }
                    continue;
                }
                self.take(end);
            }
            if !self.goes_on(&mut open)? {
                return Ok(());
            }
        }
    }

    /// After a value: whether the innermost open array or object has another value.
    fn goes_on(&mut self, open: &mut Vec<u8>) -> Result<bool, Fault> {
        while let Some(&end) = open.last() {
            self.blanks()?;
            match self.peek()? {
                Some(b',') => {
                    self.take(b',');
                    if end == b'}' {
                        self.key()?;
                    }
                    return Ok(true);
                }
                Some(byte) if byte == end => {
                    self.take(byte);
                    open.pop();
                }
                found if end == b'}' => return Err(self.unexpected("',' or '}'", found)),
                found => return Err(self.unexpected("',' or ']'", found)),
            }
        }
        Ok(false)
    }

    fn finish(&self, start: u64) -> Result<(), Fault> {
        if self.value_bytes > self.value_bytes_max {
            return Err(Fault::TooLong(self.value_bytes));
        }
        std::str::from_utf8(&self.value).map(drop).map_err(|e| {
            let at = e.valid_up_to();
            let found = self.value.get(at).copied();
            Fault::Unexpected(Unexpected { at: start + at as u64, expected: "UTF-8", found })
        })
    }

    fn key(&mut self) -> Result<(), Fault> {
        self.blanks()?;
        match self.peek()? {
            Some(b'"') => self.string()?,
            found => return Err(self.unexpected("a name in quotes", found)),
        }
        self.blanks()?;
        self.exactly(b":", "':'")
    }

    fn string(&mut self) -> Result<(), Fault> {
        self.take(b'"');
        loop {
            match self.peek()? {
                Some(b'"') => {
                    self.take(b'"');
                    return Ok(());
                }
                Some(b'\\') => {
                    self.take(b'\\');
                    self.escape()?;
                }
                Some(byte @ b' '..) => self.take(byte),
                found => return Err(self.unexpected("the rest of a string", found)),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Fault> {
        match self.peek()? {
            Some(b'u') => {
                self.take(b'u');
                (0..4).try_for_each(|_| self.one(&|b| b.is_ascii_hexdigit(), "a hexadecimal digit"))
            }
            _ => self.one(&|byte| b"\"\\/bfnrt".contains(&byte), "an escaped character"),
        }
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.peek()? == Some(b'-') {
            self.take(b'-');
        }
        match self.peek()? {
            Some(b'0') => self.take(b'0'),
            _ => self.digits()?,
        }
        if self.peek()? == Some(b'.') {
            self.take(b'.');
            self.digits()?;
        }
        if let Some(byte @ (b'e' | b'E')) = self.peek()? {
            self.take(byte);
            if let Some(sign @ (b'+' | b'-')) = self.peek()? {
                self.take(sign);
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        self.one(&|byte| byte.is_ascii_digit(), "a digit")?;
        while let Some(digit @ b'0'..=b'9') = self.peek()? {
            self.take(digit);
        }
        Ok(())
    }

    fn one(&mut self, fits: &dyn Fn(u8) -> bool, expected: &'static str) -> Result<(), Fault> {
        match self.peek()? {
            Some(byte) if fits(byte) => {
                self.take(byte);
                Ok(())
            }
            found => Err(self.unexpected(expected, found)),
        }
    }

    pub fn unexpected(&self, expected: &'static str, found: Option<u8>) -> Fault {
        Fault::Unexpected(Unexpected { at: self.at, expected, found })
    }

    /// The bytes from `from` on, if the file ends within so many.
    pub fn tail(&self, from: u64, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = vec![0; bytes_max + 1];
        let read = read_full(self.file, part_mut(&mut bytes, ..), from)?;
        Ok((read <= bytes_max).then(|| part(&bytes, ..read).to_vec()))
    }
}
