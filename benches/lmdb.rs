//! LMDB's own read: a walk over all events of an environment that does nothing with them, next to which
//! `benches/python/migrate.py` measures a migration. `cargo bench -p deedbook --features lmdb --bench lmdb -- DIR
//! ROUNDS`

#![allow(missing_docs, unsafe_code, clippy::unwrap_used, clippy::print_stdout)]

use std::time::Instant;

use heed::byteorder::NativeEndian;
use heed::types::{Bytes, U64};
use heed::{CommitOrAbort, EnvFlags, EnvOpenOptions, IntegerComparator};

/// The size of the map, at least the size of the file.
const MAP_BYTES: usize = 64 << 30;

type Events = heed::Database<'static, U64<NativeEndian>, Bytes, IntegerComparator>;

fn main() {
    // Cargo adds `--bench` to the arguments.
    let given: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let [dir, rounds] = given.as_slice() else {
        println!("name an environment and how often to read it: -- DIR ROUNDS");
        return;
    };
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.max_dbs(2).map_size(MAP_BYTES);
    // SAFETY: nothing writes the environment during the reads.
    let env = unsafe {
        options.flags(EnvFlags::READ_ONLY | EnvFlags::NO_LOCK);
        options.open(dir).unwrap()
    };
    let txn = env.read_txn().unwrap();
    let opened = env.open_databases_and_commit(txn, |opener, txn| {
        let mut named = opener.database_options().types().key_comparator();
        let events = named.name("EVENTS").open(txn)?.unwrap();
        Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(events))
    });
    let events: Events = opened.unwrap().commit().unwrap();
    let txn = env.read_txn().unwrap();
    for _ in 0..rounds.parse().unwrap() {
        let begun = Instant::now();
        let (mut count, mut bytes, mut sum) = (0_u64, 0, 0_u64);
        for entry in events.iter(&txn).unwrap() {
            let (event, value) = entry.unwrap();
            count += 1;
            bytes += value.len();
            // Adding a byte of each value reads the value's page.
            sum = sum.wrapping_add(event).wrapping_add(value.last().copied().unwrap_or(0).into());
        }
        std::hint::black_box(sum);
        let seconds = begun.elapsed().as_secs_f64();
        println!("{{\"events\": {count}, \"bytes\": {bytes}, \"seconds\": {seconds}}}");
    }
}
