//! Checksums over slices: thin wrappers of well-kept crates, held to their check values.

#[cfg(feature = "nostr")]
use crate::ground::slice::u64_be_at;
use crate::ground::slice::{part_mut, u32_at};

/// CRC-32 as of zlib (ISO-HDLC; check value `CBF43926`) of one slice.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// CRC-32 of one slice, continuing from the CRC-32 of the bytes before (0 at the start).
pub fn crc32_more(before: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(before);
    hasher.update(bytes);
    hasher.finalize()
}

/// CRC-32C (Castagnoli; check value `E3069283`) of one slice.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// CRC-32C of one slice, continuing from the CRC-32C of the bytes before (0 at the start).
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

/// CRC-64/XZ of one slice, continuing from the CRC-64/XZ of the bytes before (0 at the start).
#[cfg(feature = "nostr")]
pub fn crc64_more(before: u64, bytes: &[u8]) -> u64 {
    let mut digest =
        crc_fast::Digest::new_with_init_state(crc_fast::CrcAlgorithm::Crc64Xz, !before);
    digest.update(bytes);
    digest.finalize()
}

/// The checksum of a format's records. A value takes 64 bits of memory; a checksum of 32 bits uses
/// the low half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    /// CRC-32 as of zlib, stored little-endian.
    Crc32,
    /// CRC-32C, stored little-endian.
    Crc32c,
    /// CRC-64/XZ, stored big-endian.
    #[cfg(feature = "nostr")]
    Crc64,
}

impl Sum {
    /// The checksum of a single slice.
    #[inline(always)]
    pub(crate) fn of(self, bytes: &[u8]) -> u64 {
        match self {
            Self::Crc32 => crc32(bytes).into(),
            Self::Crc32c => crc32c(bytes).into(),
            #[cfg(feature = "nostr")]
            Self::Crc64 => crc64(bytes),
        }
    }

    /// The checksum of a slice after other slices, whose checksum is `before` (0 at the start).
    #[inline(always)]
    pub(crate) fn more(self, before: u64, bytes: &[u8]) -> u64 {
        match self {
            Self::Crc32 => crc32_more(before as u32, bytes).into(),
            Self::Crc32c => crc32c_more(before as u32, bytes).into(),
            #[cfg(feature = "nostr")]
            Self::Crc64 => crc64_more(before, bytes),
        }
    }

    /// The checksum stored at a byte; none if `bytes` end within it.
    #[inline(always)]
    pub(crate) fn stored(self, bytes: &[u8], at: usize) -> Option<u64> {
        match self {
            Self::Crc32 | Self::Crc32c => u32_at(bytes, at).map(u64::from),
            #[cfg(feature = "nostr")]
            Self::Crc64 => u64_be_at(bytes, at),
        }
    }

    /// Store a checksum at a byte.
    ///
    /// # Panics
    ///
    /// If `bytes` end within it.
    #[inline(always)]
    pub(crate) fn store(self, sum: u64, bytes: &mut [u8], at: usize) {
        match self {
            Self::Crc32 | Self::Crc32c => {
                part_mut(bytes, at..at + 4).copy_from_slice(&(sum as u32).to_le_bytes());
            }
            #[cfg(feature = "nostr")]
            Self::Crc64 => part_mut(bytes, at..at + 8).copy_from_slice(&sum.to_be_bytes()),
        }
    }

    /// The first 4 stored bytes of a checksum, as a little-endian number.
    #[inline(always)]
    pub(crate) fn short(self, sum: u64) -> u32 {
        match self {
            Self::Crc32 | Self::Crc32c => sum as u32,
            #[cfg(feature = "nostr")]
            Self::Crc64 => sum.swap_bytes() as u32,
        }
    }
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
    fn parts_have_the_sum_of_the_whole() {
        let all = [
            Sum::Crc32,
            Sum::Crc32c,
            #[cfg(feature = "nostr")]
            Sum::Crc64,
        ];
        for sum in all {
            let whole = sum.of(b"123456789");
            assert_eq!(sum.more(sum.more(0, b"1234"), b"56789"), whole);
            let mut bytes = [0; 9];
            sum.store(whole, &mut bytes, 1);
            assert_eq!(sum.stored(&bytes, 1), Some(whole));
            assert_eq!(u32_at(&bytes, 1), Some(sum.short(whole)));
            assert_eq!(sum.stored(&bytes, 6), None);
        }
    }

    #[test]
    fn check_value() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32_more(crc32(b"1234"), b"56789"), 0xCBF4_3926);
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(crc32c_more(crc32c(b"1234"), b"56789"), 0xE306_9283);
    }
}
