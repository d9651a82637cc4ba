//! Places in a `data.mdb`, so a test can change a single number. The layout is written down again.

use heed::byteorder::NativeEndian;
use heed::types::{Bytes, U64};
use heed::{CommitOrAbort, EnvFlags, EnvOpenOptions, IntegerComparator};

use crate::support::prelude::*;

pub const PAGE: usize = 4096;

pub type Events<'a> = heed::Database<'a, U64<NativeEndian>, Bytes, IntegerComparator>;

/// An environment made by LMDB itself.
pub fn make(dir: &Path, values: &[(u64, &[u8])], meta: &[(&str, &[u8])]) {
    make_with(dir, (64 << 20, EnvFlags::empty()), meta, |events, txn| {
        values.iter().try_for_each(|(event, value)| events.put(txn, event, value))
    });
}

/// The same with other events, of any size.
#[allow(unsafe_code)]
pub fn make_with(
    dir: &Path,
    (map_bytes, flags): (usize, EnvFlags),
    meta: &[(&str, &[u8])],
    put: impl FnOnce(Events<'_>, &mut heed::RwTxn<'_>) -> heed::Result<()>,
) {
    fs::create_dir_all(dir).unwrap();
    let mut options = EnvOpenOptions::new();
    options.max_dbs(2).map_size(map_bytes);
    // SAFETY: a directory of one test alone.
    let env = unsafe { options.flags(flags).open(dir).unwrap() };
    let txn = env.write_txn().unwrap();
    env.create_databases_and_commit(txn, |opener, txn| {
        let mut options = opener
            .database_options()
            .types::<U64<NativeEndian>, Bytes>()
            .key_comparator::<IntegerComparator>();
        put(options.name("EVENTS").create(txn)?, txn)?;
        let stored = opener.create_database::<Bytes, Bytes>(txn, Some("META"))?;
        for (key, value) in meta {
            stored.put(txn, key.as_bytes(), value)?;
        }
        Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(()))
    })
    .unwrap();
}

#[derive(Clone)]
pub struct Pages(pub Vec<u8>);

impl Pages {
    pub fn u16(&self, at: usize) -> usize {
        usize::from(u16::from_le_bytes(self.0[at..at + 2].try_into().unwrap()))
    }

    pub fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().unwrap())
    }

    pub fn meta(&self) -> usize {
        if self.u64(PAGE + 144) > self.u64(144) { PAGE } else { 0 }
    }

    /// The record of the free list, and the record of the list of databases.
    pub fn free(&self) -> usize {
        self.meta() + 40
    }

    pub fn main(&self) -> usize {
        self.meta() + 88
    }

    pub fn named(&self, name: &[u8]) -> usize {
        let page = self.root(self.main());
        let nodes = (0..self.count(page)).map(|index| self.node(page, index));
        let mut found = nodes.filter(|node| self.0[node + 8..].starts_with(name));
        found.next().unwrap() + 8 + name.len()
    }

    /// The first byte of the root page in a record.
    pub fn root(&self, record: usize) -> usize {
        self.u64(record + 40) as usize * PAGE
    }

    pub fn count(&self, page: usize) -> usize {
        self.u16(page + 12).saturating_sub(16) / 2
    }

    pub fn node(&self, page: usize, index: usize) -> usize {
        page + self.u16(page + 16 + 2 * index)
    }

    /// The first byte of the page below a node of a branch.
    pub fn child(&self, node: usize) -> usize {
        (self.u64(node) as u32) as usize * PAGE
    }

    pub fn last_leaf(&self) -> usize {
        let mut page = self.root(self.named(b"EVENTS"));
        while self.u16(page + 10) == 1 {
            page = self.child(self.node(page, self.count(page) - 1));
        }
        page
    }

    pub fn with(&self, at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut changed = self.0.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    }
}
