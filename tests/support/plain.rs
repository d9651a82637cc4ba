//! Files and a checksum, for the tests and for programs that load a part of their library.

use std::path::Path;

use deedbook::storage::{Access, Storage};

static CRC: [u32; 256] = {
    let (mut table, mut byte) = ([0; 256], 0);
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// CRC-32 as of zlib, written down once more so that the crate is not checked against itself.
pub fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| (crc >> 8) ^ CRC[usize::from(crc as u8 ^ byte)];
    !bytes.iter().fold(!0, step)
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
