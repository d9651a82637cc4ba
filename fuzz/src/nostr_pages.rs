//! Segments of any pages: intact records at the beginning of pages, with raw bytes and damage
//! between. Both directions and single reads agree, and miss no intact record.

use std::path::Path;

use deedbook::engine::nostr::{Found, Header, Segment, encode, encode_stored, parse, spread};
use deedbook::nostr::{Event, Flags, Id, recover};
use deedbook::storage::{Access, Memory, Storage};

use super::kit::Input;

const PAGE: u32 = 1024;
const PATH: &str = "/data.0.seg";

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (segment, records, next_free, compacted_at) = (0, 0, input.u32(), 0);
    let header =
        Header { page_bytes: PAGE, created_at: 1, segment, records, next_free, compacted_at };
    let mut bytes = header.encode().to_vec();
    bytes.resize(PAGE as usize, 0);
    let mut intact: Vec<(u32, Event)> = Vec::new();
    while !input.is_empty() && bytes.len() < 64 << 10 {
        let start = bytes.len();
        match input.u8() % 6 {
            0 => {
                let raw = input.u8();
                bytes.extend_from_slice(input.bytes(raw.into()));
            }
            1 => bytes.resize(start + PAGE as usize * usize::from(input.u8() & 3), 0),
            2 => {
                bytes.extend_from_slice(b"CONT");
                bytes.extend_from_slice(input.bytes(8));
            }
            how => {
                let event = event(&mut input);
                let (flags, trailer) = (Flags(input.u8() & 3), how & 1 == 1);
                let mut record = Vec::new();
                encode(&event, flags, trailer, PAGE, &mut record).unwrap();
                assert_eq!(parse(&record).unwrap().to_event(), event);
                spread(&record, PAGE, &mut bytes);
                if how == 5 && !record.is_empty() {
                    let at = start + input.below(bytes.len() - start);
                    bytes[at] ^= input.u8();
                } else {
                    intact.push((start as u32, event));
                }
            }
        }
        bytes.resize(bytes.len().next_multiple_of(PAGE as usize), 0);
    }
    let memory = Memory::new();
    memory.create_new(Path::new(PATH), 0o600).unwrap().write_at(&bytes, 0).unwrap();
    let segment = Segment::open(&memory, Path::new(PATH), Access::Read).unwrap();

    let mut forwards = Vec::new();
    let mut scan = segment.scan(0);
    let mut at = PAGE;
    while let Some(found) = scan.next().unwrap() {
        let (offset, end, event) = place(&found);
        assert!(offset == at && end > offset, "pages are passed over, or given twice");
        at = end;
        forwards.push((offset, event));
    }
    assert!(at >= segment.end(), "the walk ends before the pages");
    let mut backwards = Vec::new();
    let mut scan = segment.reverse();
    while let Some(found) = scan.next().unwrap() {
        let (offset, _, event) = place(&found);
        backwards.push((offset, event));
    }
    backwards.reverse();
    assert_eq!(forwards, backwards);
    let mut buf = Vec::new();
    for (offset, event) in &forwards {
        let read = segment.read(*offset, &mut buf).ok().map(|record| record.event.to_event());
        assert_eq!(&read, event);
    }
    for (offset, event) in intact {
        // Even a continuation page damaged into nothing cannot hide a record.
        assert!(forwards.contains(&(offset, Some(event))), "an intact record is missed");
    }
}

/// The place of a record or damage, and the event of a record.
fn place(found: &Found<'_>) -> (u32, u32, Option<Event>) {
    match found {
        Found::Damage(damage) => (damage.offset, damage.end, None),
        Found::Record(record) => {
            let event = record.event.to_event();
            let mut again = Vec::new();
            encode_stored(&record.event, true, PAGE, &mut again).unwrap();
            assert_eq!(parse(&again).unwrap().to_event(), event);
            again.clear();
            encode(&event, Flags(0), false, PAGE, &mut again).unwrap();
            assert_eq!(parse(&again).unwrap().to_event(), event);
            // `recover` tries all possible names of a tag, and hashes the event for each.
            if event.tags.len() < 3 && record.bytes.len() < PAGE as usize {
                recover(&record.event);
            }
            let chunks =
                record.bytes.len().saturating_sub(PAGE as usize).div_ceil(PAGE as usize - 6);
            (record.offset, record.offset + PAGE * (1 + chunks as u32), Some(event))
        }
    }
}

fn event(input: &mut Input<'_>) -> Event {
    let text = |input: &mut Input<'_>| {
        let len = input.u8();
        let unit = String::from_utf8_lossy(input.bytes(usize::from(len & 15))).into_owned();
        unit.repeat(match len >> 4 {
            15 => 20_000,
            14 => 700,
            _ => 1,
        })
    };
    let tags = (0..input.u8() & 7).map(|_| (0..input.u8() & 3).map(|_| text(input)).collect());
    let tags = tags.collect();
    let byte = input.u8();
    Event {
        id: Id([byte; 32]),
        pubkey: [byte; 32],
        created_at: input.u32(),
        kind: input.u16(),
        tags,
        content: text(input),
        sig: [byte; 64],
    }
}
