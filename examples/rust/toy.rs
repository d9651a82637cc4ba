//! The smallest format: `toy.log`, 8 bytes of magic, then records of length (u32), CRC-32C of length
//! and payload (u32), payload. A record goes by its byte.

use std::path::Path;

use deedbook::engine::*;
use deedbook::storage::Access;
use deedbook::{Durable, Error, ErrorKind, Result};

pub const LOG_NAME: &str = "toy.log";
pub const MAGIC: &[u8; 8] = b"TOYLOG\x01\0";
const HEAD: usize = 8;
const PAYLOAD_MAX: u64 = 64 << 20;

/// The format, and its codec.
#[derive(Clone, Copy, Debug)]
pub struct Toy {
    /// Whether checksums are compared.
    check: bool,
}

pub const TOY: Toy = Toy { check: true };

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    sum: u32,
    payload_len: u32,
}

impl Frame for Found {
    fn sum(self) -> u32 {
        self.sum
    }
    fn len(self) -> u64 {
        HEAD as u64 + self.payload_len()
    }
    fn payload_len(self) -> u64 {
        self.payload_len.into()
    }
    fn payload(self, record: &[u8]) -> &[u8] {
        &record[HEAD..self.len() as usize]
    }
}

/// Length and checksum; nothing was written where both are 0.
fn head(bytes: &[u8]) -> Option<(u32, u32)> {
    let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    Some((word(0)?, word(4)?))
}

impl Framing for Toy {
    type Frame = Found;
    type Tag = ();
    const SUM: Sum = Sum::Crc32c;
    const RECORD_BYTES_MIN: u64 = HEAD as u64;
    const HEAD_BYTES: usize = HEAD;
    const TRAILING_ZEROS_MAX: u64 = u64::MAX;

    fn shape(&self) -> Shape {
        let (sum, covered) = (SumAt::Head(4), 0..4);
        let (check, payload_max, staged_from) = (self.check, PAYLOAD_MAX, 0);
        Shape { head: HEAD, tail: 0, covered, sum, check, payload_max, staged_from }
    }
    fn by_lengths(self) -> Self {
        Self { check: false }
    }
    fn claim(&self, bytes: &[u8]) -> Result<u64, Step<Found>> {
        match head(bytes).map(|(len, sum)| (u64::from(len), sum)) {
            None => Err(Step::NeedMore(HEAD as u64)),
            Some((0, 0)) => Err(Step::Blank),
            Some((found, _)) if found > PAYLOAD_MAX => {
                let (what, against, expected) = ("length", "limit", PAYLOAD_MAX);
                Err(Step::Bad(Bad { what, found, against, expected, framed_len: None }))
            }
            Some((len, _)) => Ok(HEAD as u64 + len),
        }
    }
    fn close(&self, _: &[u8], len: u64, sum: u32) -> Result<Found, Bad> {
        Ok(Found { sum, payload_len: (len - HEAD as u64) as u32 })
    }
    fn push_head(&self, out: &mut Vec<u8>, _tag: (), payload_len: usize) {
        out.extend((payload_len as u32).to_le_bytes());
        out.extend([0; 4]);
    }
    fn check_len(&self, len: usize) -> Result<()> {
        match len as u64 > PAYLOAD_MAX {
            true => Err(Error::new(ErrorKind::TooLarge, "too long").with_durable(Durable::No)),
            false => Ok(()),
        }
    }
}

impl Format for Toy {
    const NAME: &'static str = "toy";
    const NOUN: &'static str = "record";
    const NUMBERED: bool = false;
    type Framing = Self;
    type Options = Common;
    type Ref<'a> = (u64, &'a [u8]);
    type Owned = (u64, Vec<u8>);

    fn framing(&self) -> Self {
        *self
    }
    fn common(options: &Common) -> Result<Common> {
        Ok(options.clone())
    }
    fn settings(&self) -> Settings {
        Settings { format: Self::NAME, segment_bytes: None, record_bytes_max: PAYLOAD_MAX }
    }
    fn show(_: Option<u64>, offset: u64, found: Found, record: &[u8]) -> (u64, &[u8]) {
        (offset, found.payload(record))
    }
    fn own((offset, payload): (u64, &[u8])) -> (u64, Vec<u8>) {
        (offset, payload.to_vec())
    }
    fn name_of(_: Option<u64>, offset: u64) -> String {
        format!("record at byte {offset}")
    }
    fn place(_options: &Common, path: &Path) -> Result<Place> {
        let dir = if path.ends_with(LOG_NAME) { path.parent().unwrap() } else { path };
        Ok(Place::file_in(dir, LOG_NAME))
    }
    fn create(o: &Common, place: &Place) -> Result<()> {
        place.create(&*o.storage, MAGIC, o.file_mode)
    }
    fn inspect(o: &Common, place: &Place, access: Access, depth: Depth) -> Result<Inspected<Self>> {
        let fail = |e| Error::io("read the log", &place.log, e);
        let (mark, damaged_mark) = place.load_mark(&*o.storage)?;
        let is_lost = mark.is_some_and(|mark| mark.records > 0);
        let kind = if is_lost { ErrorKind::LostRecords } else { ErrorKind::NotALog };
        let none = Error::new(kind, "no header of a toy log").of(Toy::NAME).at(&place.log);
        let file = match place.open(&*o.storage, access) {
            Err(e) if is_lost && e.kind() == ErrorKind::Missing => return Err(none),
            opened => opened?,
        };
        let (mut magic, end) = ([0; MAGIC.len()], file.len().map_err(fail)?);
        if read_full(&*file, &mut magic, 0).map_err(fail)? < MAGIC.len() || magic != *MAGIC {
            return Err(none);
        }
        let space = Space::new(file, MAGIC.len() as u64, end);
        let known = Known { mark, damaged_mark, first: Some(0), is_ours: false, depth };
        let findings = find_end(&TOY, &space, known).map_err(fail)?;
        let settings = Settings::load(&*o.storage, &place.sidecar, Self::NAME)?;
        Ok(Inspected { settings, ..Inspected::new(TOY, space, findings, mark) })
    }
}
