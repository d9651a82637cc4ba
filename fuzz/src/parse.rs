//! The parser, through a split: a cursor over any bytes.

use deedbook::ErrorKind;
use deedbook::book::{Book, Layout};
use deedbook::jobs::Split;
use deedbook::{Mode, OnCorrupt};

use super::kit::{
    HEADER, Input, World, deed, end_of_deed, event_at, header, image, pieces, strict,
};

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let limit = match input.u8() % 4 {
        0 => 4 + u64::from(input.u8()),
        1 => 1 << 16,
        2 => 1 << 62,
        _ => deedbook::book::Options::DEED_BYTES_MAX,
    };
    let log = match input.u8() % 4 {
        0 => {
            let mut log = header(1);
            pieces(&mut input, &mut log);
            log
        }
        1 => [&header(1)[..], input.rest()].concat(),
        _ => image(&mut input),
    };
    let mut world = World::new("/b");
    world.options.deed_bytes_max = limit;
    world.put(&world.log_path(), &log);

    // The oracle knows only `packed`. In other layouts, every returned deed must be whole.
    let opened = world.options.open(&world.dir, Mode::Read);
    if let Some(layout) = opened.ok().map(|book| book.layout()).filter(|&l| l != Layout::Packed) {
        let start = if layout == Layout::Slots { 8192 } else { HEADER as u64 };
        let split = Split::new(world.dir.clone(), start, (log.len() as u64).max(start));
        let skip = OnCorrupt::Skip;
        let cursor = Book::read_split(&split, &world.options, .., skip, true);
        let mut cursor = cursor.expect("opened before");
        let mut end = start;
        while let Some(found) = cursor.next().expect("skipping raises nothing") {
            assert!(found.offset >= end);
            let whole = end_of_deed(layout, &log, found.offset, found.mug, found.jam);
            end = whole.expect("a deed that is none");
        }
        return;
    }
    let expected = strict(&log, limit);
    let end = (log.len() as u64).max(HEADER as u64);
    let split = Split { ordinal: Some(1), ..Split::new(world.dir.clone(), HEADER as u64, end) };
    let cursor =
        |on_corrupt, check| Book::read_split(&split, &world.options, .., on_corrupt, check);
    if let Err(error) = cursor(OnCorrupt::Raise, true) {
        // A log is refused without a whole book header and without a deed at byte 16.
        assert_eq!(error.kind(), ErrorKind::NotALog, "{error}");
        let has_header = log.len() >= HEADER && log.starts_with(b"KOOB\x01\0\0\0");
        assert!(!has_header && expected.is_empty(), "{error}");
        return;
    }
    let cursor = |on_corrupt, check| cursor(on_corrupt, check).expect("opened before");

    // Reading returns exactly the deeds that encode to the present bytes.
    let mut deeds = cursor(OnCorrupt::Raise, true);
    let mut count = 0;
    let failed = loop {
        match deeds.next() {
            Ok(Some(found)) => {
                let place = expected.get(count).expect("a deed that is none");
                assert_eq!(found.offset, place.at as u64);
                assert_eq!((found.mug, found.jam), event_at(&log, *place));
                assert_eq!(deed(found.mug, found.jam), log[place.at..place.end]);
                assert_eq!(found.event, Some(1 + count as u64));
                count += 1;
            }
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    assert_eq!(count, expected.len(), "an intact deed refused");
    let end = expected.last().map_or(HEADER, |place| place.end);
    let whole = end == log.len();
    assert_eq!(failed, !whole, "byte {end} of {}", log.len());

    // Without checksums, reading accepts the same deeds. Past damage, every deed is whole.
    let mut unchecked = cursor(OnCorrupt::Raise, false);
    for place in &expected {
        let found = unchecked.next().expect("lengths agree").expect("as many");
        assert_eq!((found.mug, found.jam), event_at(&log, *place));
    }
    let mut past = cursor(OnCorrupt::Skip, true);
    let mut behind = HEADER as u64;
    while let Some(found) = past.next().expect("skipping raises nothing") {
        assert!(found.offset >= behind);
        let at = found.offset as usize;
        let whole = deed(found.mug, found.jam);
        behind = past.offset();
        assert_eq!(whole, log[at..behind as usize]);
    }
}
