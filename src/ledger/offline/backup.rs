//! What only a ledger tells a backup: where the whole records of a file end.

use std::io;

use crate::ledger::codec::HEADER_BYTES;
use crate::slice::u32_at;
use crate::storage::{File, read_full};

/// Where the last whole record of a file ends, by the lengths: a store may be writing the next one. The end of the file
/// where the lengths make no sense: a check says what is wrong there.
pub(crate) fn whole_records(file: &dyn File) -> io::Result<u64> {
    let (len, mut at) = (file.len()?, 0);
    while at + HEADER_BYTES <= len {
        let mut header = [0; HEADER_BYTES as usize];
        read_full(file, &mut header, at)?;
        let payload = u64::from(u32_at(&header, 0).unwrap_or(0));
        let next = at + HEADER_BYTES + payload;
        if payload == 0 || next > len {
            return Ok(if payload == 0 { len } else { at });
        }
        at = next;
    }
    Ok(if at == len { at } else { len })
}
