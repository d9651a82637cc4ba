//! Commits of several threads. The threads only commit, or do other work between commits. The peer is a group commit
//! whose leader never waits for others. `cargo bench -p deedbook --bench group_commit`

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout)]

mod common;

use std::cell::RefCell;
use std::path::Path;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use common::{Bench, JAM_BYTES, count, random_bytes};
use deedbook::Durability;
use deedbook::Mode;
use deedbook::book::{Book, Options};

/// The work of a thread between its commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Between {
    Nothing,
    /// 0.5 to 1.5 ms of computing.
    Work,
    /// The same time asleep.
    Sleep,
}

/// The crate's group commit, or one whose leader syncs at once.
enum Commits {
    Crate(Book),
    NoWait { book: Book, queue: Mutex<Queue>, led: Condvar },
}

#[derive(Default)]
struct Queue {
    leading: bool,
    durable: u64,
}

impl Commits {
    fn new(dir: &Path, wait: bool) -> Self {
        let durability = if wait { Durability::Always } else { Durability::Manual };
        let options = Options::new().durability(durability);
        let book = options.open(dir.join("log"), Mode::Create).unwrap();
        match wait {
            true => Self::Crate(book),
            false => Self::NoWait { book, queue: Mutex::default(), led: Condvar::new() },
        }
    }

    fn commit(&self, jam: &[u8]) {
        match self {
            Self::Crate(book) => drop(book.append(0, jam).unwrap()),
            Self::NoWait { book, queue, led } => {
                let event = book.append(0, jam).unwrap();
                let mut state = queue.lock().unwrap();
                loop {
                    if state.durable >= event {
                        return;
                    }
                    if !state.leading {
                        break;
                    }
                    state = led.wait(state).unwrap();
                }
                state.leading = true;
                drop(state);
                let last = book.last().unwrap();
                book.sync().unwrap();
                *queue.lock().unwrap() = Queue { leading: false, durable: last };
                led.notify_all();
            }
        }
    }
}

/// Rounds of computing per microsecond.
fn calibrated() -> u64 {
    let begun = Instant::now();
    let rounds = 20_000_000;
    compute(rounds);
    rounds / (begun.elapsed().as_micros() as u64).max(1)
}

fn compute(rounds: u64) {
    let mut state = rounds;
    for _ in 0..rounds {
        state = std::hint::black_box(state.wrapping_mul(0x9fb2_1c65_1e98_df25).rotate_left(23));
    }
}

/// All threads commit `each` times; returns the number of commits, the time, and the median latency.
fn measure(
    dir: &Path,
    wait: bool,
    threads: usize,
    each: usize,
    between: Between,
    rounds_per_us: u64,
) -> (u64, Duration, Duration) {
    let commits = Commits::new(dir, wait);
    let latencies = Mutex::new(Vec::new());
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (commits, latencies) = (&commits, &latencies);
            scope.spawn(move || {
                let jam = [thread as u8; JAM_BYTES];
                let pauses = random_bytes(8 * each, thread as u64);
                let mut mine = Vec::with_capacity(each);
                for bytes in pauses.chunks_exact(8) {
                    let pause_us = 500 + u64::from_le_bytes(*bytes.first_chunk().unwrap()) % 1000;
                    match between {
                        Between::Nothing => {}
                        Between::Work => compute(pause_us * rounds_per_us),
                        Between::Sleep => std::thread::sleep(Duration::from_micros(pause_us)),
                    }
                    let begun = Instant::now();
                    commits.commit(&jam);
                    mine.push(begun.elapsed());
                }
                latencies.lock().unwrap().extend(mine);
            });
        }
    });
    let time = begun.elapsed();
    let mut latencies = latencies.into_inner().unwrap();
    latencies.sort_unstable();
    ((threads * each) as u64, time, latencies[latencies.len() / 2])
}

fn shape(name: &'static str, threads: usize, each: usize, between: Between) {
    let rounds_per_us = calibrated();
    let medians = [RefCell::new(Vec::new()), RefCell::new(Vec::new())];
    let mut bench = Bench::new(name);
    for (i, case) in ["no wait", "as the crate does it"].into_iter().enumerate() {
        let medians = &medians[i];
        bench.case(case, move |dir| {
            let (done, time, median) = measure(dir, i == 1, threads, each, between, rounds_per_us);
            medians.borrow_mut().push(median);
            (done, time)
        });
    }
    bench.run();
    for (case, medians) in ["no wait", "as the crate does it"].into_iter().zip(medians) {
        let mut medians = medians.into_inner();
        medians.sort_unstable();
        println!("{case:52} median latency {:?}", medians[medians.len() / 2]);
    }
}

fn main() {
    let each = count(2000);
    shape("2 threads that only commit", 2, each, Between::Nothing);
    shape("4 threads that only commit", 4, each, Between::Nothing);
    shape("16 threads that only commit", 16, each, Between::Nothing);
    shape("4 threads, 0.5 to 1.5 ms of work between commits", 4, each, Between::Work);
    shape("4 threads, 0.5 to 1.5 ms of sleep between commits", 4, each, Between::Sleep);
}
