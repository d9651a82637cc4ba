//! Readers of a write-ahead log whose writer drops a prefix or cuts the end. A random history of a writer next to a
//! reader (`test_stateful_wal.py`) found most of these bugs.

use super::*;

const LAYOUTS: [Layout; 3] = [
    Layout::Single,
    Layout::Segmented { segment_bytes: 128 },
    Layout::Segmented { segment_bytes: 1 << 20 },
];

fn pair(dir: &TempDir, layout: Layout, records: u64) -> (Wal, Wal, Vec<Lsn>) {
    let options = Options::new().layout(layout);
    let writer = options.open(dir.path().join("log"), Mode::Create).unwrap();
    let lsns = (0..records).map(|i| writer.append(&i.to_le_bytes()).unwrap()).collect();
    writer.sync().unwrap();
    let reader = Wal::open(dir.path().join("log")).unwrap();
    assert_eq!(reader.len().unwrap(), records);
    (writer, reader, lsns)
}

fn payloads(wal: &Wal) -> Vec<u64> {
    let number = |bytes: Vec<u8>| u64::from_le_bytes(bytes.try_into().unwrap());
    wal.iter(..).unwrap().map(|record| number(record.unwrap().payload)).collect()
}

// Promise: wal-beside.
#[test]
fn a_reader_reports_a_truncated_end() {
    for layout in LAYOUTS {
        for (records, kept, again) in [(100, 0, 0), (100, 60, 0), (30, 29, 0), (100, 40, 200)] {
            let dir = TempDir::new().unwrap();
            let (writer, reader, lsns) = pair(&dir, layout, records);
            let mut followed = reader.follow(None).unwrap();
            writer.truncate_from(lsns[kept]).unwrap();
            // A new size, so no record begins at an old position.
            (0..again).for_each(|_| assert!(writer.append(&[7; 9]).is_ok()));
            let wait = Duration::ZERO;
            let mut refused = vec![reader.refresh().unwrap_err()];
            refused.push(loop {
                match followed.next(wait) {
                    Ok(record) => assert!(record.is_some(), "{layout:?}, {kept}"),
                    Err(error) => break error,
                }
            });
            refused.extend(reader.read(*lsns.last().unwrap()).err());
            refused.extend(reader.read(lsns[(records + kept as u64) as usize / 2]).err());
            for error in refused {
                let what = format!("{layout:?}, {kept} of {records}, {again} again: {error}");
                assert_eq!(error.kind(), ErrorKind::OutOfRange, "{what}");
                // Or the error says that no record begins there now.
                assert!(again > 0 || error.to_string().contains("cut"), "{what}");
            }
            assert_eq!(
                Wal::open(dir.path().join("log")).unwrap().len().unwrap(),
                kept as u64 + again
            );
        }
    }
}

// Promise: wal-beside.
#[test]
fn a_reader_continues_after_a_dropped_prefix() {
    for layout in &LAYOUTS[1..] {
        for refreshes in [false, true] {
            let dir = TempDir::new().unwrap();
            let (writer, reader, lsns) = pair(&dir, *layout, 200);
            let mut late = reader.follow(None).unwrap();
            assert!(late.next(Duration::ZERO).unwrap().is_some());
            writer.truncate_before(lsns[150]).unwrap();
            if refreshes {
                assert_eq!(reader.refresh().unwrap(), writer.end().unwrap());
            }
            assert_eq!(reader.read(lsns[160]).unwrap().payload, 160u64.to_le_bytes());
            let from = reader.iter(lsns[170]..).unwrap();
            assert_eq!(from.map(Result::unwrap).count(), 30);
            assert_eq!(payloads(&reader), (150..200).collect::<Vec<_>>());
            let mut back = reader.cursor_back(..).unwrap();
            assert_eq!(back.next().unwrap().unwrap().lsn, lsns[199]);
            assert_eq!((reader.head().unwrap(), reader.len().unwrap()), (lsns[150], 50));
            let error = reader.read(lsns[3]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfRange, "{error}");
            assert!(error.to_string().contains("was dropped"), "{error}");
            writer.append(&200u64.to_le_bytes()).unwrap();
            assert_eq!(reader.refresh().unwrap(), writer.end().unwrap());
            assert_eq!(payloads(&reader), (150..201).collect::<Vec<_>>());
            let mut follow = reader.follow(Some(lsns[199])).unwrap();
            assert_eq!(follow.next(Duration::ZERO).unwrap().unwrap().lsn, lsns[199]);
            // A follower in the dropped prefix returns all records from memory, or an error.
            let mut count = 1;
            let ended = loop {
                match late.next(Duration::ZERO) {
                    Ok(Some(_)) => count += 1,
                    Ok(None) => break None,
                    Err(error) => break Some(error.kind()),
                }
            };
            match ended {
                None => assert_eq!(count, 201),
                Some(kind) => assert_eq!(kind, ErrorKind::OutOfRange),
            }
        }
    }
}

/// The parts of a log without `.deedbook` lacked the size that `segment_bytes` had named. Their readers used the size
/// of segment 0, too long or cut, and returned 156 records under LSNs that do not exist.
#[test]
fn parts_carry_the_segment_size_of_their_log() {
    const LAYOUT: Layout = Layout::Segmented { segment_bytes: 1000 };
    let whole = |segment: u64| {
        let dir = TempDir::new().unwrap();
        let (writer, reader, lsns) = pair(&dir, LAYOUT, 1000);
        if segment > 0 {
            writer.truncate_before(lsns[995]).unwrap();
        }
        drop((writer, reader));
        std::fs::remove_dir_all(dir.path().join("log/.deedbook")).unwrap();
        dir
    };
    for (segment, cut) in [(0, 1000), (0, 1100), (0, 900), (15, 936)] {
        let dir = whole(segment);
        let path = dir.path().join("log");
        let name = path.join(deedbook::wal::segment_name(segment));
        if segment == 0 {
            std::fs::OpenOptions::new().write(true).open(name).unwrap().set_len(cut).unwrap();
        }
        let named = Options::new().layout(LAYOUT);
        let wal = named.open(&path, Mode::Read).unwrap();
        let read = |mut cursor: deedbook::Cursor<deedbook::wal::WalFormat>| {
            let mut found = Vec::new();
            while let Some(record) = cursor.next().unwrap() {
                found.push((record.lsn, record.payload.to_vec()));
            }
            found
        };
        let expected = read(wal.cursor(.., OnCorrupt::Skip).unwrap());
        assert!(expected.len() >= if segment == 0 { 980 } else { 5 });
        for split_bytes in [500, 1 << 20] {
            let mut found = Vec::new();
            for split in wal.splits(split_bytes, ..).unwrap() {
                assert_eq!(split.segment_bytes, Some(1000));
                let of_part = Wal::read_split(&split, &Options::new(), OnCorrupt::Skip, true);
                found.extend(read(of_part.unwrap()));
            }
            assert!(found == expected, "{cut} bytes of segment {segment}: {} records", found.len());
        }
        if segment == 0 {
            // Nobody names the size: nine of ten segments have the right size.
            let guessed = Wal::open(&path).unwrap();
            let found = read(guessed.cursor(.., OnCorrupt::Skip).unwrap());
            assert!(
                found == expected,
                "{cut} bytes of segment 0, guessed: {} records",
                found.len()
            );
        }
    }
}
