//! Files and checksums.

use std::path::Path;

use deedbook::storage::{Access, Storage};

const fn table(polynomial: u32) -> [u32; 256] {
    let (mut table, mut i) = ([0; 256], 0);
    while i < 256 {
        let (mut sum, mut bit) = (i as u32, 0);
        while bit < 8 {
            sum = (sum >> 1) ^ (polynomial & (sum & 1).wrapping_neg());
            bit += 1;
        }
        table[i] = sum;
        i += 1;
    }
    table
}

fn checksum(table: &[u32; 256], bytes: &[u8]) -> u32 {
    !bytes
        .iter()
        .fold(!0, |sum: u32, byte| (sum >> 8) ^ table[((sum ^ u32::from(*byte)) & 0xff) as usize])
}

/// CRC-32 as of zlib, written down once more so that the crate is not checked against itself.
pub fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table(0xEDB8_8320);
    checksum(&TABLE, bytes)
}

pub fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table(0x82F6_3B78);
    checksum(&TABLE, bytes)
}

pub fn read_file(storage: &dyn Storage, path: &Path) -> Vec<u8> {
    let file = storage.open(path, Access::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    let mut done = 0;
    while done < bytes.len() {
        done += file.read_at(&mut bytes[done..], done as u64).unwrap();
    }
    bytes
}

pub fn write_file(storage: &dyn Storage, path: &Path, bytes: &[u8]) {
    let file = match storage.open(path, Access::Write) {
        Ok(file) => file,
        Err(_) => storage.create_new(path, 0o644).unwrap(),
    };
    file.set_len(bytes.len() as u64).unwrap();
    if !bytes.is_empty() {
        assert_eq!(file.write_at(bytes, 0).unwrap(), bytes.len());
    }
}
