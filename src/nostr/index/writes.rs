//! Collect entries for a write, and sort them.
//!
//! The entries are sorted in runs of the size of the processor's cache. A merge then reads each run
//! from its beginning to its end. To fetch each entry of a large heap from its place would take
//! longer than all other work.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::ground::slice::part;

/// The number of entries in a run.
const RUN_ENTRIES: usize = 16_384;

/// Values by keys; the later of two values for one key wins.
#[derive(Debug, Default)]
pub struct Writes {
    /// The sorted runs, each key once.
    runs: Vec<Sorted>,
    /// The new entries, not yet sorted.
    last: Sorted,
    count: usize,
}

#[derive(Debug, Default)]
struct Sorted {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    /// The first bytes of the key: most comparisons end here.
    head: u64,
    at: u32,
    key_len: u16,
    /// `None` removes the key.
    value_len: Option<u16>,
}

impl Writes {
    /// Write a value.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.push(key, Some(value));
    }

    /// Remove a key.
    pub fn remove(&mut self, key: &[u8]) {
        self.push(key, None);
    }

    /// The number of entries; repeated keys count twice.
    pub fn len(&self) -> usize {
        self.count
    }

    /// The keys in order, each once, with the value, or `None` to remove the key.
    pub fn sorted(&mut self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.end_run();
        let runs = &self.runs;
        let head = |number: usize, at: usize| Head::of(runs.get(number)?, number, at);
        let firsts = (0..runs.len()).filter_map(|number| head(number, 0)).map(Reverse);
        let (mut heads, mut last) = (firsts.collect::<BinaryHeap<_>>(), None);
        std::iter::from_fn(move || {
            loop {
                let mut first = heads.peek_mut()?;
                let Head { key, number, at, .. } = first.0;
                match head(number, at + 1) {
                    Some(next) => *first = Reverse(next),
                    None => drop(PeekMut::pop(first)),
                }
                if last.replace(key) != Some(key) {
                    return Some((key, runs.get(number)?.value(at)));
                }
            }
        })
    }

    fn push(&mut self, key: &[u8], value: Option<&[u8]>) {
        let run = &mut self.last;
        run.entries.push(Entry {
            head: head_of(key),
            at: run.bytes.len() as u32,
            key_len: key.len() as u16,
            value_len: value.map(|value| value.len() as u16),
        });
        run.bytes.extend_from_slice(key);
        run.bytes.extend_from_slice(value.unwrap_or_default());
        self.count += 1;
        if self.last.entries.len() >= RUN_ENTRIES {
            self.end_run();
        }
    }

    fn end_run(&mut self) {
        if self.last.entries.is_empty() {
            return;
        }
        let (run, mut sorted) = (&mut self.last, Sorted::default());
        let bytes = &run.bytes;
        let key = |entry: &Entry| part(bytes, entry.key());
        // The later of two entries with one key sorts first, and stays.
        run.entries.sort_unstable_by(|a, b| {
            let keys = a.head.cmp(&b.head).then_with(|| key(a).cmp(key(b)));
            keys.then(b.at.cmp(&a.at))
        });
        run.entries.dedup_by(|later, first| later.head == first.head && key(later) == key(first));
        sorted.bytes.reserve_exact(bytes.len());
        for entry in &mut run.entries {
            let at = sorted.bytes.len() as u32;
            sorted.bytes.extend_from_slice(part(bytes, entry.key().start..entry.value().end));
            entry.at = at;
        }
        sorted.entries.append(&mut run.entries);
        run.bytes.clear();
        self.runs.push(sorted);
    }
}

impl Entry {
    fn key(&self) -> std::ops::Range<usize> {
        let at = self.at as usize;
        at..at + usize::from(self.key_len)
    }

    fn value(&self) -> std::ops::Range<usize> {
        let at = self.key().end;
        at..at + usize::from(self.value_len.unwrap_or_default())
    }
}

fn head_of(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    head.iter_mut().zip(key).for_each(|(head, &byte)| *head = byte);
    u64::from_be_bytes(head)
}

impl Sorted {
    fn value(&self, at: usize) -> Option<&[u8]> {
        let entry = self.entries.get(at).filter(|entry| entry.value_len.is_some())?;
        Some(part(&self.bytes, entry.value()))
    }
}

/// The next entry of a run. For one key, the later run sorts first.
struct Head<'a> {
    head: u64,
    key: &'a [u8],
    number: usize,
    at: usize,
}

impl<'a> Head<'a> {
    fn of(run: &'a Sorted, number: usize, at: usize) -> Option<Self> {
        let entry = run.entries.get(at)?;
        Some(Self { head: entry.head, key: part(&run.bytes, entry.key()), number, at })
    }
}

impl Ord for Head<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let keys = self.head.cmp(&other.head).then_with(|| self.key.cmp(other.key));
        keys.then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Head<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Head<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_and_the_later_value_counts() {
        let mut writes = Writes::default();
        writes.put(b"long key b", b"1");
        writes.put(b"long key a", b"2");
        writes.put(b"short", b"3");
        writes.remove(b"long key b");
        writes.put(b"short", b"");
        writes.remove(b"");
        let sorted: Vec<_> = writes.sorted().collect();
        let expected: [(&[u8], Option<&[u8]>); 4] = [
            (b"", None),
            (b"long key a", Some(b"2")),
            (b"long key b", None),
            (b"short", Some(b"")),
        ];
        assert_eq!(sorted, expected);
    }

    #[test]
    fn of_several_runs_the_later_value_counts() {
        let mut writes = Writes::default();
        let count = 4 * RUN_ENTRIES as u32 + 5;
        let mut expected = std::collections::BTreeMap::new();
        for number in 0..count {
            // Keys in random order, each a few times.
            let key = (number.wrapping_mul(0x9E37_79B9) % (count / 2)).to_be_bytes();
            let value = number.to_be_bytes();
            match number % 3 {
                0 => writes.remove(&key),
                _ => writes.put(&key, &value),
            }
            expected.insert(key, (number % 3 != 0).then_some(value));
        }
        assert_eq!(writes.len(), count as usize);
        let mut expected = expected.iter();
        for (key, value) in writes.sorted() {
            let (known, counts) = expected.next().unwrap();
            assert_eq!((key, value), (&known[..], counts.as_ref().map(|value| &value[..])));
        }
        assert!(expected.next().is_none());
    }
}
