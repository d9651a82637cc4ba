//! The index: searches, summaries for the mark, and trust in the entries of a file.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::storage::Memory;

fn entry(i: u64) -> Entry {
    Entry { ordinal: 1 + 10 * (i + 1), offset: 16 + 1000 * (i + 1), sum: i as u32 }
}

fn written(storage: &Memory, entries: u64) -> Index {
    let mut index = Index::empty(Path::new("/s"));
    index.start(77);
    for i in 0..entries {
        index.push(entry(i));
    }
    index.flush(storage);
    index
}

fn load(storage: &Memory, seed: u32, (entries, chain): (u64, u32)) -> Index {
    Index::load(storage, Path::new("/s"), seed, entries, chain, Access::Write)
}

#[test]
fn entries_come_back_and_are_found() {
    let storage = Memory::new();
    let index = written(&storage, 3000);
    let again = load(&storage, 77, index.summary_at(u64::MAX));
    assert_eq!(again.len(), 3000);
    for ordinal in [1, 10, 11, 12, 15_000, 30_001, 99_999] {
        let found = again.last_where(|entry| entry.ordinal <= ordinal).map(|(_, e)| e);
        let expected = (0..3000).map(entry).rfind(|e| e.ordinal <= ordinal);
        assert_eq!(found, expected, "{ordinal}");
    }
    assert_eq!(again.first_from(1016), Some(entry(0)));
    assert_eq!(again.first_from(1017), Some(entry(1)));
}

#[test]
fn a_foreign_or_damaged_index_is_not_used() {
    let storage = Memory::new();
    let summary = written(&storage, 10).summary_at(u64::MAX);
    assert_eq!(load(&storage, 78, summary).len(), 0);
    assert_eq!(load(&storage, 77, (10, summary.1 ^ 1)).len(), 0);
    assert_eq!(load(&storage, 77, (11, summary.1)).len(), 0);
    let file = storage.open(Path::new("/s/index"), Access::Write).unwrap();
    file.write_at(&[0xee], HEADER_BYTES + 4 * ENTRY_BYTES + 3).unwrap();
    let damaged = load(&storage, 77, summary);
    assert_eq!(damaged.entry(4), None);
    assert_eq!(damaged.entry(3), Some(entry(3)));
}

#[test]
fn a_cut_index_goes_on() {
    let storage = Memory::new();
    let mut index = written(&storage, 10);
    index.push(entry(10));
    index.cut(entry(10).offset);
    assert_eq!(index.len(), 11);
    index.cut(entry(5).offset + 1);
    assert_eq!(index.len(), 6);
    index.push(entry(6));
    index.flush(&storage);
    assert_eq!(load(&storage, 77, index.summary_at(u64::MAX)).entry(6), Some(entry(6)));
}

#[test]
fn an_index_has_the_bytes_of_its_description() {
    let storage = Memory::new();
    written(&storage, 2);
    let file = storage.open(Path::new("/s/index"), Access::Read).unwrap();
    let mut bytes = [0; 16 + 2 * 24];
    assert_eq!(file.len().unwrap(), bytes.len() as u64);
    assert_eq!(read_full(&*file, &mut bytes, 0).unwrap(), bytes.len());
    let mut expected = b"DBIX\x02\0\0\0\x4d\0\0\0".to_vec();
    expected.extend(crc32(&expected).to_le_bytes());
    let mut chain = 77;
    for i in 0..2 {
        let Entry { ordinal, offset, sum } = entry(i);
        let mut fields = [ordinal.to_le_bytes(), offset.to_le_bytes()].concat();
        fields.extend(sum.to_le_bytes());
        chain = crc32_more(chain, &fields);
        expected.extend(fields.into_iter().chain(chain.to_le_bytes()));
    }
    assert_eq!(bytes, *expected);
}

#[test]
fn a_summary_counts_entries_up_to_a_byte() {
    let storage = Memory::new();
    let mut index = written(&storage, 10);
    index.push(entry(10));
    index.push(entry(11));
    for i in 0..12 {
        for (end, count) in [(entry(i).offset - 1, i), (entry(i).offset, i + 1)] {
            let count = count.min(10);
            let (entries, chain) = index.summary_at(end);
            assert_eq!(entries, count, "up to byte {end}");
            let again = load(&storage, 77, (entries, chain));
            let last = count.checked_sub(1);
            assert_eq!((again.len(), again.entry(count)), (count, None));
            assert_eq!(again.last_offset(), last.map_or(0, |i| entry(i).offset));
            assert_eq!(last.and_then(|i| again.entry(i)), last.map(entry));
        }
    }
    assert_eq!(index.summary_at(0), (0, 77));
    assert_eq!(index.summary_at(u64::MAX), index.summary_at(entry(9).offset));
    assert_eq!((index.entry(11), index.entry(12)), (Some(entry(11)), None));
}

#[test]
fn a_mark_with_too_many_entries_is_ignored() {
    let storage = Memory::new();
    let (entries, chain) = written(&storage, 10).summary_at(u64::MAX);
    for more in [entries + 1, 1 << 60, u64::MAX] {
        assert_eq!(load(&storage, 77, (more, chain)).len(), 0, "{more} entries");
    }
    // An empty index continues with its first entry.
    let mut none = load(&storage, 77, (0, 77));
    none.push(entry(0));
    none.flush(&storage);
    assert_eq!(load(&storage, 77, none.summary_at(u64::MAX)).entry(0), Some(entry(0)));
}

#[test]
fn a_damaged_entry_makes_searches_end_before_it() {
    let storage = Memory::new();
    let summary = written(&storage, 10).summary_at(u64::MAX);
    let file = storage.open(Path::new("/s/index"), Access::Write).unwrap();
    file.write_at(&[0xee], HEADER_BYTES + 5 * ENTRY_BYTES).unwrap();
    let index = load(&storage, 77, summary);
    // The chain continues from the damaged entry's stored value.
    let found: Vec<_> = (0..10).map(|i| index.entry(i)).collect();
    let intact = |i: u64| Some(entry(i)).filter(|_| i != 5);
    assert_eq!(found, (0..10).map(intact).collect::<Vec<_>>());
    assert_eq!(index.last_where(|_| true), Some((4, entry(4))));
    assert_eq!(index.first_from(entry(3).offset), Some(entry(3)));
    assert_eq!(index.first_from(entry(4).offset + 1), None);
}

#[test]
fn entries_below_the_start_are_dropped_eventually() {
    let storage = Memory::new();
    for (first, left) in [(0, 10), (4, 10), (5, 10), (6, 4), (9, 1), (10, 0)] {
        let mut index = written(&storage, 10);
        index.drop_before(entry(first).offset, &storage);
        assert_eq!(index.len(), left, "the log begins at entry {first}");
        let again = load(&storage, 77, index.summary_at(u64::MAX));
        assert_eq!(again.len(), left);
        let entries: Vec<_> = (0..left).filter_map(|i| again.entry(i)).collect();
        assert_eq!(entries, (10 - left..10).map(entry).collect::<Vec<_>>());
    }
}

#[test]
fn a_cut_ends_at_any_entry() {
    let storage = Memory::new();
    for keep in 0..=12_u64 {
        let mut index = written(&storage, 10);
        index.push(entry(10));
        index.push(entry(11));
        let end = keep.checked_sub(1).map_or(15, |i| entry(i).offset);
        index.cut(end);
        let last = keep.checked_sub(1).map_or(0, |_| end);
        assert_eq!((index.len(), index.last_offset()), (keep, last));
        index.push(entry(20));
        index.flush(&storage);
        let again = load(&storage, 77, index.summary_at(u64::MAX));
        let entries: Vec<_> = (0..again.len()).filter_map(|i| again.entry(i)).collect();
        assert_eq!(entries, (0..keep).chain([20]).map(entry).collect::<Vec<_>>());
    }
}

#[test]
fn a_thousand_entries_are_worth_a_write() {
    let mut index = Index::empty(Path::new("/s"));
    (0..1023).map(entry).for_each(|entry| index.push(entry));
    assert!(!index.wants_flush());
    index.push(entry(1023));
    assert!(index.wants_flush());
    index.flush(&Memory::new());
    assert!(!index.wants_flush() && index.len() == 1024);
}
