//! Round trips of arbitrary histories, and the same deeds whichever way they are read.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod common;

use std::path::Path;
use std::time::Duration;

use common::{
    Event, check, contents, crc32, drain, event_of, log, memory, read_all, snapshot, write_file,
};
use deedbook::Durability;
use deedbook::book::{Batch, Book, Deed, Mode, OnCorrupt, Options};
use deedbook::storage::{Memory, Storage};
use proptest::collection::vec;
use proptest::prelude::*;

const BOOK: &str = "/book";

/// `DEEDBOOK_CASES=100` tries a hundred times as many.
fn config(cases: u32) -> ProptestConfig {
    let times = std::env::var("DEEDBOOK_CASES").ok().and_then(|text| text.parse().ok());
    let cases = cases * times.unwrap_or(1);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

#[derive(Clone, Debug)]
enum Step {
    Append(Event),
    Batch(Vec<Event>),
    Commit(Event),
    Sync,
    Close,
    Drop,
}

fn event() -> impl Strategy<Value = Event> {
    let jam = prop_oneof![
        8 => vec(any::<u8>(), 0..40),
        2 => vec(any::<u8>(), 0..2000),
        1 => (0usize..70_000).prop_map(|len| vec![0; len]),
        1 => vec(any::<u8>(), 0..60).prop_map(|jam| common::deed(3, &jam)),
    ];
    (any::<u32>(), jam)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => event().prop_map(Step::Append),
        3 => vec(event(), 0..8).prop_map(Step::Batch),
        1 => event().prop_map(Step::Commit),
        2 => Just(Step::Sync),
        2 => Just(Step::Close),
        1 => Just(Step::Drop),
    ]
}

fn durability() -> impl Strategy<Value = Durability> {
    prop_oneof![
        Just(Durability::Always),
        Just(Durability::Manual),
        Just(Durability::None),
        (1u64..5000).prop_map(Durability::Bytes),
        Just(Durability::Interval(Duration::from_millis(1))),
    ]
}

/// Do the steps; what the log must hold then. Leaves it closed.
fn perform(path: &Path, options: &Options, steps: &[Step]) -> Vec<Event> {
    let (mut model, mut open): (Vec<Event>, Option<Book>) = (Vec::new(), None);
    let epoch = options.epoch.unwrap_or(0);
    for step in steps {
        let book = open.take().unwrap_or_else(|| options.open(path, Mode::Append).unwrap());
        let next = epoch + model.len() as u64 + 1;
        match step {
            Step::Append((mug, jam)) => assert_eq!(book.append(*mug, jam).unwrap(), next),
            Step::Commit((mug, jam)) => {
                assert_eq!(book.commit(*mug, jam).unwrap(), next);
                assert_eq!(book.durable_last().unwrap(), Some(next));
            }
            Step::Batch(events) => {
                let mut batch = Batch::new(1 << 20);
                events.iter().for_each(|(mug, jam)| batch.push(*mug, jam).unwrap());
                assert_eq!(book.append_batch(&batch, Some(next), Some(epoch)).unwrap(), next);
            }
            Step::Sync => book.sync().unwrap(),
            Step::Close | Step::Drop => {}
        }
        match step {
            Step::Append(event) | Step::Commit(event) => model.push(event.clone()),
            Step::Batch(events) => model.extend(events.iter().cloned()),
            _ => {}
        }
        assert_eq!(book.len().unwrap(), model.len() as u64);
        match step {
            Step::Close => book.close().unwrap(),
            // Not with a thread in the background, which may hold the lock a moment longer.
            Step::Drop if !matches!(options.durability, Durability::Interval(_)) => drop(book),
            _ => open = Some(book),
        }
    }
    if let Some(book) = open {
        book.close().unwrap();
    }
    model
}

fn forwards(book: &Book, start: u64, stop: Option<u64>) -> Vec<Deed> {
    drain(book.cursor(start, stop, OnCorrupt::Raise).unwrap()).unwrap()
}

fn backwards(book: &Book, start: u64, stop: Option<u64>) -> Vec<Deed> {
    let (mut cursor, mut deeds) = (book.cursor_back(start, stop).unwrap(), Vec::new());
    while let Some(deed) = cursor.next().unwrap() {
        deeds.push(Deed { event: deed.event, mug: deed.mug, jam: deed.jam.to_vec() });
    }
    deeds.reverse();
    deeds
}

fn numbered(epoch: u64, model: &[Event]) -> Vec<Deed> {
    let number = |(i, (mug, jam)): (usize, &Event)| Deed {
        event: Some(epoch + 1 + i as u64),
        mug: *mug,
        jam: jam.clone(),
    };
    model.iter().enumerate().map(number).collect()
}

/// Every way of reading gives the model, or the part asked for.
fn assert_reads(book: &Book, epoch: u64, model: &[Event], range: (u64, u64), split_bytes: u64) {
    let all = numbered(epoch, model);
    assert_eq!(
        book.bounds().unwrap().map(|bounds| (*bounds.start(), *bounds.end())),
        match all.len() {
            0 => None,
            len => Some((epoch + 1, epoch + len as u64)),
        }
    );
    assert_eq!(forwards(book, 0, None), all);
    assert_eq!(backwards(book, 0, None), all);
    let (start, stop) = (epoch + range.0, epoch + range.1);
    let part: Vec<_> =
        all.iter().filter(|deed| (start..stop).contains(&deed.event.unwrap())).cloned().collect();
    assert_eq!(forwards(book, start, Some(stop)), part);
    assert_eq!(backwards(book, start, Some(stop)), part);
    for deed in part.iter().step_by(7) {
        assert_eq!(&book.read(deed.event.unwrap()).unwrap(), deed);
    }
    for (from, to, expected) in [(0, None, &all), (start, Some(stop), &part)] {
        let mut given = Vec::new();
        let splits = book.splits(split_bytes, from, to).unwrap();
        for pair in splits.windows(2) {
            assert_eq!(pair[0].end, pair[1].offset);
            assert_eq!(
                pair[0].records.map(|deeds| deeds + pair[0].ordinal.unwrap()),
                pair[1].ordinal
            );
        }
        for split in &splits {
            let deeds = drain(
                deedbook::book::Book::read_split(
                    &split,
                    book.options(),
                    from,
                    to,
                    OnCorrupt::Raise,
                    true,
                )
                .unwrap(),
            );
            let deeds = deeds.unwrap();
            assert_eq!((Some(deeds.len() as u64), deeds[0].event), (split.records, split.ordinal));
            given.extend(deeds);
        }
        assert_eq!(&given, expected, "splits of {split_bytes} bytes");
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn any_history_is_read_back(
        steps in vec(step(), 1..30),
        durability in durability(),
        epoch in prop_oneof![Just(0), 0u64..1_000_000, Just(u64::MAX - 1000)],
        range in (0u64..60, 0u64..60),
    ) {
        let (storage, options) = memory();
        let options = Options { durability, epoch: Some(epoch), ..options };
        let model = perform(Path::new(BOOK), &options, &steps);
        let files = snapshot(&storage, Path::new(BOOK));
        let first = if model.is_empty() { 0 } else { epoch + 1 };
        prop_assert!(files[Path::new("/book/book.log")] == log(first, &model));
        let book = options.open(BOOK, Mode::Read).unwrap();
        assert_reads(&book, epoch, &model, range, 1 << 14);
        prop_assert!(check(BOOK, &options).ok());
    }

    #[test]
    fn any_long_log_is_read_alike_with_and_without_its_sidecar(
        count in 50u64..900,
        longest in 100u64..1500,
        syncs in vec(0u64..900, 0..4),
        range in (0u64..900, 0u64..900),
        split_bytes in prop_oneof![Just(1), 1u64..300_000, Just(u64::MAX)],
        lost in vec(prop_oneof![Just("mark"), Just("index"), Just("lock")], 0..3),
        epoch in 0u64..5,
    ) {
        let (storage, options) = memory();
        let options = Options { epoch: Some(epoch), ..options };
        let model: Vec<_> = (0..count).map(|i| event_of(i, longest)).collect();
        let steps: Vec<_> = model.iter().enumerate().flat_map(|(i, event)| {
            let sync = syncs.contains(&(i as u64)).then_some(Step::Close);
            std::iter::once(Step::Append(event.clone())).chain(sync)
        }).collect();
        prop_assert_eq!(&perform(Path::new(BOOK), &options, &steps), &model);
        for name in lost {
            let _ = storage.remove(&Path::new("/book/.deedbook").join(name));
        }
        for mode in [Mode::Read, Mode::Append, Mode::Read] {
            let book = options.open(BOOK, mode).unwrap();
            assert_reads(&book, epoch, &model, range, split_bytes);
            book.close().unwrap();
        }
    }

    /// Nothing panics, and no reader gives a deed that was never written.
    #[test]
    fn any_damage_is_survived(
        count in 1u64..40,
        edits in vec((any::<prop::sample::Index>(), any::<u8>(), 1usize..600), 1..5),
        keep_sidecar in any::<bool>(),
    ) {
        let (storage, options) = memory();
        let model: Vec<_> = (0..count).map(|i| event_of(i, 300)).collect();
        common::make(Path::new(BOOK), &options, &model);
        let path = Path::new("/book/book.log");
        let mut bytes = common::read_file(&storage, path);
        for (at, value, len) in edits {
            let at = 16 + at.index(bytes.len() - 16);
            let end = bytes.len().min(at + len);
            bytes[at..end].fill(value);
        }
        write_file(&storage, path, &bytes);
        if !keep_sidecar {
            storage.remove(Path::new("/book/.deedbook/mark")).unwrap();
        }
        survives(&options, |given| given.iter().all(|event| model.contains(event)));
    }

    #[test]
    fn any_bytes_are_survived(first in 0u64..3, bytes in vec(prop_oneof![Just(0), any::<u8>()], 0..300)) {
        let (storage, options) = memory();
        storage.create_dir(Path::new(BOOK)).unwrap();
        let bytes = [common::header(first), bytes].concat();
        write_file(&storage, Path::new("/book/book.log"), &bytes);
        survives(&options, |_| true);
    }

    /// A mark with a good checksum may still say anything.
    #[test]
    fn any_mark_is_survived(
        count in 0u64..5,
        numbers in vec(prop_oneof![0u64..200, Just(16), Just(u64::MAX), any::<u64>()], 9),
        sums in prop_oneof![Just(true), Just(false)],
        right in vec(any::<bool>(), 7),
    ) {
        let (storage, options) = memory();
        let model: Vec<_> = (0..count).map(|i| event_of(i, 60)).collect();
        common::make(Path::new(BOOK), &options, &model);
        let path = Path::new("/book/.deedbook/mark");
        let mut mark = common::read_file(&storage, path);
        let slots = [0, 512].map(|at| u64::from_le_bytes(mark[at + 8..at + 16].try_into().unwrap()));
        let at = if slots[0] > slots[1] { 0 } else { 512 };
        for (i, field) in [16, 24, 32, 40, 56, 72, 80].into_iter().enumerate() {
            if !right[i] {
                mark[at + field..at + field + 8].copy_from_slice(&numbers[i].to_le_bytes());
            }
        }
        if !sums {
            mark[at + 48..at + 56].copy_from_slice(&numbers[8].to_le_bytes());
        }
        let sum = crc32(&mark[at..at + 124]);
        mark[at + 124..at + 128].copy_from_slice(&sum.to_le_bytes());
        write_file(&storage, path, &mark);
        survives(&options, |given| given.iter().all(|event| model.contains(event)));
        prop_assert!(storage.is_dir(Path::new(BOOK)));
    }
}

/// Read in every way, check, salvage, open and append; errors are fine.
fn survives(options: &Options, holds: impl Fn(&[Event]) -> bool) {
    if let Ok(book) = options.open(BOOK, Mode::Read) {
        assert!(holds(&contents(&read_all(&book).0)));
        for on_corrupt in [OnCorrupt::Skip, OnCorrupt::Raise] {
            let mut cursor = book.cursor(0, None, on_corrupt).unwrap();
            while let Ok(Some(deed)) = cursor.next() {
                assert!(holds(&[(deed.mug, deed.jam.to_vec())]));
            }
            for split in book.splits(100, 0, None).unwrap_or_default() {
                if let Ok(mut cursor) =
                    deedbook::book::Book::read_split(&split, options, 0, None, on_corrupt, true)
                {
                    while let Ok(Some(deed)) = cursor.next() {
                        assert!(holds(&[(deed.mug, deed.jam.to_vec())]));
                    }
                }
            }
        }
        if let Ok(mut back) = book.cursor_back(0, None) {
            while let Ok(Some(_)) = back.next() {}
        }
        for event in [0, 1, 2, 100, u64::MAX] {
            let _ = book.read(event);
        }
        let _ = (book.refresh(), book.durable_last(), book.last());
    }
    let _ = deedbook::book::verify(BOOK, options, |_, _| Ok(()));
    let _ = deedbook::book::salvage(BOOK, "/rescued", options, |_, _| Ok(()));
    if let Ok(book) = options.open(BOOK, Mode::Append) {
        let event = book.append(1, b"new");
        book.close().unwrap();
        if let Ok(event) = event {
            assert_eq!(options.open(BOOK, Mode::Append).unwrap().last().unwrap(), event);
        }
    }
    let _ = deedbook::book::repair(
        BOOK,
        options,
        deedbook::Repair { force: true, accept_loss: true, dry_run: false },
    );
}

proptest! {
    #![proptest_config(config(25))]

    #[test]
    fn any_history_on_a_real_disk_is_read_back(
        steps in vec(step(), 1..15),
        durability in durability(),
        range in (0u64..60, 0u64..60),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { durability, ..Options::default() };
        let model = perform(dir.path(), &options, &steps);
        assert_reads(&options.open(dir.path(), Mode::Read).unwrap(), 0, &model, range, 1 << 14);
        assert_reads(&options.open(dir.path(), Mode::Append).unwrap(), 0, &model, range, 1 << 14);
        prop_assert!(check(dir.path(), &options).ok());
    }
}

#[test]
fn clones_of_a_file_system_in_memory_share_its_files() {
    let memory = Memory::new();
    write_file(&memory.clone(), Path::new("/x"), b"bytes");
    assert_eq!(common::read_file(&memory, Path::new("/x")), b"bytes");
}
