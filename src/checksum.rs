//! Checksums over slices: thin wrappers of well-kept crates, held to their check values.

/// CRC-32 as of zlib (ISO-HDLC; check value `CBF43926`) of one slice.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// CRC-32 of one slice, going on from the CRC-32 of what came before it (0 at the start).
pub fn crc32_more(before: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(before);
    hasher.update(bytes);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_value() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32_more(crc32(b"1234"), b"56789"), 0xCBF4_3926);
    }
}
