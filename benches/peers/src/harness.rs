//! Medians and turns.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::facts::{cpu_time, median, on_disk};

/// The command line.
pub struct Arguments {
    /// Sizes too small to judge by, for a test of the benchmark.
    pub quick: bool,
    /// Only rows with this text in the title.
    pub only: String,
    /// The directory of the data.
    pub dir: PathBuf,
    /// The directory of the results; none if the run is quick or partial and the option is missing.
    pub results: Option<PathBuf>,
}

impl Arguments {
    /// Read the command line.
    pub fn read() -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut given =
            Self { quick: false, only: String::new(), dir: root.join("target"), results: None };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word}: a value must follow"));
            match word.as_str() {
                "--quick" => given.quick = true,
                "--only" => given.only = value()?,
                "--dir" => given.dir = value()?.into(),
                "--results" => given.results = Some(value()?.into()),
                _ => return Err(format!("{word}: known are --quick, --only, --dir, --results")),
            }
        }
        if given.results.is_none() && !given.quick && given.only.is_empty() {
            given.results = Some(root.join("benches/results"));
        }
        fs::create_dir_all(&given.dir).map_err(|e| format!("the data's directory: {e}"))?;
        on_disk(&given.dir)?;
        Ok(given)
    }

    /// `full`, or a tenth of `full` in a quick run.
    pub fn count(&self, full: usize) -> usize {
        if self.quick { full / 10 } else { full }
    }

    /// Repetitions of each measurement.
    pub fn repetitions(&self) -> usize {
        if self.quick { 2 } else { 5 }
    }
}

/// Pseudo-random bytes, the same in every run (SplitMix64).
pub fn random_bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// The amount of work, and its time.
#[derive(Clone, Copy)]
pub struct Done {
    count: usize,
    wall: Duration,
    cpu: Duration,
}

/// Time `work`, which does `count` units.
pub fn timed(count: usize, work: impl FnOnce()) -> Done {
    let (begun, used) = (Instant::now(), cpu_time());
    work();
    Done { count, wall: begun.elapsed(), cpu: cpu_time() - used }
}

/// The sum of consecutive parts.
pub fn total(parts: impl Iterator<Item = Done>) -> Done {
    let none = Done { count: 0, wall: Duration::ZERO, cpu: Duration::ZERO };
    parts.fold(none, |all, part| Done {
        count: all.count + part.count,
        wall: all.wall + part.wall,
        cpu: all.cpu + part.cpu,
    })
}

type Run<'a> = Box<dyn FnMut(&Path) -> Done + 'a>;

struct Case<'a> {
    row: &'static str,
    store: &'static str,
    run: Run<'a>,
}

/// The result of a store in a row.
pub struct Figure {
    /// The name of the measurement.
    pub row: &'static str,
    /// The measured store.
    pub store: &'static str,
    /// Units of work per second, in the order of the repetitions.
    pub rates: Vec<f64>,
    /// The same by processor time.
    pub by_cpu: Vec<f64>,
}

impl Figure {
    /// The median rate.
    pub fn median(&self) -> f64 {
        median(&self.rates)
    }

    /// The same by processor time.
    pub fn median_by_cpu(&self) -> f64 {
        median(&self.by_cpu)
    }
}

/// All measurements.
#[derive(Default)]
pub struct Bench<'a> {
    cases: Vec<Case<'a>>,
}

impl<'a> Bench<'a> {
    /// Add a measurement. `run` gets an empty directory and returns how much it did and the time.
    pub fn case(
        &mut self,
        row: &'static str,
        store: &'static str,
        run: impl FnMut(&Path) -> Done + 'a,
    ) {
        self.cases.push(Case { row, store, run: Box::new(run) });
    }

    /// Measure everything, repeatedly. The stores of one row take turns, and drift hits all stores.
    pub fn run(mut self, given: &Arguments, settle_bytes: usize) -> Vec<Figure> {
        self.cases.retain(|case| case.row.contains(&given.only));
        let mut figures: Vec<Figure> = self
            .cases
            .iter()
            .map(|&Case { row, store, .. }| Figure {
                row,
                store,
                rates: Vec::new(),
                by_cpu: Vec::new(),
            })
            .collect();
        // ext4 reuses the inode of a removed file only after one minute or five, and creating a file passes over each
        // such inode. Therefore a repetition only empties the files; removal follows after the run. Otherwise a store
        // with many files would pay for the files of the store before.
        let mut kept = Vec::new();
        for repetition in 0..given.repetitions() {
            eprintln!("repetition {} of {}", repetition + 1, given.repetitions());
            let mut begin = 0;
            while begin < self.cases.len() {
                let row = self.cases[begin].row;
                let count = self.cases[begin..].iter().take_while(|case| case.row == row).count();
                for i in 0..count {
                    let turn = begin + (i + repetition) % count;
                    let dir = tempfile::tempdir_in(&given.dir).unwrap();
                    settle(dir.path(), settle_bytes);
                    let Done { count, wall, cpu } = (self.cases[turn].run)(dir.path());
                    figures[turn].rates.push(count as f64 / wall.as_secs_f64());
                    figures[turn].by_cpu.push(count as f64 / cpu.as_secs_f64());
                    empty(dir.path());
                    kept.push(dir);
                }
                begin += count;
            }
        }
        figures
    }
}

/// Free the space of every file below a directory.
fn empty(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => empty(&path),
            false => File::options().write(true).open(&path).unwrap().set_len(0).unwrap(),
        }
    }
}

/// Wait until the disk is idle, then write and remove a file, in single pages and in pieces of all sizes. The previous
/// measurement decides which pages are free, and in what pieces. A virtual machine that returns free memory to its host
/// waits for every piece that it touches again, several times as long as for the write. After this call, each store
/// finds pages that were touched just before.
fn settle(dir: &Path, bytes: usize) {
    // Write the unwritten pages of earlier work now, not in the measured syncs. SAFETY: a system call without
    // arguments.
    unsafe { libc::sync() };
    let path = dir.join("settle");
    for size in [4 << 10, 256 << 10, 1020 << 10] {
        let (mut file, block) = (File::create(&path).unwrap(), vec![0; size]);
        for _ in 0..bytes.div_ceil(size) {
            file.write_all(&block).unwrap();
        }
        drop(file);
        fs::remove_file(&path).unwrap();
    }
}
