//! The layout written down again, without a line of the crate, and ways to read a segment.

use std::path::{Path, PathBuf};

use deedbook::engine::nostr::{Found, Segment};
use deedbook::nostr::{Event, Id};
use deedbook::storage::{Access, Memory, Storage};

use super::plain::read_file;
use super::skip;

pub const PATH: &str = "/data.0.seg";

/// CRC-64/XZ bit by bit.
pub fn crc64(bytes: &[u8]) -> u64 {
    let step = |crc: u64, byte: &u8| {
        (0..8).fold(crc ^ u64::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xC96C_5795_D787_0F42 & (crc & 1).wrapping_neg())
        })
    };
    !bytes.iter().fold(!0, step)
}

pub fn entry(kind: u8, values: &[&[u8]]) -> Vec<u8> {
    let mut data = vec![values.len() as u8];
    for value in values {
        data.extend((value.len() as u16).to_be_bytes());
        data.extend(*value);
    }
    [&[kind][..], &(data.len() as u16).to_be_bytes(), &data].concat()
}

pub fn entries(entries: &[Vec<u8>]) -> Vec<u8> {
    [&(entries.len() as u16).to_be_bytes()[..], &entries.concat()].concat()
}

/// The bytes of tags that need no fragment.
pub fn plain_tags(tags: &[Vec<String>]) -> Vec<u8> {
    let one = |tag: &Vec<String>| {
        let values: Vec<&[u8]> = tag.iter().map(|value| value.as_bytes()).collect();
        match values.split_first() {
            Some(([name], rest)) if (2..128).contains(name) => entry(*name, rest),
            _ => entry(0, &values),
        }
    };
    entries(&tags.iter().map(one).collect::<Vec<_>>())
}

/// A record without the heads of continuation pages.
pub fn record(event: &Event, tags: &[u8], flags: u8, trailer: bool, page: usize) -> Vec<u8> {
    let body = [
        &event.id.0[..],
        &event.pubkey,
        &event.created_at.to_be_bytes(),
        &event.kind.to_be_bytes(),
        &(tags.len() as u32).to_be_bytes(),
        tags,
        &(event.content.len() as u32).to_be_bytes(),
        event.content.as_bytes(),
        &event.sig,
        &[u8::from(trailer)],
    ]
    .concat();
    let short = 5 + body.len() + 8 * usize::from(trailer);
    let (len, form, count) = match short < page {
        true => (short, 0, vec![]),
        false => {
            let len = short + 2;
            let count = (len - page).div_ceil(page - 6) as u16;
            (len, 0x80, count.to_be_bytes().to_vec())
        }
    };
    let mut bytes = [&(len as u32).to_be_bytes()[..], &[form], &count, &body].concat();
    if trailer {
        bytes.extend(crc64(&bytes).to_be_bytes());
    }
    bytes[4] |= flags;
    bytes
}

pub fn pages(record: &[u8], page: usize) -> Vec<u8> {
    let mut bytes = record[..record.len().min(page)].to_vec();
    let mut rest = &record[bytes.len()..];
    while !rest.is_empty() {
        let chunk = &rest[..rest.len().min(page - 6)];
        bytes.extend(b"CONT");
        bytes.extend((chunk.len() as u16).to_be_bytes());
        bytes.extend(chunk);
        rest = &rest[chunk.len()..];
    }
    bytes.resize(bytes.len().div_ceil(page) * page, 0);
    bytes
}

pub fn header(page: usize, segment: u32, created_at: u64, records: u32, next_free: u32) -> Vec<u8> {
    let mut bytes = [
        &b"NSTR"[..],
        &(page as u32).to_be_bytes(),
        &created_at.to_be_bytes(),
        &segment.to_be_bytes(),
        &records.to_be_bytes(),
        &next_free.to_be_bytes(),
        &1u32.to_be_bytes(),
    ]
    .concat();
    bytes.resize(page, 0);
    bytes
}

pub fn event_of(number: u32, content_len: usize) -> Event {
    let byte = number as u8;
    Event {
        id: Id([byte ^ 0x55; 32]),
        pubkey: [byte | 1; 32],
        created_at: 1_655_000_000 + number,
        kind: number as u16,
        tags: vec![vec!["d".into(), format!("{number}")], vec!["title".into(), "T".into()]],
        content: (0..content_len).map(|i| char::from(b'a' + (i as u8 ^ byte) % 26)).collect(),
        sig: [byte | 2; 64],
    }
}

/// A segment of records, by the tests' own encoder.
pub fn segment_of(events: &[Event], trailer: bool, page: usize) -> Vec<u8> {
    let records =
        events.iter().map(|e| pages(&record(e, &plain_tags(&e.tags), 0, trailer, page), page));
    let body: Vec<u8> = records.collect::<Vec<_>>().concat();
    let next_free = (page + body.len()) as u32;
    [header(page, 0, 1_655_000_000, events.len() as u32, next_free), body].concat()
}

pub fn open(bytes: &[u8]) -> deedbook::Result<Segment> {
    let memory = Memory::new();
    let path = Path::new(PATH);
    memory.create_new(path, 0o600).unwrap().write_at(bytes, 0).unwrap();
    Segment::open(&memory, path, Access::Write)
}

pub fn file(storage: &dyn Storage) -> Vec<u8> {
    read_file(storage, Path::new(PATH))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    Record { offset: u32, flags: u8, event: Event },
    Damage { offset: u32, end: u32, reason: String },
}

impl Seen {
    fn of(found: Found<'_>) -> Self {
        match found {
            Found::Record(record) => Self::Record {
                offset: record.offset,
                flags: record.event.flags.0,
                event: record.event.to_event(),
            },
            Found::Damage(damage) => {
                Self::Damage { offset: damage.offset, end: damage.end, reason: damage.reason }
            }
        }
    }
}

/// The contents of a segment, read in every way; all ways must agree.
pub fn read(segment: &Segment) -> Vec<Seen> {
    let (mut forward, mut reverse) = (segment.scan(0), segment.reverse());
    let mut seen = Vec::new();
    while let Some(found) = forward.next().unwrap() {
        seen.push(Seen::of(found));
    }
    let mut back = Vec::new();
    while let Some(found) = reverse.next().unwrap() {
        back.push(Seen::of(found));
    }
    back.reverse();
    assert_eq!(seen, back, "forwards and backwards differ");
    let mut buf = Vec::new();
    for seen in &seen {
        match seen {
            Seen::Record { offset, flags, event } => {
                let record = segment.read(*offset, &mut buf).unwrap();
                assert_eq!((record.event.flags.0, &record.event.to_event()), (*flags, event));
                // A walk from here on returns the rest.
                let found = segment.scan(*offset).next().unwrap().map(Seen::of).unwrap();
                assert_eq!(&found, seen);
            }
            Seen::Damage { offset, .. } => assert!(segment.read(*offset, &mut buf).is_err()),
        }
    }
    seen
}

pub fn events(segment: &Segment) -> Vec<Event> {
    let event = |seen| match seen {
        Seen::Record { event, .. } => event,
        Seen::Damage { .. } => panic!("{seen:?}"),
    };
    read(segment).into_iter().map(event).collect()
}

pub fn data(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/nostr").join(name))
        .unwrap()
}

pub fn lines(name: &str) -> Vec<Event> {
    let text = data(name);
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| Event::from_json(line).unwrap()).collect()
}

pub fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared").join(name);
    let exists = path.exists();
    if !exists {
        skip::skipped(&format!("../shared/{name} is not there"));
    }
    exists.then_some(path)
}
