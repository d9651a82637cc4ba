//! The byte layouts of `FORMAT.md` again, without a line of the crate.

pub use crate::support::plain::{crc32, crc32c};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Length 8, tag 4, payload, CRC-32 4, length 8; the length counts tag and payload.
    Book,
    /// Length 8, tag 4, payload, length 8, after two slots of a header.
    Slots,
    /// CRC-32C 4, length 4, payload.
    Wal,
    /// Length 4, CRC-32C 4, payload, after 8 bytes of magic.
    Toy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A record of this many bytes with a correct checksum.
    Intact(usize),
    /// Not an intact record. The head may claim a length; `agrees`: a trailer at the claimed end has the same.
    Bad { claim: Option<usize>, agrees: bool },
}

impl Framing {
    /// Whether records have numbers and tags.
    pub fn is_book(self) -> bool {
        matches!(self, Self::Book | Self::Slots)
    }

    pub fn start(self) -> usize {
        match self {
            Self::Book => 16,
            Self::Slots => 8192,
            Self::Wal => 0,
            Self::Toy => 8,
        }
    }

    /// Bytes of a record around its payload.
    pub fn around(self) -> usize {
        match self {
            Self::Book => 24,
            Self::Slots => 20,
            Self::Wal | Self::Toy => 8,
        }
    }

    /// Bytes of a record before its payload.
    pub fn head(self) -> usize {
        match self {
            Self::Book | Self::Slots => 12,
            Self::Wal | Self::Toy => 8,
        }
    }

    pub fn length(self) -> std::ops::Range<usize> {
        match self {
            Self::Book | Self::Slots => 0..8,
            Self::Wal => 4..8,
            Self::Toy => 0..4,
        }
    }

    pub fn limit(self) -> usize {
        match self {
            Self::Book | Self::Slots => (1 << 32) - 4,
            Self::Wal | Self::Toy => 64 << 20,
        }
    }

    /// The bytes before the first record of a log that begins with record `first`.
    pub fn file_header(self, first: u64) -> Vec<u8> {
        match self {
            Self::Book => [&b"KOOB\x01\0\0\0"[..], &first.to_le_bytes()].concat(),
            Self::Slots => {
                let numbers = [first.saturating_sub(1), first.saturating_sub(1), 0, 0]
                    .map(u64::to_le_bytes)
                    .concat();
                let body = [&b"KOOB\x01\0\0\0"[..], &numbers, &[0; 4]].concat();
                let mut header = vec![0; self.start()];
                for at in [0, 4096] {
                    header[at..at + 44].copy_from_slice(&body);
                    header[at + 44..at + 48].copy_from_slice(&crc32(&body).to_le_bytes());
                }
                header
            }
            Self::Wal => Vec::new(),
            Self::Toy => b"TOYLOG\x01\0".to_vec(),
        }
    }

    /// The predicted bytes: not the slots, which count the appended records (`tests/slots` has a model).
    pub fn foretold(self, space: &[u8]) -> &[u8] {
        match self {
            Self::Slots => space.get(self.start()..).unwrap_or_default(),
            Self::Book | Self::Wal | Self::Toy => space,
        }
    }

    pub fn encode(self, tag: u32, payload: &[u8]) -> Vec<u8> {
        match self {
            Self::Book => {
                let len = (payload.len() as u64 + 4).to_le_bytes();
                let body = [&len[..], &tag.to_le_bytes(), payload].concat();
                let sum = crc32(&body).to_le_bytes();
                [&body[..], &sum, &len].concat()
            }
            Self::Slots => {
                let len = (payload.len() as u64 + 4).to_le_bytes();
                [&len[..], &tag.to_le_bytes(), payload, &len].concat()
            }
            Self::Wal => {
                let len = (payload.len() as u32).to_le_bytes();
                let body = [&len[..], payload].concat();
                [&crc32c(&body).to_le_bytes()[..], &body].concat()
            }
            Self::Toy => {
                let len = (payload.len() as u32).to_le_bytes();
                let sum = crc32c(&[&len[..], payload].concat()).to_le_bytes();
                [&len[..], &sum, payload].concat()
            }
        }
    }

    pub fn parse(self, bytes: &[u8], at: usize, limit: usize) -> Parsed {
        const BAD: Parsed = Parsed::Bad { claim: None, agrees: false };
        let Some(whole) = self.claimed(bytes, at, limit) else { return BAD };
        let bad = |agrees| Parsed::Bad { claim: Some(whole), agrees };
        let Some(record) = bytes.get(at..).and_then(|rest| rest.get(..whole)) else {
            return bad(false);
        };
        match self {
            Self::Book | Self::Slots if record[whole - 8..] != record[..8] => bad(false),
            Self::Slots => Parsed::Intact(whole),
            Self::Book => {
                let (body, sum) = record[..whole - 8].split_at(whole - 12);
                if sum == crc32(body).to_le_bytes() { Parsed::Intact(whole) } else { bad(true) }
            }
            Self::Wal if record[..4] != crc32c(&record[4..]).to_le_bytes() => bad(false),
            Self::Toy if record != self.encode(0, &record[8..]) => bad(false),
            Self::Wal | Self::Toy => Parsed::Intact(whole),
        }
    }

    /// Size of the record at `at` by its head alone, if the size is possible.
    fn claimed(self, bytes: &[u8], at: usize, limit: usize) -> Option<usize> {
        let head = bytes.get(at..)?;
        let payload = match self {
            Self::Book | Self::Slots => u64::from_le_bytes(*head.first_chunk()?).checked_sub(4)?,
            // A header of zeros was never written.
            Self::Wal | Self::Toy if head.get(..8)? == [0; 8] => return None,
            Self::Wal | Self::Toy => {
                u32::from_le_bytes(*head.get(self.length())?.first_chunk()?).into()
            }
        };
        let payload = usize::try_from(payload).ok().filter(|&payload| payload <= limit)?;
        Some(payload + self.around())
    }

    /// The start of the record that ends at `end`, by the bytes before `end` alone.
    pub fn start_by_trailer(self, bytes: &[u8], end: usize) -> Option<usize> {
        if !self.is_book() || end > bytes.len() {
            return None;
        }
        let len = u64::from_le_bytes(*bytes.get(end.checked_sub(8)?..)?.first_chunk()?);
        let whole =
            usize::try_from(len).ok().filter(|&len| len >= 4)?.checked_add(self.around() - 4)?;
        end.checked_sub(whole)
    }
}
