//! Real faults on real file systems: power cuts, full disks, failing system calls, kills.
//!
//! `scripts/power.sh` runs the program. Mounting needs root. Parts that cannot run are skipped with a reason. Results:
//! `power.json` in `DEEDBOOK_TRUST_DIR`, by default `target/trust`.
//!
//! ```text
//! power                drive everything
//! power write ...      the writer that is struck, a process of its own
//! power spool ...      the same, of a ledger
//! power open KIND DIR  opens and closes, to be struck while it recovers
//!
//! DEEDBOOK_POWER_FORMAT   book (both layouts), slots, wal, ledger, store: what is struck, with commas (default
//!                         all)
//! DEEDBOOK_POWER_CYCLES   power cuts per file system and layout (default 100)
//! DEEDBOOK_POWER_SEED     seed of all choices (default 1)
//! DEEDBOOK_POWER_ONLY     cuts, full, readonly, shim, strace: parts to run, with commas
//! ```

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

mod account;
mod cuts;
mod full;
mod kind;
#[path = "../../tests/support"]
#[allow(dead_code)]
mod support {
    pub mod ledger {
        pub mod known;
        pub mod spool;
    }
    pub mod mix;
    pub mod plain;
}
mod mounts;
mod spool;
mod spool_writer;
mod store;
mod syscalls;
mod victim;
mod writer;

use std::path::PathBuf;
use std::time::Instant;

use victim::Victim;

/// Pseudorandom numbers, the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound.max(1)
    }
}

pub fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).unwrap_or_default().replace('_', "");
    if text.is_empty() {
        return default;
    }
    text.parse().unwrap_or_else(|_| panic!("{name}={text}"))
}

/// Counts in the order of the first appearance, and the reasons for skipped parts.
#[derive(Default)]
pub struct Report {
    parts: Vec<(String, Vec<(String, u64)>)>,
    skipped: Vec<(String, String)>,
    pub failures: Vec<String>,
}

impl Report {
    pub fn count(&mut self, part: &str, what: &str, more: u64) {
        let at = self.parts.iter().position(|(name, _)| name == part).unwrap_or_else(|| {
            self.parts.push((part.into(), Vec::new()));
            self.parts.len() - 1
        });
        let counts = &mut self.parts[at].1;
        match counts.iter_mut().find(|(name, _)| name == what) {
            Some((_, count)) => *count += more,
            None => counts.push((what.into(), more)),
        }
    }

    pub fn skip(&mut self, part: &str, why: &str) {
        println!("skipped: {part}: {why}");
        if std::env::var("DEEDBOOK_REQUIRE_ALL").is_ok_and(|all| all == "1") {
            self.fail(format!("{part}: skipped, and DEEDBOOK_REQUIRE_ALL is set: {why}"));
        }
        self.skipped.push((part.into(), why.into()));
    }

    pub fn fail(&mut self, what: String) {
        println!("FAILED: {what}");
        self.failures.push(what);
    }

    fn json(&self, formats: &str, seed: u64, seconds: f64) -> String {
        let quote = |text: &str| format!("{text:?}");
        let mut parts = Vec::new();
        for (name, counts) in &self.parts {
            let counts: Vec<_> =
                counts.iter().map(|(what, n)| format!("{}: {n}", quote(what))).collect();
            parts.push(format!("    {}: {{{}}}", quote(name), counts.join(", ")));
        }
        let skipped: Vec<_> = self
            .skipped
            .iter()
            .map(|(part, why)| format!("    {}: {}", quote(part), quote(why)))
            .collect();
        let failures: Vec<_> = self.failures.iter().map(|what| quote(what)).collect();
        format!(
            "{{\n  \"format\": {},\n  \"seed\": {seed},\n  \"seconds\": {seconds:.1},\n  \
             \"parts\": {{\n{}\n  }},\n  \"skipped\": {{\n{}\n  }},\n  \"failures\": [{}]\n}}\n",
            quote(formats),
            parts.join(",\n"),
            skipped.join(",\n"),
            failures.join(", ")
        )
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("write") => writer::write(&args[1..]),
        Some("spool") => spool_writer::write(&args[1..]),
        Some("open") => writer::open(&args[1], &args[2]),
        None => drive(),
        Some(other) => panic!("unknown: {other}"),
    }
}

/// Runs a part with a seed, and counts into the report.
type Part = fn(&mut Report, Victim, u64);

fn drive() {
    let began = Instant::now();
    let seed = number("DEEDBOOK_POWER_SEED", 1);
    let only = std::env::var("DEEDBOOK_POWER_ONLY").unwrap_or_default();
    let wanted = |part: &str| only.is_empty() || only.split(',').any(|name| name == part);
    let victims = Victim::wanted();
    let mut report = Report::default();
    let parts: [(&str, Part); 5] = [
        // Promise: power-loss, slots-crash, wal-power-loss, ledger-power-loss, store-power-loss.
        ("cuts", cut),
        // Promise: call-fails, wal-call-fails, ledger-full, store-call-fails.
        ("full", fill),
        // Promise: read-only-media, ledger-read-only-media.
        ("readonly", read_only),
        // Promise: call-fails, wal-call-fails, ledger-call-fails, store-call-fails.
        ("shim", syscalls::shim),
        // Promise: ledger-kill.
        ("strace", syscalls::strace),
    ];
    for (name, part) in parts {
        if wanted(name) {
            let began = Instant::now();
            victims.iter().for_each(|&victim| part(&mut report, victim, seed));
            println!("{name}: {:.1} s", began.elapsed().as_secs_f64());
        }
    }
    let names: Vec<_> = victims.iter().map(|victim| victim.name()).collect();
    let json = report.json(&names.join(", "), seed, began.elapsed().as_secs_f64());
    print!("{json}");
    let dir = std::env::var_os("DEEDBOOK_TRUST_DIR").map_or("target/trust".into(), PathBuf::from);
    std::fs::create_dir_all(&dir).expect("the result directory can be made");
    std::fs::write(dir.join("power.json"), json).expect("the result can be written");
    if !report.failures.is_empty() {
        eprintln!("{} failures", report.failures.len());
        std::process::exit(1);
    }
}

fn cut(report: &mut Report, victim: Victim, seed: u64) {
    match victim {
        Victim::Log(kind) => cuts::run(report, kind, seed),
        Victim::Ledger => spool::cut(report, seed),
    }
}

fn fill(report: &mut Report, victim: Victim, seed: u64) {
    match victim {
        Victim::Log(kind) => full::fill(report, kind, seed),
        Victim::Ledger => spool::fill(report, seed),
    }
}

fn read_only(report: &mut Report, victim: Victim, seed: u64) {
    match victim {
        Victim::Log(kind) => full::read_only(report, kind, seed),
        Victim::Ledger => spool::read_only(report),
    }
}
