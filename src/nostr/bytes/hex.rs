//! Lower-case hexadecimal, the only form that an event's JSON may have.

use crate::ground::slice::part;

const DIGITS: &[u8; 16] = b"0123456789abcdef";
/// Marks a byte that is no digit.
const NONE: u8 = 0xFF;

/// The value of each byte as a digit.
const VALUES: [u8; 256] = {
    let mut values = [NONE; 256];
    let mut value = 0;
    while value < 16 {
        #[allow(clippy::indexing_slicing)] // at compile time
        {
            values[DIGITS[value] as usize] = value as u8;
        }
        value += 1;
    }
    values
};

#[inline]
fn value(digit: u8) -> u8 {
    VALUES.get(usize::from(digit)).copied().unwrap_or(NONE)
}

/// Why a text is not `N` bytes in lower-case hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotHex {
    /// The length of the text, where `2 N` digits are needed.
    Length(usize),
    /// The byte at this place is no lower-case digit.
    Digit(usize),
}

/// Decode a text into bytes.
#[inline]
pub fn decode<const N: usize>(text: &[u8]) -> Result<[u8; N], NotHex> {
    if text.len() != 2 * N {
        return Err(NotHex::Length(text.len()));
    }
    let mut bytes = [0; N];
    let mut all = 0;
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let [high, low] = [0, 1].map(|i| value(pair.get(i).copied().unwrap_or_default()));
        all |= high | low;
        *byte = (high << 4) | (low & 0x0F);
    }
    if all > 0x0F {
        let wrong = text.iter().position(|&digit| value(digit) == NONE);
        return Err(NotHex::Digit(wrong.unwrap_or_default()));
    }
    Ok(bytes)
}

/// Append the text of some bytes.
#[inline]
pub fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(2 * bytes.len());
    for &byte in bytes {
        let pair = [byte >> 4, byte & 0x0F].map(|value| DIGITS.get(usize::from(value)).copied());
        out.extend(pair.map(Option::unwrap_or_default));
    }
}

/// Write the text of some bytes.
pub fn display(bytes: &[u8], f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    for byte in part(bytes, ..) {
        write!(f, "{byte:02x}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_full_lower_case_is_hexadecimal() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut text = Vec::new();
        encode(&bytes, &mut text);
        assert_eq!(text.get(..8).unwrap(), b"00010203");
        assert_eq!(decode::<256>(&text).unwrap().as_slice(), bytes);
        assert_eq!(decode::<2>(b"00fF"), Err(NotHex::Digit(3)));
        assert_eq!(decode::<2>(b"g0ff"), Err(NotHex::Digit(0)));
        assert_eq!(decode::<2>(b"00ff0"), Err(NotHex::Length(5)));
        assert_eq!(decode::<2>(b""), Err(NotHex::Length(0)));
        for digit in 0..=255u8 {
            let good = digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
            assert_eq!(decode::<1>(&[b'0', digit]).is_ok(), good, "{digit}");
        }
    }
}
