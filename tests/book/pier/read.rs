//! Reading across epochs, in both directions, live.

use crate::pier::support::*;
use crate::support::formats::range;

const NOT_LONG: Duration = Duration::from_millis(1);

#[test]
fn every_range_is_read_in_both_directions() {
    let disk = three_epochs();
    let pier = reading(&disk);
    let all: Vec<u64> = (1..=9).collect();
    for start in 0..12 {
        for stop in (0..12).map(Some).chain([None]) {
            let wanted: Vec<u64> = all
                .iter()
                .copied()
                .filter(|&event| event >= start && stop.is_none_or(|stop| event < stop))
                .collect();
            let read: Vec<u64> = pier
                .iter(range(Some(start), stop))
                .unwrap()
                .map(|deed| deed.unwrap().event.unwrap())
                .collect();
            assert_eq!(read, wanted, "{start}..{stop:?}");
            let mut back = pier.cursor_back(range(Some(start), stop)).unwrap();
            let mut read = Vec::new();
            while let Some(deed) = back.next().unwrap() {
                assert_eq!(deed.jam, jam(deed.event.unwrap()));
                read.push(deed.event.unwrap());
            }
            read.reverse();
            assert_eq!(read, wanted, "{start}..{stop:?} backwards");
            let mut read = Vec::new();
            for split in pier.splits(1, range(Some(start), stop)).unwrap() {
                let on = options(&disk);
                let mut part = Book::read_split(&split, &on, .., OnCorrupt::Raise, true).unwrap();
                while let Some(deed) = part.next().unwrap() {
                    read.push(deed.event.unwrap());
                }
            }
            assert_eq!(read, wanted, "{start}..{stop:?} in parts");
            let cursor = pier.cursor(range(Some(start), stop), OnCorrupt::Raise).unwrap();
            let mut batches = deedbook::Batches::new(cursor, &["event"], 100, 1 << 20).unwrap();
            let mut rows = 0;
            while let Some(batch) = batches.next() {
                let number = batches.number().unwrap();
                let of_epoch = |&&event: &&u64| number == epoch_of(event);
                assert_eq!(batch.unwrap().num_rows(), wanted.iter().filter(of_epoch).count());
                rows += wanted.iter().filter(of_epoch).count();
            }
            assert_eq!(rows, wanted.len(), "{start}..{stop:?} as batches");
        }
    }
}

/// The epoch of an event in `three_epochs`.
fn epoch_of(event: u64) -> u64 {
    match event {
        ..=3 => 0,
        4..=5 => 3,
        _ => 5,
    }
}

/// A walk went on in the next epoch after the error, without the events between.
#[test]
fn no_walk_goes_on_after_damage() {
    let disk = three_epochs();
    let file = disk.open(&epoch(3).join("book.log"), Access::Write).unwrap();
    file.write_at(b"#", file.len().unwrap() - 20).unwrap();
    let pier = reading(&disk);
    let mut cursor = pier.cursor(.., OnCorrupt::Raise).unwrap();
    for event in 1..=4 {
        assert_eq!(cursor.next().unwrap().unwrap().event, Some(event));
    }
    refused(cursor.next(), ErrorKind::Corrupt);
    assert_eq!(cursor.next().unwrap(), None);
    let mut back = pier.cursor_back(..).unwrap();
    for event in (6..=9).rev() {
        assert_eq!(back.next().unwrap().unwrap().event, Some(event));
    }
    refused(back.next(), ErrorKind::Corrupt);
    assert_eq!(back.next().unwrap(), None);
    let cursor = pier.cursor(.., OnCorrupt::Raise).unwrap();
    let rows = deedbook::Batches::new(cursor, &["event"], 100, 1 << 20)
        .unwrap()
        .map(|b| b.map(|b| b.num_rows()));
    let rows: Vec<_> = rows.collect();
    assert!(matches!(rows[..], [Ok(3), Ok(1), Err(_)]), "{rows:?}");
    let cursor = pier.cursor(.., OnCorrupt::Skip).unwrap();
    let mut batches = deedbook::Batches::new(cursor, &["event"], 100, 1 << 20).unwrap();
    let rows: Vec<_> = batches.by_ref().map(|batch| batch.unwrap().num_rows()).collect();
    assert_eq!((&rows[..], batches.damages().len()), (&[3, 1, 4][..], 1));
    // Batches of one row meet the same damage once.
    let cursor = pier.cursor(.., OnCorrupt::Skip).unwrap();
    let mut batches = deedbook::Batches::new(cursor, &["event"], 1, 1 << 20).unwrap();
    assert_eq!((batches.by_ref().count(), batches.damages().len()), (8, 1));
}

#[test]
fn a_cursor_is_a_snapshot() {
    let disk = three_epochs();
    let pier = appending(&disk);
    let cursor = pier.iter(..).unwrap();
    append(&pier, 10..=10);
    pier.roll().unwrap();
    append(&pier, 11..=11);
    assert_eq!(cursor.count(), 9);
    assert_eq!(all(&pier), (1..=11).collect::<Vec<_>>());
}

#[test]
fn a_refreshed_reader_sees_appends_and_rolls() {
    let disk = three_epochs();
    let (reader, writer) = (reading(&disk), appending(&disk));
    append(&writer, 10..=11);
    writer.roll().unwrap();
    assert_eq!(reader.last().unwrap(), 9);
    append(&writer, 12..=12);
    writer.roll().unwrap();
    assert_eq!(reader.refresh().unwrap(), 12);
    assert_eq!(numbers(&reader), [0, 3, 5, 11, 12]);
    assert_eq!(all(&reader), (1..=12).collect::<Vec<_>>());
    append(&writer, 13..=13);
    assert_eq!(reader.refresh().unwrap(), 13);
    assert_eq!(writer.refresh().unwrap(), 13);
}

#[test]
fn a_follower_continues_into_new_epochs() {
    let disk = three_epochs();
    let writer = appending(&disk);
    for pier in [reading(&disk), writer.clone()] {
        let mut follow = pier.follow(Some(5)).unwrap();
        let last = writer.last().unwrap();
        let mut next = || follow.next(NOT_LONG).unwrap().map(|deed| deed.event.unwrap());
        for event in 5..=last {
            assert_eq!(next(), Some(event));
        }
        assert_eq!(next(), None);
        append(&writer, last + 1..=last + 2);
        writer.roll().unwrap();
        append(&writer, last + 3..=last + 3);
        writer.roll().unwrap();
        assert_eq!(
            [next(), next(), next(), next()],
            [Some(last + 1), Some(last + 2), Some(last + 3), None]
        );
        append(&writer, last + 4..=last + 4);
        assert_eq!(next(), Some(last + 4));
    }
    let mut ahead = writer.follow(Some(writer.last().unwrap() + 2)).unwrap();
    let last = writer.last().unwrap();
    append(&writer, last + 1..=last + 1);
    writer.roll().unwrap();
    append(&writer, last + 2..=last + 2);
    let deed = ahead.next(NOT_LONG).unwrap().unwrap();
    assert_eq!(deed.event, Some(last + 2));
    writer.close().unwrap();
    assert_eq!(ahead.next(NOT_LONG).unwrap_err().kind(), ErrorKind::Closed);
}
