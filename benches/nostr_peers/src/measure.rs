//! The order of the measurements in a run.
//!
//! 1. Each store imports the events and closes. After our import, and after each compaction, the run writes a plain
//!    file of as many bytes.
//! 2. Rounds, in which the stores take turns: open, scan, find by id. Only for our store: walks to Arrow and through
//!    maps, and compaction, each time of a copy. The run also opens a copy of our files as a kill would leave them, and
//!    imports the real events with their signatures, each time into a new store.
//! 3. Each store imports as many events again.
//! 4. Each store imports articles of 12 KB and follow lists of 160 KB.
//! 5. Every store answers every question, and the run compares the answers with ours. Then rounds, in which the stores
//!    take turns with each question. At last our store alone again, after a compaction.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use deedbook::nostr::{Batches, Check, Event, EventStore, Id, ImportOptions, Include};
use deedbook::{Mode, OnCorrupt, nostr};

use crate::figures::Figures;
use crate::floor::{PLAIN_FILE, plain_file, written};
use crate::nostr_events::{Numbers, Question, Synthetic, long_events, long_questions, questions};
use crate::stores::{Done, Found, KINDS, Kind, Lines, OURS, Ours, Store, timed};

pub const IMPORT: &str = "import JSON lines, ids checked";
pub const IMPORT_MORE: &str = "import as many again";
pub const CLOSE: &str = "close after the import";
pub const DISK: &str = "on disk, closed";
pub const OPEN: &str = "open after a clean close, and find an event";
pub const SCAN: &str = "scan to events";
pub const SCAN_BACK: &str = "scan to events, the last first";
pub const IMPORT_LONG: &str = "import articles and follow lists";
pub const COUNT: &str = "count the events of a kind and a day";
pub const FIND: &str = "find by id, warm";
pub const COMPACT: &str = "compact";
pub const CHECKS: [(&str, Check); 3] = [
    ("import the real events, nothing checked", Check::None),
    ("import the real events, ids checked", Check::Id),
    ("import the real events, ids and signatures checked", Check::Signature),
];
pub const PAGES: [(&str, &str, u32); 3] = [
    ("import into pages of 1024 bytes", "on disk, pages of 1024 bytes", 1024),
    ("import into pages of 4096 bytes", "on disk, pages of 4096 bytes", 4096),
    ("import into pages of 16384 bytes", "on disk, pages of 16384 bytes", 16_384),
];
pub const KILLED: &str = "open after kill -9";
pub const ARROW: &str = "scan to Arrow";
pub const MAPPED: &str = "scan to events, through maps";
pub const ARROW_MAPPED: &str = "scan to Arrow, through maps";

pub const ROUNDS: usize = 3;
const FINDS: usize = 20_000;
const QUESTIONS: usize = 300;
const COUNTS: usize = 20;
/// A store that takes longer for all filters of one question gets fewer of them, but at least `QUESTIONS_MIN`.
const QUESTION_TIME: Duration = Duration::from_secs(5);
const QUESTIONS_MIN: usize = 5;
/// Fewer answers than these have no percentile 99.
const ANSWERS_FOR_P99: usize = 100;

/// The results of a run.
#[derive(Default)]
pub struct Measured {
    pub figures: Figures,
    /// Events in each store that count, at the first size.
    pub stored: BTreeMap<&'static str, usize>,
    /// Kinds of events that our store counts and another store lacks.
    pub lacking: BTreeMap<&'static str, BTreeSet<u16>>,
    /// Events of the first size by kind, and by day since 1970.
    pub kinds: BTreeMap<u16, u64>,
    pub days: BTreeMap<u32, u64>,
    /// By question: the mean number of events in an answer.
    pub found: Vec<(&'static str, f64)>,
    /// Entries of the write-ahead log since the last checkpoint, in the store opened after a kill.
    pub replayed: u64,
    /// Bytes that our store wrote to the disk during the import.
    pub import_bytes: u64,
    /// Questions that a store answered fewer times: question, store, times.
    pub fewer: Vec<(&'static str, &'static str, usize)>,
}

/// The row of a question.
pub fn row(question: &str, percentile: u32) -> String {
    format!("{question}, p{percentile}")
}

pub fn run(real: &[Event], events: usize, place: &Path) -> Measured {
    let mut measured = Measured::default();
    let mut synthetic = Synthetic::new(real, 2 * events);
    let dirs = KINDS.map(|kind| place.join(kind.name));
    let sqlite = dirs[1].join(crate::sqlite::NAME);
    for row in [IMPORT, IMPORT_MORE] {
        eprintln!("{row}: {events} events");
        let path = place.join("events.jsonl");
        let ids = synthetic.write(events, &path);
        let lines = Lines { path: &path, ids: &ids, sqlite: &sqlite };
        for (kind, dir) in KINDS.iter().zip(&dirs) {
            import(kind, dir, row, &lines, &mut measured);
        }
        if row == IMPORT {
            reading(&dirs, &mut measured);
            walking(&dirs[0], &mut measured.figures);
            compacting(&dirs[0], &mut measured.figures);
            checking(real, place, &mut measured.figures);
            pages(&lines, place, &mut measured.figures);
        }
    }
    let long = long_events(QUESTIONS);
    let path = place.join("long.jsonl");
    write_lines(&path, &long);
    let ids: Vec<Id> = long.iter().map(|event| event.id).collect();
    let lines = Lines { path: &path, ids: &ids, sqlite: &sqlite };
    for (kind, dir) in KINDS.iter().zip(&dirs) {
        import(kind, dir, IMPORT_LONG, &lines, &mut measured);
    }
    let mut all = questions(real, 2 * events, QUESTIONS);
    all.extend(long_questions(&long));
    asking(&dirs, all, &mut measured);
    measured
}

fn write_lines(path: &Path, events: &[Event]) {
    let mut lines = Vec::new();
    for event in events {
        event.write_json(&mut lines);
        lines.push(b'\n');
    }
    std::fs::write(path, lines).unwrap();
}

fn import(kind: &Kind, dir: &Path, row: &str, lines: &Lines<'_>, measured: &mut Measured) {
    settle();
    let mut store = (kind.open)(dir);
    let before = written();
    let done = store.import(lines);
    let bytes = written() - before;
    measured.figures.rate(row, kind.name, done);
    if row == IMPORT && kind.name == OURS {
        measured.import_bytes = bytes;
        floor(dir, row, bytes, done.count, &mut measured.figures);
        killed(dir, measured);
    }
    let figures = &mut measured.figures;
    let begun = Instant::now();
    drop(store);
    if row == IMPORT {
        figures.milliseconds(CLOSE, kind.name, begun.elapsed());
        figures.megabytes(DISK, kind.name, size(dir));
    }
}

/// The rate at which the disk alone writes the bytes of a store.
fn floor(dir: &Path, row: &str, bytes: u64, count: usize, figures: &mut Figures) {
    if bytes > 0 {
        settle();
        figures.rate(row, PLAIN_FILE, plain_file(&dir.with_extension("plain"), bytes, count));
    }
}

/// Open a copy of the files as a kill would leave them now.
fn killed(dir: &Path, measured: &mut Measured) {
    let copy = dir.with_extension("killed");
    copy_all(dir, &copy);
    settle();
    let begun = Instant::now();
    let store = nostr::Options::default().open(&copy, Mode::Append).unwrap();
    measured.figures.milliseconds(KILLED, OURS, begun.elapsed());
    measured.replayed = store.opening().replayed;
    drop(store);
    std::fs::remove_dir_all(&copy).unwrap();
}

/// Walk all events of our store, as events and to Arrow, by reads and through maps.
fn walking(dir: &Path, figures: &mut Figures) {
    let walk = |store: &EventStore| store.iter(Include::Live, OnCorrupt::Raise).unwrap();
    let arrow = |store: &EventStore| {
        let batches = Batches::new(walk(store), Batches::DEFAULT, 65_536, 2 << 20).unwrap();
        batches.map(|batch| batch.unwrap().num_rows()).sum()
    };
    let mut walked = |row, (mut done, count): (Done, usize)| {
        done.count = count;
        figures.rate(row, OURS, done);
    };
    for _ in 0..ROUNDS {
        let store = nostr::Options::default().open(dir, Mode::Read).unwrap();
        walked(ARROW, timed(0, || arrow(&store)));
        let mapped = nostr::Options::default().mapped_reads(true);
        let store = mapped.open(dir, Mode::Read).unwrap();
        walked(MAPPED, timed(0, || walk(&store).map(Result::unwrap).count()));
        walked(ARROW_MAPPED, timed(0, || arrow(&store)));
    }
}

/// Import the real events, because only their signatures are valid.
fn checking(real: &[Event], place: &Path, figures: &mut Figures) {
    let mut lines = Vec::new();
    for event in real {
        event.write_json(&mut lines);
        lines.push(b'\n');
    }
    for (row, check) in (0..ROUNDS).flat_map(|_| CHECKS) {
        let dir = place.join("checked");
        let store = nostr::Options::default().open(&dir, Mode::Create).unwrap();
        let options = ImportOptions::default().check(check);
        let (done, report) = timed(real.len(), || {
            let report = store.import(&mut &lines[..], &options, None, &mut |_| Ok(())).unwrap();
            store.sync().unwrap();
            report
        });
        assert_eq!((report.lines, report.bad), (real.len() as u64, 0), "{report:?}");
        figures.rate(row, OURS, done);
        drop(store);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

/// Import into pages of other sizes.
fn pages(lines: &Lines<'_>, place: &Path, figures: &mut Figures) {
    for (row, disk, page_bytes) in PAGES {
        let dir = place.join("pages");
        settle();
        let options = nostr::Options::default().page_bytes(page_bytes);
        let store = options.open(&dir, Mode::Create).unwrap();
        figures.rate(row, OURS, Ours(store).import(lines));
        figures.megabytes(disk, OURS, size(&dir));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

fn reading(dirs: &[PathBuf], measured: &mut Measured) {
    let live = look(&dirs[0], measured);
    let mut numbers = Numbers(2);
    let mut wanted: Vec<(Id, u16)> = (0..FINDS).map(|_| live[numbers.below(live.len())]).collect();
    for (kind, dir) in KINDS.iter().zip(dirs) {
        let store = (kind.open)(dir);
        let lacking = wanted.extract_if(.., |(id, _)| !store.find(id));
        let kinds: BTreeSet<u16> = lacking.map(|(_, kind)| kind).collect();
        if !kinds.is_empty() {
            measured.lacking.insert(kind.name, kinds);
        }
    }
    eprintln!("not found, by kind: {:?}", measured.lacking);
    for round in 0..ROUNDS {
        eprintln!("reading, round {} of {ROUNDS}", round + 1);
        for i in 0..KINDS.len() {
            let turn = (i + round) % KINDS.len();
            let (kind, figures) = (&KINDS[turn], &mut measured.figures);
            let begun = Instant::now();
            let store = (kind.open)(&dirs[turn]);
            assert!(store.find(&wanted[0].0));
            figures.milliseconds(OPEN, kind.name, begun.elapsed());
            let (mut scanned, count) = timed(0, || store.scan());
            scanned.count = count;
            figures.rate(SCAN, kind.name, scanned);
            measured.stored.insert(kind.name, count);
            if let (mut back, Some(count)) = timed(0, || store.scan_back()) {
                back.count = count;
                figures.rate(SCAN_BACK, kind.name, back);
            }
            let find = || assert!(wanted.iter().all(|(id, _)| store.find(id)), "{}", kind.name);
            find();
            figures.rate(FIND, kind.name, timed(wanted.len(), find).0);
        }
    }
    // rust-nostr's databases have their own rules for a few kinds.
    assert_eq!(measured.stored[OURS], measured.stored[KINDS[1].name], "events of SQLite");
}

/// Count the events, and return the ids and kinds of the events that count.
fn look(dir: &Path, measured: &mut Measured) -> Vec<(Id, u16)> {
    let store = EventStore::append_to(dir).unwrap();
    let census = store.census().unwrap();
    (measured.kinds, measured.days) = (census.kinds, census.days);
    let events = store.iter(Include::Live, OnCorrupt::Raise).unwrap();
    events.map(|found| found.unwrap().event).map(|event| (event.id, event.kind)).collect()
}

fn compacting(dir: &Path, figures: &mut Figures) {
    for _ in 0..ROUNDS {
        let copy = dir.with_extension("copy");
        copy_all(dir, &copy);
        settle();
        let store = nostr::Options::default().open(&copy, Mode::Append).unwrap();
        let before = written();
        let (mut done, report) = timed(0, || store.compact(0.0, false).unwrap());
        let bytes = written() - before;
        done.count = report.kept as usize;
        figures.rate(COMPACT, OURS, done);
        floor(dir, COMPACT, bytes, done.count, figures);
        store.close().unwrap();
        drop(store);
        std::fs::remove_dir_all(&copy).unwrap();
    }
}

fn asking(dirs: &[PathBuf], questions: Vec<Question>, measured: &mut Measured) {
    let stores: Vec<Box<dyn Store>> =
        KINDS.iter().zip(dirs).map(|(kind, dir)| (kind.open)(dir)).collect();
    let mut asked = Vec::new();
    for question in &questions {
        eprintln!("answers are compared: {}", question.name);
        asked.push(compare(&stores, question, measured));
    }
    for round in 0..ROUNDS {
        eprintln!("queries, round {} of {ROUNDS}", round + 1);
        for (Question { name, filters }, counts) in questions.iter().zip(&asked) {
            for i in 0..KINDS.len() {
                let turn = (i + round) % KINDS.len();
                let filters = &filters[..counts[turn]];
                let mut took: Vec<Duration> =
                    filters.iter().map(|filter| stores[turn].ask(filter).0).collect();
                took.sort_unstable();
                let all: &[u32] = if took.len() < ANSWERS_FOR_P99 { &[50] } else { &[50, 99] };
                for &percentile in all {
                    let at = (took.len() - 1) * percentile as usize / 100;
                    let row = row(name, percentile);
                    measured.figures.microseconds(&row, KINDS[turn].name, took[at]);
                }
            }
        }
        counting(&stores, &questions, &mut measured.figures);
    }
    after_a_compaction(&*stores[0], &questions, &mut measured.figures);
}

/// Count the events of a kind and a day, without a limit.
fn counting(stores: &[Box<dyn Store>], questions: &[Question], figures: &mut Figures) {
    let day = questions.iter().find(|question| question.name == "a kind within a day").unwrap();
    for (store, kind) in stores.iter().zip(&KINDS) {
        let mut took: Vec<Duration> = Vec::new();
        for filter in &day.filters[..COUNTS] {
            let filter = deedbook::nostr::Filter { limit: None, ..filter.clone() };
            let begun = Instant::now();
            store.count(&filter);
            took.push(begun.elapsed());
        }
        took.sort_unstable();
        figures.microseconds(&row(COUNT, 50), kind.name, took[COUNTS / 2]);
    }
}

/// Ask our store once more after a compaction.
fn after_a_compaction(store: &dyn Store, questions: &[Question], figures: &mut Figures) {
    assert!(store.compact());
    for _ in 0..ROUNDS {
        for Question { name, filters } in questions {
            let mut took: Vec<Duration> =
                filters.iter().map(|filter| store.ask(filter).0).collect();
            took.sort_unstable();
            let row = format!("{}, after a compaction", row(name, 50));
            figures.microseconds(&row, OURS, took[(took.len() - 1) / 2]);
        }
    }
}

/// Compare the answers of each store with ours; returns how many answers each store gave in time.
fn compare(
    stores: &[Box<dyn Store>],
    question: &Question,
    measured: &mut Measured,
) -> [usize; KINDS.len()] {
    let Question { name, filters } = question;
    let answers: Vec<Vec<Found>> = filters.iter().map(|filter| stores[0].ask(filter).1).collect();
    let found: usize = answers.iter().map(Vec::len).sum();
    measured.found.push((name, found as f64 / filters.len() as f64));
    let mut counts = [filters.len(); KINDS.len()];
    for (i, kind) in KINDS.iter().enumerate().skip(1) {
        let begun = Instant::now();
        for (number, (filter, ours)) in filters.iter().zip(&answers).enumerate() {
            if number >= QUESTIONS_MIN && begun.elapsed() > QUESTION_TIME {
                counts[i] = number;
                measured.fewer.push((name, kind.name, number));
                break;
            }
            let theirs = stores[i].ask(filter).1;
            let full = filter.limit == Some(ours.len() as u64);
            // A store that lacks events of some kinds has others in their place.
            let lacks = filter.kinds.is_none() && measured.lacking.contains_key(kind.name);
            assert!(
                same(ours, &theirs, kind.by_id || !full) || lacks && alike(ours, &theirs),
                "{name}: {} answers {filter:?} otherwise\nours {ours:?}\ntheirs {theirs:?}",
                kind.name,
            );
        }
    }
    counts
}

/// Whether two answers have the same events. Unless `exactly`, the events of the last second may differ, but not their
/// number.
fn same(ours: &[Found], theirs: &[Found], exactly: bool) -> bool {
    let last = ours.iter().map(|found| found.at).min();
    let set = |answer: &[Found]| {
        let counts = |found: &&Found| exactly || Some(found.at) != last;
        answer.iter().filter(counts).map(|found| found.id).collect::<BTreeSet<_>>()
    };
    let end = theirs.iter().map(|found| found.at).min();
    ours.len() == theirs.len() && last == end && set(ours) == set(theirs)
}

/// Whether nine of ten events are in both answers.
fn alike(ours: &[Found], theirs: &[Found]) -> bool {
    let ids: BTreeSet<_> = ours.iter().map(|found| found.id).collect();
    let shared = theirs.iter().filter(|found| ids.contains(&found.id)).count();
    10 * shared >= 9 * ours.len().max(theirs.len())
}

/// Write the unwritten pages of earlier work now, so that the next measurement does not wait for them.
fn settle() {
    // SAFETY: a system call without arguments.
    unsafe { libc::sync() };
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let copy = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy_all(&path, &copy),
            false => drop(std::fs::copy(&path, &copy).unwrap()),
        }
    }
}

/// Disk space of the files below a directory.
fn size(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| match path.is_dir() {
            true => size(&path),
            false => std::os::unix::fs::MetadataExt::blocks(&path.metadata().unwrap()) * 512,
        })
        .sum()
}
