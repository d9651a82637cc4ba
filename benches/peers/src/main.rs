//! `deedbook::wal` next to the crates wal-db and okaywal, `deedbook::ledger` next to transientdb, and both next to
//! plain writes, all in one run.
//!
//! `cargo run --release --manifest-path benches/peers/Cargo.toml`: medians of five repetitions into `wal.json`,
//! `wal.md`, `ledger-rust.json` and `ledger-rust.md` of `benches/results`. Options: `--quick`, `--only ROW`, `--dir
//! DIR` (on a disk; by default the repository's `target`), `--results DIR`.

#[path = "../../common/facts.rs"]
mod facts;
mod harness;
mod pages;
mod report;
mod rows;
mod spools;

use std::process::ExitCode;

use facts::{commit, day, load, machine};
use harness::{Arguments, Bench};

fn main() -> ExitCode {
    if let Some(path) = std::env::var_os(rows::DEATH) {
        rows::die(path.as_ref());
    }
    let given = match Arguments::read() {
        Ok(given) => given,
        Err(why) => {
            eprintln!("deedbook-peers: {why}");
            return ExitCode::from(2);
        }
    };
    let (machine, before) = (machine(&given.dir), load());
    let (date, commit) = (day(), commit());
    let data = rows::Data::new(&given);
    let events = spools::Events::new(&given);
    let mut wal = Bench::default();
    rows::appending(&mut wal, &data);
    rows::committing(&mut wal, &data);
    rows::opening(&mut wal, &data);
    let mut ledger = Bench::default();
    spools::appending(&mut ledger, &events);
    spools::fetching(&mut ledger, &events);
    for (page, bench) in [(pages::WAL, wal), (pages::LEDGERS, ledger)] {
        let figures = bench.run(&given, data.bytes());
        if figures.is_empty() {
            continue;
        }
        let about = report::About {
            quick: given.quick,
            repetitions: given.repetitions(),
            records: data.records,
            commits: data.commits,
            machine: machine.clone(),
            date: date.clone(),
            commit: commit.clone(),
            load: (before, load()),
        };
        let text = report::markdown(&page, &figures, &about);
        println!("{text}");
        if let Some(dir) = &given.results {
            let file = |kind| dir.join(format!("{}.{kind}", page.file));
            std::fs::create_dir_all(dir).unwrap();
            std::fs::write(file("md"), text).unwrap();
            std::fs::write(file("json"), report::json(&figures, &about)).unwrap();
            eprintln!("written: {0}.json, {0}.md in the directory of the results", page.file);
        }
    }
    ExitCode::SUCCESS
}
