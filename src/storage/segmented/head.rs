//! The head marker, a file next to the segments: the byte of the first record, once a prefix was
//! dropped.
//!
//! ```text
//! head      | offset 8 | crc 4 |                        CRC-32C of the offset
//! ```

use std::io;
use std::path::Path;

use super::Segmented;
use crate::error::{Error, Result};
use crate::ground::checksum::crc32c;
use crate::ground::slice::{part, u32_at};
use crate::storage::{Access, Storage, read_full, replace};

/// File with the offset of the first record, once a prefix was dropped.
pub const HEAD_NAME: &str = "head";

/// Size of the head marker.
const HEAD_BYTES: usize = 8 + 4;

/// The head marker as found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// No prefix was dropped, or nothing says so.
    Absent,
    /// Byte of the first record.
    At(u64),
    /// Not a marker, and why.
    Damaged(String),
}

impl Head {
    /// Read the head marker of the segments in a directory.
    pub fn load(storage: &dyn Storage, dir: &Path) -> Result<Self> {
        let path = dir.join(HEAD_NAME);
        let fail = |e| Error::io("read the head marker", &path, e);
        let mut bytes = [0; HEAD_BYTES + 1];
        let read = match storage.open(&path, Access::Read) {
            Ok(file) => read_full(&*file, &mut bytes, 0).map_err(fail)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Self::Absent),
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                return Ok(Self::Damaged(e.to_string()));
            }
            Err(e) => return Err(fail(e)),
        };
        Ok(parse(part(&bytes, ..read)).map_or_else(Self::Damaged, Self::At))
    }
}

impl Segmented {
    /// The present head marker.
    pub fn head(&self) -> Result<Head> {
        Head::load(&*self.storage, &self.dir)
    }

    /// Write the head marker, durably, before anything below it is removed.
    pub fn store_head(&self, head: u64) -> Result<()> {
        let path = self.dir.join(HEAD_NAME);
        replace(&*self.storage, &path, &head_bytes(head), self.file_mode)
            .map_err(|e| Error::io("store the head marker", &path, e))
    }
}

/// The head marker of an offset.
pub fn head_bytes(offset: u64) -> [u8; HEAD_BYTES] {
    let mut marker = [0; HEAD_BYTES];
    let (body, crc) = marker.split_at_mut(8);
    body.copy_from_slice(&offset.to_le_bytes());
    crc.copy_from_slice(&crc32c(body).to_le_bytes());
    marker
}

/// The offset in a head marker; `Err` has the defect.
fn parse(bytes: &[u8]) -> Result<u64, String> {
    let (HEAD_BYTES, Some(body), Some(stored)) =
        (bytes.len(), bytes.first_chunk::<8>(), u32_at(bytes, 8))
    else {
        return Err(format!("{} bytes, a head marker has {HEAD_BYTES}", bytes.len()));
    };
    match crc32c(body) {
        crc if crc == stored => Ok(u64::from_le_bytes(*body)),
        crc => Err(format!("checksum {crc:08x}, stored {stored:08x}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_have_the_golden_bytes() {
        for (offset, golden) in [
            (0, "00000000000000008ab2288c"),
            (329, "49010000000000008d2c2cf5"),
            (1 << 32, "000000000100000032186d51"),
            (u64::MAX, "ffffffffffffffffc74b6748"),
        ] {
            let hex: String = head_bytes(offset).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, golden);
            assert_eq!(parse(&head_bytes(offset)), Ok(offset));
        }
        assert!(parse(&[0; 12]).unwrap_err().contains("checksum"));
        assert!(parse(&[0; 11]).unwrap_err().contains("11 bytes"));
        assert!(parse(&[0; 13]).unwrap_err().contains("13 bytes"));
    }
}
