//! Records at the limits of pages and tags. Any tags: `engine::fuzz_corpus::any_tags_are_read_as_specified`.

use deedbook::engine::nostr::{encode, parse, spread};
use deedbook::nostr::{Event, Flags};

use crate::support::nostr_layout::*;

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
