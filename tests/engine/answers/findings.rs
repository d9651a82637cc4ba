//! Wrong answers about damaged or foreign logs, found from outside. Each test opens with its story.

use super::*;
use crate::support::common::hooked::Event as Call;

/// Without a mark: a header with a damaged magic or version opened with bounds (0, 2), event 1 was event 2, and a plain
/// loop raised only at its end. After a first number of 0, nothing proves the numbers; the reader made up 0, 1, 2.
#[test]
fn a_damaged_header_is_raised_and_keeps_numbers() {
    let events = plain(6, 30);
    let proved: Vec<_> = (101..=106).map(Some).collect();
    let magics = (0..8).map(|byte| (byte..byte + 1, proved.clone()));
    for (damaged, expected) in magics.chain([(8..16, vec![None; 6])]) {
        let mut bytes = Framing::Book.file_header(101);
        match damaged.len() {
            1 => bytes[damaged.start] ^= 0x10,
            _ => bytes[damaged.clone()].fill(0),
        }
        events.iter().for_each(|(tag, jam)| bytes.extend(Framing::Book.encode(*tag, jam)));
        let memory = Memory::new();
        memory.create_dir(Path::new(DIR)).unwrap();
        write_file(&memory, &Path::new(DIR).join("book.log"), &bytes);
        let at = At::memory(&memory, DIR);
        for (way, walk) in ways(&BOOK, &at) {
            let numbers: Vec<_> = walk.records.iter().map(|record| record.ordinal).collect();
            assert!(numbers == expected && walk.events() == events, "{damaged:?}, {way}: {walk:?}");
        }
        let log = BOOK.read(&at).unwrap();
        // Reads by number give the same, or an error.
        for number in (0..10).chain(95..110) {
            if let Ok(event) = log.read(number) {
                assert_eq!(Some(&event), events.get((number - 101) as usize), "deed {number}");
                assert!(expected[0].is_some(), "{damaged:?}: deed {number}");
            }
        }
        let walk = log.forward(None, None, false);
        assert!(walk.records.is_empty(), "{damaged:?}: {walk:?}");
        assert!(walk.error.unwrap().offset().unwrap() <= damaged.start.max(7) as u64);
        let report = BOOK.verify(&at, MANUAL).unwrap();
        assert_eq!((report.verdict, report.records), (Verdict::Corrupt, 6), "{damaged:?}");
        assert!(report.damages[0].offset <= 8, "{report:?}");
    }
}

/// Opening a copy of a small program as a write-ahead log emptied the file. A file passed for a torn end if it was
/// shorter than a header, or claimed a record longer than itself.
#[test]
fn a_foreign_file_is_refused_and_kept() {
    let program = [&b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0"[..], &[7; 3000]].concat();
    let record = [&[1, 2, 3, 4, 100, 0, 0, 0][..], &[5; 60]].concat();
    let mut foreign = vec![program, record, b"PK\x03\x04\x14\0\0\0\x08\0".to_vec()];
    foreign.push([&[0; 600][..], b"data beyond an empty first block"].concat());
    foreign.push(b"{\"n\":1}\n{\"n\":2}\n".to_vec());
    foreign.extend((1..9).map(|len| b"text abc"[..len].to_vec()));
    for format in LARGE {
        for bytes in &foreign {
            let (memory, at) = in_memory(format);
            memory.create_dir(Path::new(DIR)).unwrap();
            let file = format.first_file(&at.path);
            write_file(&memory, &file, bytes);
            // A writer that died in its first append leaves the same bytes, if the name says WAL.
            let claims =
                |bytes: &[u8]| u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
            let is_begun = format.name().starts_with("wal")
                && match bytes.len() {
                    8.. => (claims(bytes) as usize) > bytes.len() - 8 && claims(bytes) <= 64 << 20,
                    _ => format.segment_bytes().is_some(),
                };
            for mode in [Mode::Append, Mode::Create] {
                let what = format!("{}, {} bytes, {mode:?}", format.name(), bytes.len());
                let error = format.open(&at, mode, MANUAL).err().expect(&what);
                let refusal = match is_begun {
                    true => ErrorKind::Corrupt,
                    false => ErrorKind::NotALog,
                };
                let kinds = [refusal, ErrorKind::AlreadyExists];
                assert!(kinds.contains(&error.kind()), "{what}: {error:?}");
                assert_eq!(read_file(&memory, &file), *bytes, "{what}");
            }
            if is_begun {
                // You asked for a repair, and the repair saves the bytes it removes.
                let repaired = format.repair(&at, MANUAL).unwrap();
                let saved = &repaired.saved[0];
                assert_eq!(read_file(&memory, saved), *bytes, "{}: saved", format.name());
                continue;
            }
            assert!(format.repair(&at, MANUAL).is_err(), "{}", format.name());
            assert_eq!(read_file(&memory, &file), *bytes, "{}: repaired", format.name());
            let left = Files::of(&memory).bytes.len();
            assert_eq!(left, 1, "{}: left something beside it", format.name());
        }
    }
}

/// The disk was full, and a half-written batch was rolled back. Followers gave the deeds of its
/// first half, and then silently left out the deeds appended in their place.
#[test]
fn a_reader_never_gives_what_is_rolled_back() {
    for format in [&BOOK as &dyn Format, &SINGLE] {
        let storage = Hooked::default();
        storage.create_dir(Path::new(DIR)).unwrap();
        let path = format.path_in(Path::new(DIR));
        let at = At { storage: Arc::new(storage.clone()), path };
        let log = format.create(&at, &plain(3, 50));
        log.sync().unwrap();
        let reader: Arc<dyn Log> = Arc::from(format.read(&at).unwrap());
        let seen = Arc::new(Mutex::new(None));
        let (looks, sees) = (reader.clone(), seen.clone());
        storage.watch(move |event| match event {
            Call::Half => {
                *sees.lock().unwrap() = Some(looks.follow().records.len());
                true
            }
            Call::Write(len) => len > 4000 && sees.lock().unwrap().is_none(),
            Call::Allocate | Call::Read | Call::Sync => false,
        });
        log.append_batch(&plain(20, 900)).unwrap_err();
        storage.unwatch();
        assert_eq!(*seen.lock().unwrap(), Some(3), "{}: gave what was rolled back", format.name());
        let real = (1, b"what really came".to_vec());
        log.append_batch(std::slice::from_ref(&real)).unwrap();
        log.sync().unwrap();
        let followed = reader.follow();
        assert!(followed.error.is_none(), "{}: {:?}", format.name(), followed.error);
        assert_eq!(followed.records.len(), 4, "{}", format.name());
        assert_eq!(followed.records[3].bytes, real.1, "{}", format.name());
    }
}
