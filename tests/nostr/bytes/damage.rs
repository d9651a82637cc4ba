//! The reader reports damaged pages with their place and both values, and returns the intact records after them.

use deedbook::ErrorKind;
use deedbook::nostr::Event;

use crate::support::nostr_layout::*;

const PAGE: usize = 4096;

/// Five events, the third of four pages: pages 1, 2, 3-6, 7, 8.
fn five() -> Vec<Event> {
    [100, 0, 15_000, 300, 200].iter().enumerate().map(|(i, &len)| event_of(i as u32, len)).collect()
}

/// The contents of the segment by page number: events by number, damage by its pages and reason.
fn summary(bytes: &[u8]) -> Vec<String> {
    let page = |offset: u32| offset as usize / PAGE;
    let known = five();
    let line = |seen| match seen {
        Seen::Record { offset, event, .. } => {
            let number = known.iter().position(|known| *known == event);
            format!("{}: event {}", page(offset), number.expect("an event that was never written"))
        }
        Seen::Damage { offset, end, reason } => {
            format!("{}-{}: {reason}", page(offset), page(end) - 1)
        }
    };
    read(&open(bytes).unwrap()).into_iter().map(line).collect()
}

/// A damage, its report, and the page of each event afterwards, or 0 for a lost event.
type Case = (fn(&mut Vec<u8>), &'static str, [usize; 5]);

fn zero(bytes: &mut [u8], page: usize) {
    bytes[page * PAGE..(page + 1) * PAGE].fill(0);
}

fn orphan(bytes: &mut Vec<u8>, page: usize) {
    let orphan = bytes[5 * PAGE..6 * PAGE].to_vec();
    drop(bytes.splice(page * PAGE..page * PAGE, orphan));
}

const CASES: [Case; 12] = [
    (|_| {}, "", [1, 2, 3, 7, 8]),
    // The new last page has the chunk of the old last page.
    (
        |b| drop(b.drain(4 * PAGE..5 * PAGE)),
        "3-5: chunk_len 2897, left of the record 4090",
        [1, 2, 0, 6, 7],
    ),
    (
        |b| drop(b.drain(3 * PAGE..4 * PAGE)),
        "3-5: continuation pages 1, records before them 0",
        [1, 2, 0, 6, 7],
    ),
    (|b| zero(b, 4), "3-6: magic of a continuation page 0, expected 1129270868", [1, 2, 0, 7, 8]),
    (|b| zero(b, 2), "2-2: unwritten pages 1, expected before the last record 0", [1, 0, 3, 7, 8]),
    (|b| b[5 * PAGE + 4] ^= 1, "3-6: chunk_len 3834, left of the record 4090", [1, 2, 0, 7, 8]),
    (|b| b[3 * PAGE + 6] = 4, "3-6: continuation_count 4, pages needed 3", [1, 2, 0, 7, 8]),
    (|b| b[3 * PAGE] = 0x7F, "3-6: record_len 2130721605, limit 100000000", [1, 2, 0, 7, 8]),
    (|b| b[3 * PAGE + 4] = 0, "3-6: record_len 15173, limit 4095", [1, 2, 0, 7, 8]),
    (
        |b| [2, 2].iter().for_each(|page| orphan(b, *page)),
        "2-3: continuation pages 1, records before them 0",
        [1, 4, 5, 9, 10],
    ),
    // After a multi-page record, and at the very beginning.
    (|b| orphan(b, 7), "7-7: continuation pages 1, records before them 0", [1, 2, 3, 8, 9]),
    (|b| orphan(b, 1), "1-1: continuation pages 1, records before them 0", [2, 3, 4, 8, 9]),
];

// Promise: store-damage.
#[test]
fn damage_costs_one_record_and_reports_both_values() {
    for (number, (damage, expected, pages)) in CASES.into_iter().enumerate() {
        let mut bytes = segment_of(&five(), false, PAGE);
        damage(&mut bytes);
        let there = pages.iter().enumerate().filter(|(_, page)| **page > 0);
        let mut lines: Vec<String> =
            there.map(|(event, page)| format!("{page}: event {event}")).collect();
        lines.extend((!expected.is_empty()).then(|| expected.to_owned()));
        let page = |line: &String| line.split([':', '-']).next().unwrap().parse::<u32>().unwrap();
        lines.sort_by_key(page);
        assert_eq!(summary(&bytes), lines, "case {number}");
    }
    let mut bytes = segment_of(&five(), false, PAGE);
    bytes[5 * PAGE + 4] ^= 1;
    let error = open(&bytes).unwrap().read(3 * PAGE as u32, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let said = "chunk_len 3834, left of the record 4090 (byte 12,288 of /data.0.seg)";
    assert_eq!(error.to_string(), said);
}

#[test]
fn unpadded_last_page_and_reserved_space_are_intact() {
    let bytes = segment_of(&five(), false, PAGE);
    let used = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    // The last byte of a record is the reserved one, zero here.
    for len in used + 1..used + 3 {
        let segment = open(&bytes[..len]).unwrap();
        assert_eq!((events(&segment), segment.end()), (five(), 9 * PAGE as u32));
    }
    assert_eq!(
        summary(&bytes[..used])[4],
        format!(
            "8-8: bytes of pages needed {}, bytes there {}",
            used + 1 - 8 * PAGE,
            used - 8 * PAGE
        )
    );
    let ahead = [&bytes[..], &[0; 5 * PAGE]].concat();
    let segment = open(&ahead).unwrap();
    assert_eq!((events(&segment), segment.end()), (five(), 9 * PAGE as u32));
    // The reference pads no last page.
    assert!(!data("data.0.seg").len().is_multiple_of(PAGE));
}

/// With a trailer, no flipped bit passes: the reader loses one record, and returns all others.
// Promise: store-damage.
#[test]
fn every_flipped_byte_is_found_in_its_record() {
    let events = [event_of(0, 10), event_of(1, 4500), event_of(2, 20)];
    let intact = segment_of(&events, true, PAGE);
    let lens = events.each_ref().map(|e| record(e, &plain_tags(&e.tags), 0, true, PAGE).len());
    let parts = [
        (0, PAGE..PAGE + lens[0]),
        (1, 2 * PAGE..3 * PAGE),
        (1, 3 * PAGE..3 * PAGE + lens[1] - PAGE + 6),
        (2, 4 * PAGE..4 * PAGE + lens[2]),
    ];
    for (number, part) in parts {
        for at in part {
            for bit in [0, 3, 6, 7] {
                let mut bytes = intact.clone();
                bytes[at] ^= 1 << bit;
                let seen = read(&open(&bytes).unwrap());
                let given: Vec<&Event> = seen
                    .iter()
                    .filter_map(|seen| match seen {
                        Seen::Record { event, .. } => Some(event),
                        Seen::Damage { .. } => None,
                    })
                    .collect();
                let damaged = seen.len() - given.len();
                let is_flags = at % PAGE == 4 && at != 3 * PAGE + 4 && bit != 7;
                let lost = usize::from(!is_flags);
                assert_eq!(
                    (damaged, given.len()),
                    (lost, 3 - lost),
                    "byte {at}, bit {bit}: {seen:?}"
                );
                let others = events.iter().enumerate().filter(|(i, _)| is_flags || *i != number);
                assert_eq!(given, others.map(|(_, event)| event).collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn non_segment_is_refused_with_the_reason() {
    let intact = segment_of(&five(), false, PAGE);
    for (at, value, kind, text) in [
        (0, 0xFF, ErrorKind::NotALog, "magic ff535452, a segment's is 4e535452"),
        (31, 2, ErrorKind::Unsupported, "version 2 of a segment, known is 1"),
        (6, 0x11, ErrorKind::NotALog, "page size 4352, may be a power of two from 1024 to 65536"),
        (
            5,
            0x80,
            ErrorKind::NotALog,
            "page size 8392704, may be a power of two from 1024 to 65536",
        ),
    ] {
        let mut bytes = intact.clone();
        bytes[at] = value;
        let error = open(&bytes).unwrap_err();
        assert_eq!((error.kind(), error.message()), (kind, text));
    }
    let error = open(&intact[..39]).unwrap_err();
    assert_eq!(error.message(), "segment of 39 bytes, its header has 40");
}
