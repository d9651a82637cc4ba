//! Entries to be written, sorted before they are: in one piece of memory.

use crate::slice::part;

/// Values by keys; of two for one key the later counts.
#[derive(Default)]
pub struct Writes {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

struct Entry {
    /// The first bytes of the key: most comparisons end here.
    head: u64,
    at: usize,
    key_len: u32,
    /// None: the key is removed.
    value_len: Option<u32>,
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

    /// How many entries there are, those counted twice that were written twice.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The keys in their order, each once, with the value or none to remove.
    pub fn sorted(&mut self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let bytes = &self.bytes;
        let key = |entry: &Entry| part(bytes, entry.at..entry.at + entry.key_len as usize);
        // The later of two with one key comes first, and is kept.
        self.entries.sort_unstable_by(|a, b| {
            let keys = a.head.cmp(&b.head).then_with(|| key(a).cmp(key(b)));
            keys.then(b.at.cmp(&a.at))
        });
        self.entries.dedup_by(|later, first| later.head == first.head && key(later) == key(first));
        self.entries.iter().map(move |entry| {
            let value_at = entry.at + entry.key_len as usize;
            let value = entry.value_len.map(|len| part(bytes, value_at..value_at + len as usize));
            (key(entry), value)
        })
    }

    fn push(&mut self, key: &[u8], value: Option<&[u8]>) {
        let mut head = [0; 8];
        head.iter_mut().zip(key).for_each(|(head, &byte)| *head = byte);
        self.entries.push(Entry {
            head: u64::from_be_bytes(head),
            at: self.bytes.len(),
            key_len: key.len() as u32,
            value_len: value.map(|value| value.len() as u32),
        });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value.unwrap_or_default());
    }
}

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
}
