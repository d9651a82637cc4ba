//! Damaged pages: named with their place and both values, and intact records after them are given.

use deedbook::ErrorKind;
use deedbook::nostr::Event;

use crate::support::nostr_layout::{
    Seen, data, event_of, events, open, pages, plain_tags, read, record, segment_of,
};

const PAGE: usize = 4096;

/// Five events, the third of four pages: pages 1, 2, 3-6, 7, 8.
fn five() -> Vec<Event> {
    [100, 0, 15_000, 300, 200].iter().enumerate().map(|(i, &len)| event_of(i as u32, len)).collect()
}

/// What is read of the segment, by the numbers of its pages: events by number, damage by its pages
/// and reason.
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

#[test]
fn an_intact_segment_has_no_damage() {
    let bytes = segment_of(&five(), false, PAGE);
    let expected = ["1: event 0", "2: event 1", "3: event 2", "7: event 3", "8: event 4"];
    assert_eq!(summary(&bytes), expected);
}

// Promise: store-damage.
#[test]
fn a_lost_page_costs_its_record_alone() {
    let bytes = segment_of(&five(), false, PAGE);
    let without = |page: usize| [&bytes[..page * PAGE], &bytes[(page + 1) * PAGE..]].concat();
    assert_eq!(
        summary(&without(4)),
        [
            "1: event 0",
            "2: event 1",
            // What is last now has the chunk of what was last.
            "3-5: chunk_len 2897, left of the record 4090",
            "6: event 3",
            "7: event 4",
        ]
    );
    assert_eq!(
        summary(&without(3)),
        [
            "1: event 0",
            "2: event 1",
            "3-5: continuation pages 1, records before them 0",
            "6: event 3",
            "7: event 4",
        ]
    );
    let mut zeros = bytes.clone();
    zeros[4 * PAGE..5 * PAGE].fill(0);
    assert_eq!(
        summary(&zeros),
        [
            "1: event 0",
            "2: event 1",
            "3-6: magic of a continuation page 0, expected 1129270868",
            "7: event 3",
            "8: event 4",
        ]
    );
    let mut zeros = bytes;
    zeros[2 * PAGE..3 * PAGE].fill(0);
    assert_eq!(
        summary(&zeros),
        [
            "1: event 0",
            "2-2: unwritten pages 1, expected before the last record 0",
            "3: event 2",
            "7: event 3",
            "8: event 4",
        ]
    );
}

#[test]
fn a_damaged_chunk_length_is_named_with_both_values() {
    let mut bytes = segment_of(&five(), false, PAGE);
    bytes[5 * PAGE + 4] ^= 1;
    assert_eq!(
        summary(&bytes),
        [
            "1: event 0",
            "2: event 1",
            "3-6: chunk_len 3834, left of the record 4090",
            "7: event 3",
            "8: event 4",
        ]
    );
    let error = open(&bytes).unwrap().read(3 * PAGE as u32, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(
        error.to_string(),
        "chunk_len 3834, left of the record 4090 (byte 12,288 of /data.0.seg)"
    );
}

// Promise: store-damage.
#[test]
fn a_damaged_count_or_length_is_named_with_both_values() {
    let intact = segment_of(&five(), false, PAGE);
    for (at, value, reason) in [
        (3 * PAGE + 6, 4, "continuation_count 4, pages needed 3"),
        (3 * PAGE, 0x7F, "record_len 2130721605, limit 100000000"),
        (3 * PAGE + 4, 0, "record_len 15173, limit 4095"),
    ] {
        let mut bytes = intact.clone();
        bytes[at] = value;
        let seen = summary(&bytes);
        assert_eq!(seen[2], format!("3-6: {reason}"));
        assert_eq!(seen[3..], ["7: event 3", "8: event 4"]);
    }
}

#[test]
fn orphan_continuation_pages_are_named() {
    let bytes = segment_of(&five(), false, PAGE);
    let orphan = &bytes[5 * PAGE..6 * PAGE];
    let with = [&bytes[..2 * PAGE], orphan, orphan, &bytes[2 * PAGE..]].concat();
    let expected = [
        "1: event 0",
        "2-3: continuation pages 1, records before them 0",
        "4: event 1",
        "5: event 2",
        "9: event 3",
        "10: event 4",
    ];
    assert_eq!(summary(&with), expected);
    // After a record that goes on itself, and at the very beginning.
    let with = [&bytes[..7 * PAGE], orphan, &bytes[7 * PAGE..]].concat();
    assert_eq!(summary(&with)[3], "7-7: continuation pages 1, records before them 0");
    let with = [&bytes[..PAGE], orphan, &bytes[PAGE..]].concat();
    assert_eq!(summary(&with)[0], "1-1: continuation pages 1, records before them 0");
}

#[test]
fn a_stale_header_hides_nothing() {
    let mut bytes = segment_of(&five(), false, PAGE);
    bytes[20..28].copy_from_slice(&[0, 0, 0, 1, 0, 0, 0x20, 0]);
    let segment = open(&bytes).unwrap();
    assert_eq!((segment.header().records, segment.header().next_free), (1, 8192));
    assert_eq!(segment.end(), 9 * PAGE as u32);
    assert_eq!(events(&segment), five());
}

#[test]
fn the_last_page_need_not_be_padded_and_space_reserved_ahead_is_no_damage() {
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
    // The reference pads none of its last pages.
    assert!(!data("data.0.seg").len().is_multiple_of(PAGE));
}

/// A torn append: any prefix of the pages has reached the disk.
#[test]
fn a_segment_cut_anywhere_gives_the_records_before() {
    let bytes = segment_of(&five(), true, PAGE);
    let borders = [PAGE, 2 * PAGE, 3 * PAGE, 7 * PAGE, 8 * PAGE];
    let lens: Vec<usize> = five()
        .iter()
        .map(|e| {
            let record = record(e, &plain_tags(&e.tags), 0, true, PAGE);
            let padded = pages(&record, PAGE);
            record.len() + (padded.len() / PAGE - 1) * 6
        })
        .collect();
    for cut in (PAGE..bytes.len()).step_by(37).chain((1..9).map(|page| page * PAGE)) {
        let whole = borders.iter().zip(&lens).filter(|(at, len)| *at + *len <= cut).count();
        let seen = read(&open(&bytes[..cut]).unwrap());
        let records = seen.iter().filter(|seen| matches!(seen, Seen::Record { .. })).count();
        assert_eq!(records, whole, "cut at {cut}");
    }
}

/// With a trailer, no flipped bit passes: one record is damaged, and all others are given.
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
fn what_is_no_segment_is_refused_with_the_reason() {
    let intact = segment_of(&five(), false, PAGE);
    for (at, value, kind, text) in [
        (0, 0xFF, ErrorKind::NotALog, "magic ff535452, a segment's is 4e535452"),
        (31, 2, ErrorKind::Unsupported, "version 2 of a segment, known is 1"),
        (6, 0x11, ErrorKind::NotALog, "pages of 4352 bytes, powers of two 1024 to 65536"),
        (5, 0x80, ErrorKind::NotALog, "pages of 8392704 bytes, powers of two 1024 to 65536"),
    ] {
        let mut bytes = intact.clone();
        bytes[at] = value;
        let error = open(&bytes).unwrap_err();
        assert_eq!((error.kind(), error.message()), (kind, text));
    }
    let error = open(&intact[..39]).unwrap_err();
    assert_eq!(error.message(), "segment of 39 bytes, its header has 40");
}
