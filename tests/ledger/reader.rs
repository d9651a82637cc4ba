//! Bodies of requests: lengths, replays, parts, and files that change under a reader.

use std::io::{ErrorKind, Seek, SeekFrom};

use deedbook::ledger::OnCorrupt;
use proptest::prelude::*;

use crate::prelude::*;

fn only(options: &Options, config: LedgerConfig) -> LedgerReader {
    let fetched = options.open(config).unwrap().fetch(None, None).unwrap().unwrap();
    fetched.data.unwrap().pop().unwrap()
}

fn file(memory: &Memory) -> Box<dyn deedbook::storage::File> {
    memory.open(&Path::new(DIR).join("0-events"), Access::Write).unwrap()
}

proptest! {
    #[test]
    fn reader_matches_a_cursor_over_its_bytes(
        count in 1u64..40,
        longest in 1u64..400,
        edges in (0usize..12, 0usize..12, 0usize..4),
        moves in prop::collection::vec((0u8..4, -900i64..900, 0usize..700), 1..40),
    ) {
        let (memory, options) = memory();
        let all = events(0..count, longest);
        put(&memory, 0, &file_of(&all));
        let (header, footer) = (&b"header, 12 b"[..edges.0], &b"footer, 12 b"[..edges.1]);
        let separator = &b"<,>"[..edges.2.min(3)];
        let config = LedgerConfig {
            header: { let header = header.to_vec(); Box::new(move || header.clone()) },
            footer: { let footer = footer.to_vec(); Box::new(move || footer.clone()) },
            separator: separator.to_vec(),
            ..LedgerConfig::lines(DIR, crate::support::ledger::spool::BASE)
        };
        let mut reader = only(&options, config);
        let bytes = body_of(header, &all, separator, footer);
        prop_assert_eq!(reader.content_length(), bytes.len() as u64);
        let mut model = std::io::Cursor::new(bytes);
        for (from, by, len) in moves {
            let to = match from {
                0 => SeekFrom::Start(by.unsigned_abs()),
                1 => SeekFrom::Current(by),
                2 => SeekFrom::End(by),
                _ => SeekFrom::Current(0),
            };
            match (reader.seek(to), model.seek(to)) {
                (Ok(at), Ok(wanted)) => prop_assert_eq!(at, wanted),
                (Err(_), Err(_)) => {}
                (got, wanted) => panic!("{to:?}: {got:?}, {wanted:?}"),
            }
            let (mut got, mut wanted) = (vec![0; len], vec![0; len]);
            let (n, m) = (reader.read(&mut got).unwrap(), model.read(&mut wanted).unwrap());
            prop_assert_eq!((n, &got[..n]), (m, &wanted[..m]));
        }
    }

    #[test]
    fn a_part_is_a_body_of_its_records(
        count in 1u64..60, from in 0u64..70, len in 0u64..70, damaged in any::<bool>(),
    ) {
        let (memory, options) = memory();
        let all = events(0..count, 90);
        let mut bytes = file_of(&all);
        let mut left = all.clone();
        if damaged && count > 2 {
            let at = file_of(&all[..1]).len();
            bytes[at + 9] ^= 1;
            left.remove(1);
        }
        put(&memory, 0, &bytes);
        let options = options.on_corrupt(OnCorrupt::Skip);
        let mut reader = only(&options, around(b"[", b"]", b","));
        prop_assert_eq!(payloads(&reader), left.clone());
        let mut beginning = [0; 7];
        reader.read_exact(&mut beginning).unwrap();
        let to = (from + len).min(left.len() as u64);
        match reader.part(from..from + len).unwrap() {
            None => prop_assert!(from >= to),
            Some(mut part) => {
                let wanted = &left[from as usize..to as usize];
                prop_assert_eq!(body(&mut part), body_of(b"[", wanted, b",", b"]"));
                prop_assert_eq!(part.index(), reader.index());
                let half = part.records() / 2;
                if let Some(first) = part.part(0..half).unwrap() {
                    prop_assert_eq!(payloads(&first), wanted[..half as usize].to_vec());
                }
            }
        }
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        prop_assert_eq!([&beginning[..], &rest].concat(), body_of(b"[", &left, b",", b"]"));
    }
}

#[test]
fn header_and_footer_run_once_per_sent_file() {
    let (memory, options) = memory();
    put(&memory, 0, b"");
    put(&memory, 1, &file_of(&events(0..2, 0)));
    put(&memory, 2, &file_of(&events(2..4, 0)));
    let calls = Arc::new(AtomicU64::new(0));
    let count = calls.clone();
    let mut lines = small(DIR, 1000);
    lines.header = Box::new(move || format!("{};", count.fetch_add(1, Ordering::SeqCst)).into());
    let ledger = options.open(lines).unwrap();
    let mut readers = ledger.fetch(None, None).unwrap().unwrap().data.unwrap();
    for (number, reader) in readers.iter_mut().enumerate() {
        assert!(body(reader).starts_with(format!("{number};").as_bytes()));
        reader.rewind().unwrap();
        assert!(body(reader).starts_with(format!("{number};").as_bytes()));
    }
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

/// The length was announced: a shorter body would leave the connection waiting, and a changed record
/// would be sent as if it were intact.
// Promise: ledger-changed-under.
#[test]
fn file_changed_under_its_reader_is_an_error() {
    let all = events(0..2000, 300);
    let bytes = file_of(&all);
    type Change = Box<dyn Fn(&Memory)>;
    let changes: [(&str, Change); 3] = [
        ("cut", Box::new(|memory| file(memory).set_len(200_000).unwrap())),
        ("emptied", Box::new(|memory| file(memory).set_len(0).unwrap())),
        ("flipped", {
            let byte = bytes[250_010] ^ 1;
            Box::new(move |memory| assert_eq!(file(memory).write_at(&[byte], 250_010).unwrap(), 1))
        }),
    ];
    for (name, change) in changes {
        let (memory, options) = memory();
        put(&memory, 0, &bytes);
        let mut reader = only(&options, around(b"[", b"]", b","));
        let mut sent = vec![0; 10_000];
        reader.read_exact(&mut sent).unwrap();
        change(&memory);
        let error = reader.read_to_end(&mut sent).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{name}: {error}");
        let again = reader.read(&mut [0; 100]).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::InvalidData, "{name}: {again}");
        assert!(body_of(b"[", &all, b",", b"]").starts_with(&sent), "{name}");
        let error = reader.payloads().find_map(Result::err).expect(name);
        assert_eq!(error.kind(), deedbook::ErrorKind::Corrupt, "{name}");
    }
}

#[test]
fn reader_outlives_its_store_and_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Options::default().open(small(dir.path(), 1 << 20)).unwrap();
    let all = events(0..3000, 200);
    ledger.append_many(&all).unwrap();
    let fetched = ledger.fetch(None, None).unwrap().unwrap();
    ledger.remove(&fetched.removable.unwrap()).unwrap();
    drop(ledger);
    drop(dir);
    let mut reader = fetched.data.unwrap().pop().unwrap();
    assert_eq!(body(&mut reader), all.join(&b"\n"[..]));
}

/// Clients ask for the length by a seek to the end and back.
#[test]
fn seeking_reads_nothing() {
    let sim = deedbook::storage::sim::Sim::new();
    let options = on(sim.clone());
    put(&sim, 0, &file_of(&events(0..500, 500)));
    let mut reader = only(&options, around(b"[", b"]", b","));
    let calls = sim.calls();
    for number in 0..100 {
        assert_eq!(reader.seek(SeekFrom::End(0)).unwrap(), reader.content_length());
        reader.seek(SeekFrom::Start(mix(number) % 1000)).unwrap();
        reader.seek(SeekFrom::End(-1)).unwrap();
    }
    let mut last = [0; 9];
    assert_eq!(reader.read(&mut last).unwrap(), 1);
    assert_eq!((last[0], sim.calls()), (b']', calls));
}
