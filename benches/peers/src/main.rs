//! `deedbook::wal` beside the crates wal-db and okaywal and beside plain writes, all in one run.
//!
//! `cargo run --release --manifest-path benches/peers/Cargo.toml`: medians of five repetitions into
//! `benches/results/wal.json` and `wal.md`. Options: `--quick`, `--only ROW`, `--dir DIR` (on a
//! disk; by default the repository's `target`), `--results DIR`.

mod harness;
mod report;
mod rows;

use std::process::ExitCode;

use harness::{Arguments, Bench, load, machine};

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
    let data = rows::Data::new(&given);
    let mut bench = Bench::default();
    rows::appending(&mut bench, &data);
    rows::committing(&mut bench, &data);
    rows::opening(&mut bench, &data);
    let figures = bench.run(&given, data.bytes());
    let about = report::About {
        quick: given.quick,
        repetitions: given.repetitions(),
        records: data.records,
        commits: data.commits,
        machine,
        load: (before, load()),
    };
    let text = report::markdown(&figures, &about);
    println!("{text}");
    if let Some(dir) = &given.results {
        std::fs::create_dir_all(dir).unwrap();
        std::fs::write(dir.join("wal.md"), text).unwrap();
        std::fs::write(dir.join("wal.json"), report::json(&figures, &about)).unwrap();
        eprintln!("written: wal.json, wal.md in the directory of the results");
    }
    ExitCode::SUCCESS
}
