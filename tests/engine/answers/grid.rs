//! Two and three damages at once, in header, middle and tail: every reader gives one answer.
//!
//! The oracle judges the records alone, and a damaged header hid records from it. Here the readers
//! are compared with each other, and with the intact records.

use super::*;

pub type Change = fn(&mut Vec<u8>);
type Place = (u64, Option<u64>);

pub const TAILS: [(&str, Change); 4] = [
    ("nothing", |_| {}),
    ("reserved zeros", |space| space.resize(space.len() + 64, 0)),
    ("a torn end", |space| space.truncate(space.len() - 10)),
    ("junk", |space| space.extend([7; 13])),
];

/// Forwards, in batches, in parts and in Arrow: the same records. A check and a salvage count them.
fn one_answer(format: &dyn Format, at: &At, what: &str) -> Vec<u64> {
    let ways = ways(format, at);
    let places = |i: usize| -> Vec<_> {
        let (way, walk) = &ways[i];
        assert!(walk.error.is_none(), "{what}, {way}: {:?}", walk.error);
        walk.records.iter().map(|record| (record.offset, record.ordinal)).collect()
    };
    let first = places(0);
    for i in 1..ways.len() {
        let got = places(i);
        let offsets = |places: &[Place]| -> Vec<_> { places.iter().map(|p| p.0).collect() };
        assert_eq!(offsets(&got), offsets(&first), "{what}: {} and {}", ways[i].0, ways[0].0);
        // A part may know fewer numbers, but no other ones.
        let differ = |(a, b): (&Place, &Place)| a.1.zip(b.1).is_some_and(|(a, b)| a != b);
        assert!(!got.iter().zip(&first).any(differ), "{what}: {got:?}, {first:?}");
    }
    let checked = format.verify(at, MANUAL).unwrap();
    assert_eq!(checked.records, first.len() as u64, "{what}: {checked:?}");
    let to = format.path_in(Path::new("/copy"));
    at.storage.create_dir(to.parent().unwrap()).unwrap();
    let saved = format.salvage(at, &to, MANUAL).unwrap();
    assert_eq!(saved.records, checked.records, "{what}: {saved:?}");
    first.into_iter().map(|(offset, _)| offset).collect()
}

/// With a damaged header, deed and tail, skipping, batches and Spark gave the first of seven intact deeds, and named
/// only the header. Checks and salvages had all seven.
#[test]
fn readers_agree_about_damage_in_header_and_tail() {
    for format in FORMATS {
        let is_book = format.framing() == Framing::Book;
        // Magic, version, and the number of the first deed.
        let headers: &[Option<usize>] =
            if is_book { &[None, Some(0), Some(4), Some(9)] } else { &[None] };
        for beside in besides(8) {
            let specimen = Specimen::new(format, &events(8, 30), beside);
            for (&header, middle, (tail, change)) in headers.iter().flat_map(|header| {
                let middles = [&[][..], &[1], &[0, 4], &[2, 3]];
                middles.into_iter().flat_map(move |m| TAILS.iter().map(move |t| (header, m, t)))
            }) {
                let what = format!("{beside:?}: header {header:?}, deeds {middle:?}, then {tail}");
                attempt(format.name(), || {
                    let mut space = specimen.space.clone();
                    let framing = format.framing();
                    header.into_iter().for_each(|at| space[at] ^= 1);
                    for &i in middle {
                        space[specimen.edges[i] + framing.head()] ^= 1;
                    }
                    change(&mut space);
                    // Every reader refuses a log with its header and first deed damaged.
                    if header.is_some_and(|at| at < 8) && middle.first() == Some(&0) {
                        return;
                    }
                    let memory = specimen.broken(&space).restore();
                    let at = At::memory(&memory, specimen.path());
                    let got = one_answer(format, &at, &what);
                    // Readers leave out no intact record below the mark.
                    let synced = match beside {
                        Beside::Open(synced) => synced,
                        Beside::Closed(_) | Beside::Nothing => 8,
                    };
                    let cut = usize::from(*tail == "a torn end");
                    for i in (0..synced.min(8 - cut)).filter(|i| !middle.contains(i)) {
                        assert!(got.contains(&(specimen.edges[i] as u64)), "{what}: {got:?}");
                    }
                });
            }
        }
    }
    all_passed();
}

fn padded(first: u64, deeds: u64) -> Vec<u8> {
    let mut log = Framing::Book.file_header(first);
    for i in 0..deeds {
        let payload = vec![i as u8; 20];
        let packed = Framing::Book.encode(7, &payload);
        let (head, rest) = packed.split_at(12);
        let (payload, end) = rest.split_at(rest.len() - 12);
        log.extend([head, &[0; 4], payload, &end[..4], &[0; 4], &end[4..]].concat());
    }
    log
}

/// A damaged first deed made a Book in the layout `padded` unreadable, also to a salvage: only the
/// first deed showed the layout. A Book in `packed` gave the rest.
#[test]
fn a_padded_log_survives_a_damaged_first_deed() {
    let deed = 52;
    for (what, at) in [("length", 16), ("mug", 24), ("jam", 32), ("trailer", 16 + deed - 8)] {
        for second in [None, Some(16 + 3 * deed + 17)] {
            let mut log = padded(1, 8);
            assert_eq!(log.len(), 16 + 8 * deed);
            [Some(at), second].into_iter().flatten().for_each(|at| log[at] ^= 1);
            let memory = Memory::new();
            memory.create_dir(Path::new(DIR)).unwrap();
            let at = At::memory(&memory, DIR);
            write_file(&memory, &BOOK.first_file(&at.path), &log);
            let got = one_answer(&BOOK, &at, what);
            assert_eq!(got.len(), 7 - second.iter().len(), "{what}: {got:?}");
        }
    }
}

/// The header of a Book in `0iN` had rotted. Opening for writing refused with both numbers, but
/// readers and a salvage numbered the deeds by the header.
#[test]
fn the_directory_name_overrules_a_rotten_header() {
    for (name, epoch) in [("/pier/0i0", 0), ("/pier/0i300", 300)] {
        for deeds in [8, 3_000] {
            let memory = Memory::new();
            Path::new(name).ancestors().collect::<Vec<_>>().iter().rev().for_each(|dir| {
                memory.create_dir(dir).unwrap();
            });
            let at = At::memory(&memory, name);
            let mut log = Framing::Book.file_header(epoch + 1);
            (0..deeds).for_each(|i| log.extend(Framing::Book.encode(7, &event_of(i, 40).1)));
            log[9] ^= 2;
            write_file(&memory, &BOOK.first_file(&at.path), &log);
            for (way, walk) in ways(&BOOK, &at) {
                let got: Vec<_> = walk.records.iter().map(|record| record.ordinal).collect();
                let expected: Vec<_> = (1..=deeds).map(|i| Some(epoch + i)).collect();
                assert!(got == expected, "{name}, {way}: {:?}..", got.first());
            }
            let copy = BOOK.path_in(Path::new("/copy"));
            BOOK.salvage(&at, &copy, MANUAL).unwrap();
            let saved = BOOK.read(&at.other(copy)).unwrap().forward(None, None, false).records;
            assert_eq!(saved[0].ordinal, Some(epoch + 1));
            assert_eq!(read_file(&memory, &BOOK.first_file(&at.path)), log);
        }
    }
}
