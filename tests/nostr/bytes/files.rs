//! Segments as files: creating, appending, flags, limits.

use deedbook::engine::nostr::{Segment, encode};
use deedbook::nostr::Flags;

use crate::support::nostr_layout::{PATH, Seen, event_of, events, file, read, segment_of};
use crate::support::prelude::*;

fn encoded(number: u32, content_len: usize, page: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&event_of(number, content_len), Flags(0), false, page, &mut bytes).unwrap();
    bytes
}

#[test]
fn records_append_and_read_at_every_page_size() {
    for page in [1024, 2048, 4096, 8192, 16_384, 32_768, 65_536] {
        let memory = Memory::new();
        let path = Path::new(PATH);
        let mut segment = Segment::create(&memory, path, 0, page, 1_655_000_000, 0o600).unwrap();
        assert_eq!((events(&segment), segment.end()), (vec![], page));
        let sizes = [0, 100, 50_000, 3, 4000, 0];
        let records: Vec<_> =
            sizes.iter().zip(0..).map(|(&len, i)| encoded(i, len, page)).collect();
        let slices: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
        let offsets =
            [segment.append(&slices[..4]).unwrap(), segment.append(&slices[4..]).unwrap()];
        let expected: Vec<_> = sizes.iter().zip(0..).map(|(&len, i)| event_of(i, len)).collect();
        let found: Vec<u32> = read(&segment)
            .iter()
            .map(|seen| match seen {
                Seen::Record { offset, .. } => *offset,
                Seen::Damage { .. } => panic!("{seen:?}"),
            })
            .collect();
        assert_eq!(found, offsets.concat());
        assert_eq!(events(&segment), expected);
        segment.write_header(6, 0).unwrap();
        assert_eq!(file(&memory), segment_of(&expected, false, page as usize));
        let again = Segment::open(&memory, path, Access::Read).unwrap();
        assert_eq!((again.end(), events(&again)), (segment.end(), expected));
        let error = Segment::create(&memory, path, 0, page, 0, 0o600).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    }
    let error = Segment::create(&Memory::new(), Path::new(PATH), 0, 512, 0, 0o600).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

/// The reference implementation's flag write clears CONTINUED, and the record is lost.
#[test]
fn flags_change_in_place_without_the_form_bit() {
    let memory = Memory::new();
    let path = Path::new(PATH);
    let mut segment = Segment::create(&memory, path, 0, 4096, 0, 0o600).unwrap();
    let (short, long) = (encoded(0, 10, 4096), encoded(1, 9000, 4096));
    let offsets = segment.append(&[&short, &long]).unwrap();
    let before = file(&memory);
    for (given, kept) in [(0x01, 0x01), (0x02, 0x02), (0x83, 0x03), (0x80, 0x00), (0x00, 0x00)] {
        for (&offset, form) in offsets.iter().zip([0, 0x80]) {
            segment.set_flags(offset, Flags(given)).unwrap();
            let bytes = file(&memory);
            assert_eq!(bytes[offset as usize + 4], form | kept);
            let changed = bytes.iter().zip(&before).filter(|(a, b)| a != b).count();
            assert!(changed <= 2);
        }
        let flags = |seen: &Seen| match seen {
            Seen::Record { flags, .. } => *flags,
            Seen::Damage { .. } => panic!("{seen:?}"),
        };
        assert_eq!(read(&segment).iter().map(flags).collect::<Vec<_>>(), [kept, kept]);
    }
    let before = file(&memory);
    // A header page, the middle of a page, a continuation page, the end.
    for offset in [0, 4100, 12_288, 20_480, 24_576] {
        let error = segment.set_flags(offset, Flags::DELETED).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfRange, "{offset}");
        assert!(segment.read(offset, &mut Vec::new()).is_err());
    }
    assert_eq!(file(&memory), before);
}

#[test]
fn segment_refuses_partial_records_and_other_page_sizes() {
    let memory = Memory::new();
    let mut segment = Segment::create(&memory, Path::new(PATH), 0, 8192, 0, 0o600).unwrap();
    let before = file(&memory);
    for record in [&encoded(0, 5000, 4096)[..], &encoded(0, 10, 8192)[..100], b""] {
        assert!(segment.append(&[record]).is_err());
    }
    assert_eq!(file(&memory), before);
    segment.append(&[&encoded(0, 9000, 8192)]).unwrap();
}
