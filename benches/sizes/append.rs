//! Appends events of one size to a Book, or to LMDB by heed. `append.c` and `append.py` do the same. Each batch is on
//! stable storage before the next. Prints the seconds and the seconds of processor time. `cargo bench -p deedbook
//! --features lmdb --bench sizes -- STORE DIR BYTES BATCH EVENTS`

#![allow(missing_docs, unsafe_code, clippy::unwrap_used)]
#![allow(clippy::indexing_slicing, clippy::print_stdout)]

// This bench uses its clock alone.
#[allow(dead_code)]
#[path = "../common/facts.rs"]
mod facts;

use std::path::Path;
use std::time::Instant;

use deedbook::Batch;
use deedbook::book::{Book, BookFormat, Options};
use heed::byteorder::NativeEndian;
use heed::types::{Bytes, U64};
use heed::{CommitOrAbort, EnvOpenOptions, IntegerComparator, PutFlags};

/// The size of LMDB's map.
const MAP_BYTES: usize = 64 << 30;

type Events = heed::Database<'static, U64<NativeEndian>, Bytes, IntegerComparator>;

fn to_book(dir: &Path, event: &[u8], batch: usize, events: u64) -> (f64, f64) {
    let book = Book::create(dir).unwrap();
    let (mug, jam) = event.split_first_chunk().unwrap();
    let mug = u32::from_le_bytes(*mug);
    measured(|| {
        let mut records = Batch::<BookFormat>::new(Options::DEED_BYTES_MAX);
        for _ in (0..events).step_by(batch) {
            if batch == 1 {
                book.append(mug, jam).unwrap();
                continue;
            }
            records.clear();
            (0..batch).for_each(|_| records.push(mug, jam).unwrap());
            book.append_batch(&records, None, None).unwrap();
        }
    })
}

fn to_lmdb(dir: &Path, event: &[u8], batch: usize, events: u64) -> (f64, f64) {
    std::fs::create_dir_all(dir).unwrap();
    let mut options = EnvOpenOptions::new();
    options.max_dbs(2).map_size(MAP_BYTES);
    // SAFETY: this process alone opens the environment.
    let env = unsafe { options.open(dir).unwrap() };
    let txn = env.write_txn().unwrap();
    let opened = env.create_databases_and_commit(txn, |opener, txn| {
        let mut named = opener.database_options().types().key_comparator();
        let events = named.name("EVENTS").create(txn)?;
        Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(events))
    });
    let stored: Events = opened.unwrap().commit().unwrap();
    measured(|| {
        for first in (1..=events).step_by(batch) {
            let mut txn = env.write_txn().unwrap();
            for number in first..first + batch as u64 {
                stored.put_with_flags(&mut txn, PutFlags::NO_OVERWRITE, &number, event).unwrap();
            }
            txn.commit().unwrap();
        }
    })
}

fn measured(work: impl FnOnce()) -> (f64, f64) {
    let (wall, busy) = (Instant::now(), facts::cpu_time());
    work();
    (wall.elapsed().as_secs_f64(), (facts::cpu_time() - busy).as_secs_f64())
}

fn main() {
    // Cargo adds `--bench` to the arguments.
    let given: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let [store, dir, bytes, batch, events] = given.as_slice() else {
        println!("say where and how much: -- STORE DIR BYTES BATCH EVENTS");
        return;
    };
    let event: Vec<u8> = (0..bytes.parse().unwrap())
        .map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let append = if store == "book" { to_book } else { to_lmdb };
    let (wall, busy) =
        append(Path::new(dir), &event, batch.parse().unwrap(), events.parse().unwrap());
    println!("{wall:.9} {busy:.9}");
}
