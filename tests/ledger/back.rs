//! Ledgers read backwards: the same records with the same numbers, the newest file first.

use deedbook::ledger::Contents;

use crate::prelude::*;

type Found = (u32, Option<u64>, Vec<u8>);

fn contents(options: &Options) -> Contents {
    options.contents(DIR, Some(BASE)).unwrap()
}

fn forwards(options: &Options) -> Vec<Found> {
    let mut found = Vec::new();
    let mut walk = contents(options).cursor(OnCorrupt::Skip);
    while let Some((file, record)) = walk.next_numbered().unwrap() {
        found.push((file as u32, record.number, record.payload.to_vec()));
    }
    found
}

/// The records backwards, and the byte of the damage that was raised.
fn backwards(options: &Options, on_corrupt: OnCorrupt) -> (Vec<Found>, Option<u64>) {
    let (mut found, mut walk) = (Vec::new(), contents(options).cursor_back(on_corrupt));
    loop {
        match walk.next() {
            Ok(Some((file, record))) => found.push((file, record.number, record.payload)),
            Ok(None) => return (found, None),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt);
                assert!(walk.next().unwrap().is_none(), "the walk ends after an error");
                return (found, error.offset());
            }
        }
    }
}

#[test]
fn reading_backwards_gives_the_records_of_reading_forwards() {
    let (memory, options) = memory();
    // The third file has more than one block of the index.
    for (file, numbers, longest) in [(2, 0..5, 40), (3, 5..6, 40), (10, 6..2006, 400)] {
        put(&memory, file, &file_of(&events(numbers, longest)));
    }
    let mut wanted = forwards(&options);
    wanted.reverse();
    assert_eq!(wanted[0], (10, Some(1999), event(2005, 400)));
    for on_corrupt in [OnCorrupt::Raise, OnCorrupt::Skip] {
        assert_eq!(backwards(&options, on_corrupt), (wanted.clone(), None));
    }
}

#[test]
fn a_file_sent_meanwhile_is_passed_over_backwards() {
    let (memory, options) = memory();
    (0..3).for_each(|file| put(&memory, file, &file_of(&events(0..2, 40))));
    let mut walk = contents(&options).cursor_back(OnCorrupt::Raise);
    assert_eq!(walk.next().unwrap().unwrap().0, 2);
    memory.remove(&Path::new(DIR).join("1-events")).unwrap();
    let files: Vec<_> = std::iter::from_fn(|| walk.next().unwrap().map(|(file, _)| file)).collect();
    assert_eq!(files, [2, 0, 0]);
}
