//! Two and three damages of a file at once, at the beginning, in the middle and at the end: every reader gives one answer.

use deedbook::ledger::LedgerFile;

use crate::prelude::*;
use crate::support::ledger::judge::judge;

type Change = fn(&mut Vec<u8>);

const TAILS: [(&str, Change); 4] = [
    ("nothing", |_| {}),
    ("reserved zeros", |file| file.resize(file.len() + 64, 0)),
    ("a torn end", |file| file.truncate(file.len() - 10)),
    ("junk", |file| file.extend([7; 13])),
];

/// The bytes at which the records lie that a reader of the file gives, damage passed over.
fn places(options: &Options, split_bytes: Option<u64>) -> Vec<u64> {
    let file = options.open_file(Path::new(DIR).join("0-events")).unwrap();
    let cursors = match split_bytes {
        None => vec![file.cursor(OnCorrupt::Skip).unwrap()],
        Some(bytes) => {
            let splits = file.splits(bytes).unwrap();
            let read = |split| LedgerFile::read_split(split, options, OnCorrupt::Skip, true);
            splits.iter().map(|split| read(split).unwrap()).collect()
        }
    };
    let mut places = Vec::new();
    for mut cursor in cursors {
        while let Some(record) = cursor.next().unwrap() {
            places.push(record.offset);
        }
    }
    places
}

#[test]
fn all_readers_agree_about_damage_anywhere() {
    let all = events(0..8, 60);
    let whole = file_of(&all);
    let edges: Vec<usize> = (0..=all.len()).map(|count| file_of(&all[..count]).len()).collect();
    // A byte of the length, of the checksum, of the payload.
    let bytes = [0, 5, 12];
    for damaged in [&[0][..], &[0, 4], &[2, 3], &[0, 2, 3], &[1, 7], &[0, 3, 7]] {
        for byte in bytes {
            for (tail, change) in &TAILS {
                let mut file = whole.clone();
                damaged.iter().for_each(|&record: &usize| file[edges[record] + byte] ^= 1);
                change(&mut file);
                let what = format!("byte {byte} of records {damaged:?}, then {tail}");
                judge(&file, &what);
                let memory = Memory::new();
                put(&memory, 0, &file);
                let options = on(memory.clone());
                let given = places(&options, None);
                let back = |on_corrupt| {
                    let mut walk = options.contents(DIR, None).unwrap().cursor_back(on_corrupt);
                    let next = || walk.next().ok().flatten().map(|(_, record)| record.offset);
                    std::iter::from_fn(next).collect::<Vec<_>>()
                };
                let mut backwards = back(OnCorrupt::Skip);
                assert!(backwards.starts_with(&back(OnCorrupt::Raise)), "{what}, backwards");
                backwards.reverse();
                assert_eq!(backwards, given, "{what}, backwards");
                for split_bytes in [1, 200, u64::MAX] {
                    let parts = places(&options, Some(split_bytes));
                    assert_eq!(parts, given, "{what}, in parts of {split_bytes}");
                }
                let path = Path::new(DIR).join("0-events");
                let report = options.verify_file(path, &[], |_, _| Ok(())).unwrap();
                assert_eq!(report.records, given.len() as u64, "{what}: {report:?}");
                let copied = options.salvage(DIR, BASE, "/copy").unwrap();
                assert_eq!(copied[0].1.records, given.len() as u64, "{what}");
                let cut = usize::from(*tail == "a torn end");
                for record in (0..8 - cut).filter(|record| !damaged.contains(record)) {
                    let at = edges[record] as u64;
                    // Only behind a length that claims more may a record be a part of another.
                    assert!(byte == 0 || given.contains(&at), "{what}: record {record}");
                }
            }
        }
    }
}
