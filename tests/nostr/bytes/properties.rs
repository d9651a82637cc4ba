//! Any events, page sizes and flags come back as they were written, in the bytes of the layout.

use deedbook::engine::nostr::{encode, encode_stored, parse, spread};
use deedbook::nostr::{Event, Flags};
use proptest::prelude::*;

use crate::support::nostr_layout::{Seen, event_of, header, open, plain_tags, read, record};

/// Texts whose lengths and first bytes are those at which the layout changes.
fn text() -> impl Strategy<Value = String> {
    let long = prop_oneof![250usize..260, 65_520usize..65_545, 131_000usize..131_100];
    prop_oneof![
        8 => "[a-z]{0,12}",
        4 => ".{0,20}",
        2 => prop::sample::select(vec!["", "e", "+", "\0", "\u{1}", "\u{2}", "\u{7F}", "\u{80}", "é"])
            .prop_map(str::to_owned),
        1 => (prop::sample::select(vec!["x", "é", "€", "𝄞"]), long)
            .prop_map(|(unit, len)| unit.repeat(len / unit.len())),
    ]
}

fn tags() -> impl Strategy<Value = Vec<Vec<String>>> {
    let tag = prop_oneof![
        8 => prop::collection::vec(text(), 0..5),
        1 => prop::collection::vec("[a-z]{0,3}", 250..260),
        1 => prop::collection::vec("[a-z]{200}", 320..330),
    ];
    prop::collection::vec(tag, 0..6)
}

/// Whether every entry is within the layout's limits, walked without the crate; how many there are.
fn walk(tags: &[u8]) -> usize {
    let count = usize::from(u16::from_be_bytes([tags[0], tags[1]]));
    let mut rest = &tags[2..];
    for _ in 0..count {
        let len = usize::from(u16::from_be_bytes([rest[1], rest[2]]));
        let (mut values, values_count) = (&rest[4..3 + len], rest[3]);
        for _ in 0..values_count {
            let len = usize::from(u16::from_be_bytes([values[0], values[1]]));
            // Pieces of a value are text themselves.
            std::str::from_utf8(&values[2..2 + len]).unwrap();
            values = &values[2 + len..];
        }
        assert!(values.is_empty());
        rest = &rest[3 + len..];
    }
    assert!(rest.is_empty());
    count
}

proptest! {
    #[test]
    fn any_tags_come_back(tags in tags(), trailer in any::<bool>()) {
        let event = Event { tags, ..event_of(1, 5) };
        let mut bytes = Vec::new();
        encode(&event, Flags(0), trailer, 4096, &mut bytes).unwrap();
        let read = parse(&bytes).unwrap();
        let at = if bytes[4] & 0x80 == 0 { 79 } else { 81 };
        let len = u32::from_be_bytes(bytes[at - 4..at].try_into().unwrap()) as usize;
        let entries = walk(&bytes[at..at + len]);
        prop_assert!(entries >= event.tags.len());
        prop_assert_eq!(read.to_event(), event.clone());
        for (tag, expected) in read.tags.iter().zip(&event.tags) {
            prop_assert_eq!(tag.name(), expected.first().map(String::as_str).unwrap_or_default());
            let values: Vec<_> = tag.values().collect();
            prop_assert_eq!(&values, &expected[1.min(expected.len())..]);
            let letter = expected.first().and_then(|name| <[u8; 1]>::try_from(name.as_bytes()).ok());
            prop_assert_eq!(tag.letter(), letter.map(|[b]| b).filter(|b| (2..128).contains(b)));
        }
        if entries == event.tags.len() {
            prop_assert_eq!(&bytes, &record(&event, &plain_tags(&event.tags), 0, trailer, 4096));
        }
        // For other pages, the event and its tags stay the same.
        let mut other = Vec::new();
        encode_stored(&read, !trailer, 65_536, &mut other).unwrap();
        prop_assert_eq!(parse(&other).unwrap().to_event(), event);
    }
}

/// 4095 is the longest record of one page, and 4098 the shortest of two.
#[test]
fn the_boundary_between_one_page_and_two() {
    for page in [1024usize, 4096, 65_536] {
        for trailer in [false, true] {
            for short in page - 2..=page + 3 {
                let mut event = event_of(1, 0);
                let fixed = record(&event, &plain_tags(&event.tags), 0, trailer, page).len();
                event.content = "x".repeat(short - fixed);
                let mut bytes = Vec::new();
                encode(&event, Flags::DELETED, trailer, page as u32, &mut bytes).unwrap();
                let (len, form, count) = match short < page {
                    true => (short, 0x01, 1),
                    false => (short + 2, 0x81, 2),
                };
                assert_eq!((bytes.len(), bytes[4]), (len, form), "{short} of {page}");
                let mut spread_out = header(page, 0, 0, 0, 0);
                spread(&bytes, page as u32, &mut spread_out);
                assert_eq!(spread_out.len(), (1 + count) * page);
                let expected = Seen::Record { offset: page as u32, flags: 1, event };
                assert_eq!(read(&open(&spread_out).unwrap()), [expected]);
            }
        }
    }
}

/// Example 3 of the document: a follow list of 5,000 tags with values of 26 bytes, whose record has 160,450 bytes.
#[test]
fn follow_list_takes_39_pages_after_the_first() {
    for trailer in [false, true] {
        // The fixed part, the count of tags, 32 bytes for each tag, and the checksum.
        let content = 160_450 - (150 + 2 + 5_000 * 32) - 8 * usize::from(trailer);
        let tags = (0..5_000).map(|number| vec!["p".into(), format!("{number:026}")]).collect();
        let event = Event { tags, ..event_of(1, content) };
        let mut bytes = Vec::new();
        encode(&event, Flags(0), trailer, 4096, &mut bytes).unwrap();
        assert_eq!(bytes[..4], 160_450u32.to_be_bytes());
        assert_eq!((bytes.len(), &bytes[5..7]), (160_450, &39u16.to_be_bytes()[..]));
        let mut spread_out = header(4096, 0, 0, 0, 0);
        spread(&bytes, 4096, &mut spread_out);
        assert_eq!(spread_out.len(), (1 + 1 + 39) * 4096);
        let expected = Seen::Record { offset: 4096, flags: 0, event };
        assert_eq!(read(&open(&spread_out).unwrap()), [expected]);
    }
}

#[test]
fn too_many_entries_or_pages_are_refused() {
    let mut out = vec![1, 2, 3];
    let event = Event { tags: vec![vec!["x".into()]; 65_536], ..event_of(1, 0) };
    let error = encode(&event, Flags(0), false, 4096, &mut out).unwrap_err();
    assert_eq!(error.message(), "tags of 65536 entries, limit 65535");
    let event = event_of(1, 1024 + 65_535 * 1018);
    let error = encode(&event, Flags(0), false, 1024, &mut out).unwrap_err();
    assert!(error.message().contains("65536 continuation pages, limit 65535"), "{error}");
    assert_eq!(out, [1, 2, 3]);
    let event = Event { tags: vec![vec!["x".into()]; 65_535], ..event_of(1, 0) };
    encode(&event, Flags(0), false, 4096, &mut out).unwrap();
    assert_eq!(parse(&out[3..]).unwrap().to_event(), event);
}

#[test]
fn continuation_entry_without_a_predecessor_is_a_tag() {
    use crate::support::nostr_layout::{entries, entry};
    let with = |tags: &[Vec<u8>]| {
        let event = Event { tags: vec![], ..event_of(1, 0) };
        let bytes = record(&event, &entries(tags), 0, false, 4096);
        parse(&bytes).unwrap().to_event().tags
    };
    assert_eq!(with(&[entry(1, &[b"a"])]), [["\u{1}", "a"]]);
    assert_eq!(with(&[entry(1, &[b"+", b"a"])]).len(), 1);
    // Glued to the name of a tag without values: there is no last value.
    assert_eq!(with(&[entry(b'e', &[]), entry(1, &[b"+", b"a"])]).len(), 2);
    assert_eq!(with(&[entry(b'e', &[]), entry(1, &[b"", b"a"])]), [["e", "a"]]);
    let glued = [entry(0, &[b"n"]), entry(1, &[b"+", b"am"]), entry(1, &[b"+", b"e", b"v"])];
    assert_eq!(with(&glued), [["name", "v"]]);
    // An entry without values between them is none.
    let apart = [entry(b'e', &[b"a"]), entry(1, &[b""]), entry(1, &[b"+", b"b"])];
    assert_eq!(with(&apart), [["e", "ab"]]);
    // No entries, written as nothing at all.
    let event = Event { tags: vec![], ..event_of(1, 0) };
    assert_eq!(parse(&record(&event, &[], 0, false, 4096)).unwrap().to_event(), event);
}
