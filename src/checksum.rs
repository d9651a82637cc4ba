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

/// CRC-32C (Castagnoli; check value `E3069283`) of one slice.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// CRC-32C of one slice, going on from the CRC-32C of what came before it (0 at the start).
pub fn crc32c_more(before: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(before, bytes)
}

/// CRC-64/XZ (check value `995DC9BBDF1939FA`) of one slice.
#[cfg(feature = "nostr")]
pub fn crc64(bytes: &[u8]) -> u64 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Xz, bytes)
}

/// CRC-64/XZ of several slices, one after the other.
#[cfg(feature = "nostr")]
pub fn crc64_of(parts: &[&[u8]]) -> u64 {
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64Xz);
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize()
}

/// CRC-64/XZ of one slice, going on from the CRC-64/XZ of what came before it (0 at the start).
#[cfg(feature = "nostr")]
pub fn crc64_more(before: u64, bytes: &[u8]) -> u64 {
    let mut digest =
        crc_fast::Digest::new_with_init_state(crc_fast::CrcAlgorithm::Crc64Xz, !before);
    digest.update(bytes);
    digest.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(feature = "nostr")]
    fn check_value_of_64_bits() {
        assert_eq!(crc64(b"123456789"), 0x995D_C9BB_DF19_39FA);
        assert_eq!(crc64_of(&[b"1234", b"", b"56789"]), 0x995D_C9BB_DF19_39FA);
        assert_eq!(crc64_more(crc64_more(0, b"1234"), b"56789"), 0x995D_C9BB_DF19_39FA);
    }

    #[test]
    fn check_value() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32_more(crc32(b"1234"), b"56789"), 0xCBF4_3926);
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(crc32c_more(crc32c(b"1234"), b"56789"), 0xE306_9283);
    }
}
