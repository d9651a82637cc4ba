//! A walk over a segment allocates nothing for a record, and no length in a file reserves memory.

use deedbook::engine::nostr::{Found, Segment, encode};
use deedbook::nostr::{Event, Flags, Id};

use crate::counting::{allocations_of, peak_of};
use crate::support::prelude::*;

const PATH: &str = "/data.0.seg";
const RECORDS: u32 = 20_000;
const ALLOCATIONS_MAX: usize = 100;
const BYTES_MAX: u64 = 1 << 20;

fn event(number: u32) -> Event {
    Event {
        id: Id([7; 32]),
        pubkey: [8; 32],
        created_at: number,
        kind: 1,
        tags: vec![vec!["e".into(), "0".repeat(64)], vec!["title".into(), "é".into()]],
        content: "x".repeat(if number.is_multiple_of(100) { 9000 } else { 100 }),
        sig: [9; 64],
    }
}

#[test]
fn store_walks_allocate_no_memory_per_record() {
    let memory = Memory::new();
    let mut segment = Segment::create(&memory, Path::new(PATH), 0, 4096, 0, 0o600).unwrap();
    for number in 0..RECORDS {
        let mut record = Vec::new();
        encode(&event(number), Flags(0), true, 4096, &mut record).unwrap();
        segment.append(&[&record]).unwrap();
    }
    let walk = |segment: &Segment| {
        let (mut scan, mut count) = (segment.scan(0), 0);
        while let Some(Found::Record(record)) = scan.next().unwrap() {
            // Tags are looked at, too.
            let texts = record.event.tags.iter().flat_map(|tag| tag.elements());
            count += u32::from(texts.map(|text| text.len()).sum::<usize>() == 72);
        }
        assert_eq!(count, RECORDS);
    };
    let back = |segment: &Segment| {
        let (mut scan, mut count) = (segment.reverse(), 0);
        while let Some(Found::Record(_)) = scan.next().unwrap() {
            count += 1;
        }
        assert_eq!(count, RECORDS);
    };
    assert!(allocations_of(|| walk(&segment)) < ALLOCATIONS_MAX);
    assert!(allocations_of(|| back(&segment)) < ALLOCATIONS_MAX);
    assert!(peak_of(|| walk(&segment)) < BYTES_MAX);

    // 99 MB claimed in a file of three pages, with the right number of pages for it.
    let path = Path::new("/data.1.seg");
    Segment::create(&memory, path, 1, 4096, 0, 0o600).unwrap();
    let (len, pages) = (99_000_000u32, (99_000_000u32 - 4096).div_ceil(4090) as u16);
    let head = [&len.to_be_bytes()[..], &[0x80], &pages.to_be_bytes(), &[1; 5000]].concat();
    memory.open(path, Access::Write).unwrap().write_at(&head, 4096).unwrap();
    let peak = peak_of(|| {
        let segment = Segment::open(&memory, path, Access::Read).unwrap();
        let found = segment.scan(0).next().unwrap().map(|found| matches!(found, Found::Damage(_)));
        assert_eq!(found, Some(true));
        segment.read(4096, &mut Vec::new()).unwrap_err();
    });
    assert!(peak < BYTES_MAX, "{peak} bytes");
}
