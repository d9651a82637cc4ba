//! Files of the reference implementation: read completely, and written byte for byte.

use std::path::Path;

use deedbook::engine::nostr::{Segment, encode, encode_stored, parse};
use deedbook::nostr::{Event, Flags, Id};
use deedbook::storage::Memory;

use crate::support::nostr_layout::*;

const CREATED_AT: u64 = 1_655_000_000;
const FLAGS: [Flags; 8] = {
    let mut flags = [Flags(0); 8];
    (flags[2], flags[3]) = (Flags::DELETED, Flags::REPLACED);
    flags
};

/// Write a segment of records.
fn written(segment: u32, records: &[Vec<u8>]) -> Vec<u8> {
    let memory = Memory::new();
    let path = Path::new(PATH);
    let mut segment = Segment::create(&memory, path, segment, 4096, CREATED_AT, 0o600).unwrap();
    // Single and batched appends must write the same bytes.
    let (first, rest) = records.split_first().unwrap();
    segment.append(&[first]).unwrap();
    let rest: Vec<&[u8]> = rest.iter().map(Vec::as_slice).collect();
    segment.append(&rest).unwrap();
    segment.write_header(records.len() as u32, 0).unwrap();
    file(&memory)
}

#[track_caller]
fn assert_same_but_for_padding(written: &[u8], golden: &[u8]) {
    let (same, padding) = written.split_at(golden.len());
    let differs = same.iter().zip(golden).position(|(a, b)| a != b);
    assert_eq!(differs, None, "differs from byte {differs:?} on");
    assert_eq!(written.len() % 4096, 0);
    assert!(padding.len() < 4096 && padding.iter().all(|&byte| byte == 0));
}

#[test]
fn a_segment_of_the_reference_is_read() {
    let segment = open(&data("data.0.seg")).unwrap();
    let header = segment.header();
    assert_eq!((header.segment, header.records, header.created_at), (0, 8, CREATED_AT));
    assert_eq!((header.next_free, segment.end()), (49_152, 49_152));
    let offsets = [4096, 8192, 12_288, 16_384, 28_672, 32_768, 36_864, 45_056];
    let expected = lines("data.0.expected.jsonl").into_iter().zip(offsets).zip(FLAGS);
    let expected: Vec<Seen> = expected
        .map(|((event, offset), flags)| Seen::Record { offset, flags: flags.0, event })
        .collect();
    assert_eq!(read(&segment), expected);
}

#[test]
fn reference_segment_is_written_byte_for_byte() {
    let events = lines("data.0.expected.jsonl");
    let mut records = Vec::new();
    for (event, flags) in events.iter().zip(FLAGS) {
        let mut bytes = Vec::new();
        encode(event, flags, false, 4096, &mut bytes).unwrap();
        records.push(bytes);
    }
    let sizes: Vec<usize> = records.iter().map(Vec::len).collect();
    assert_eq!(sizes, [303, 150, 2313, 12_178, 189, 4095, 4098, 221]);
    assert_same_but_for_padding(&written(0, &records), &data("data.0.seg"));
}

/// The tags of the vector of the extension, entry by entry.
fn extension_tags() -> Vec<u8> {
    entries(&[
        entry(b'd', &[b"slug"]),
        entry(0, &[b"title", b"The History of Nostr"]),
        entry(0, &[]),
        entry(0, &[b""]),
        entry(1, &[b"+", b"rest of a long value"]),
    ])
}

fn extension_event() -> Event {
    let tag = |values: &[&str]| values.iter().map(|value| value.to_string()).collect();
    let mut id = [0; 32];
    id[1] = 3;
    Event {
        id: Id(id.map(|byte| byte)),
        pubkey: [0; 32],
        created_at: 1_655_000_030,
        kind: 30_023,
        tags: vec![
            tag(&["d", "slug"]),
            tag(&["title", "The History of Nostr"]),
            tag(&[]),
            tag(&["rest of a long value"]),
        ],
        content: "escaped names survive the reference".into(),
        sig: [0; 64],
    }
}

#[test]
fn extension_segment_is_written_byte_for_byte() {
    let golden = data("ext.3.seg");
    let segment = open(&golden).unwrap();
    assert_eq!((segment.header().segment, segment.end()), (3, 12_288));
    let seen = read(&segment);
    assert_eq!(seen.len(), 2);
    let mut records = Vec::new();
    for (at, trailer) in [(4096, true), (8192, false)] {
        let id: [u8; 32] = golden[at + 5..at + 37].try_into().unwrap();
        let event = Event { id: Id(id), ..extension_event() };
        assert!(seen.contains(&Seen::Record { offset: at as u32, flags: 0, event: event.clone() }));
        let expected = record(&event, &extension_tags(), 0, trailer, 4096);
        assert_eq!(golden[at..at + expected.len()], expected);
        let stored = parse(&expected).unwrap();
        let mut bytes = Vec::new();
        encode_stored(&stored, trailer, 4096, &mut bytes).unwrap();
        records.push(bytes);
        // The crate writes a short value without a fragment. All other bytes are golden.
        let event = Event { tags: event.tags[..3].to_vec(), ..event };
        let mut bytes = Vec::new();
        encode(&event, Flags(0), trailer, 4096, &mut bytes).unwrap();
        assert_eq!(bytes, record(&event, &plain_tags(&event.tags), 0, trailer, 4096));
        assert_eq!(bytes[81..81 + 44], golden[at + 81..at + 81 + 44]);
    }
    assert_same_but_for_padding(&written(3, &records), &golden);
}
