//! The 16 bytes before the deeds of the layouts `packed` and `padded`. Pure, no I/O.
//!
//! ```text
//! book.log   | mag 4 | ver 4 | fir 8 |  deed  |  deed  | ...
//! ```
//!
//! Source: the UIP "Book Event Log Persistence", "Header Format".

use crate::book::names::FORMAT;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::slice::{u32_at, u64_at};

/// "BOOK" as an integer; on disk `4B 4F 4F 42`.
pub const MAGIC: u32 = 0x424F_4F4B;
/// The only version.
pub const VERSION: u32 = 1;

/// Offset of `fir_d` in the header.
pub const FIRST_AT: u64 = 8;
/// Size of the header; the first deed begins here.
pub const HEADER_BYTES: u64 = 16;

const _: () = assert!(HEADER_BYTES == FIRST_AT + 8);

/// The header of a log whose first event is `first` (0 until the first save).
pub fn encode_file_header(first: u64) -> [u8; HEADER_BYTES as usize] {
    let mut header = [0; HEADER_BYTES as usize];
    let (magic, rest) = header.split_at_mut(4);
    let (version, fir) = rest.split_at_mut(4);
    magic.copy_from_slice(&MAGIC.to_le_bytes());
    version.copy_from_slice(&VERSION.to_le_bytes());
    fir.copy_from_slice(&first.to_le_bytes());
    header
}

/// Read a header: the first event's number, 0 until the first save.
pub fn parse_file_header(bytes: &[u8]) -> Result<u64> {
    let bad = |what: String| Error::new(ErrorKind::NotALog, what).of(FORMAT);
    let (Some(magic), Some(version), Some(first)) =
        (u32_at(bytes, 0), u32_at(bytes, 4), u64_at(bytes, 8))
    else {
        let found = bytes.len();
        return Err(bad(format!("{found} bytes, a book's header has {HEADER_BYTES}")));
    };
    if magic != MAGIC {
        return Err(bad(format!("magic {magic:#010x}, a book has {MAGIC:#010x}")).offset_at(0));
    }
    if version != VERSION {
        return Err(bad(format!("version {version}, known is {VERSION}")).offset_at(4));
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_refused_with_both_values() {
        let mut header = encode_file_header(1);
        header[4] = 2;
        let error = parse_file_header(&header).unwrap_err();
        assert_eq!(error.to_string(), "version 2, known is 1 (byte 4)");
        assert_eq!(parse_file_header(&[0; 15]).unwrap_err().kind(), ErrorKind::NotALog);
    }
}
