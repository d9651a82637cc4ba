//! The event store next to SQLite and rust-nostr's databases, all in one run.
//!
//! `cargo run --release --manifest-path benches/nostr_peers/Cargo.toml` writes `nostr.json` and `nostr.md` of
//! `benches/results`. `benches/python/nostr.py` draws `nostr.svg` from `nostr.json`. Options: `--quick`, `--dir DIR`
//! (on a disk; by default the repository's `target`), `--results DIR`. `DEEDBOOK_BENCH_EVENTS` is the number of
//! synthetic events (500,000); the queries run on twice as many. A run with 500,000 takes about ten minutes on two idle
//! cores, and 20 GB of disk.

#[path = "../../common/facts.rs"]
mod facts;
mod figures;
mod floor;
mod lines;
mod measure;
#[path = "../../common/nostr_events.rs"]
mod nostr_events;
mod report;
mod rust_nostr;
mod sqlite;
mod stores;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

const QUICK_EVENTS: usize = 20_000;
const EVENTS: usize = 500_000;

struct Arguments {
    quick: bool,
    events: usize,
    dir: PathBuf,
    /// None if the run is quick or of another size and the option is missing.
    results: Option<PathBuf>,
}

impl Arguments {
    fn read(root: &Path) -> Result<Self, String> {
        let (mut quick, mut dir, mut results) = (false, root.join("target"), None);
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word}: a value must follow"));
            match word.as_str() {
                "--quick" => quick = true,
                "--dir" => dir = value()?.into(),
                "--results" => results = Some(value()?.into()),
                _ => return Err(format!("{word}: known are --quick, --dir, --results")),
            }
        }
        let usual = if quick { QUICK_EVENTS } else { EVENTS };
        let events = match std::env::var("DEEDBOOK_BENCH_EVENTS") {
            Ok(text) => text.parse().map_err(|e| format!("DEEDBOOK_BENCH_EVENTS={text}: {e}"))?,
            Err(_) => usual,
        };
        if results.is_none() && !quick && events == EVENTS {
            results = Some(root.join("benches/results"));
        }
        std::fs::create_dir_all(&dir).map_err(|e| format!("the data's directory: {e}"))?;
        facts::on_disk(&dir)?;
        Ok(Self { quick, events, dir, results })
    }
}

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let given = match Arguments::read(&root) {
        Ok(given) => given,
        Err(why) => {
            eprintln!("deedbook-nostr-peers: {why}");
            return ExitCode::from(2);
        }
    };
    let Some(real) = nostr_events::real(&root) else { return ExitCode::SUCCESS };
    let (begun, load) = (Instant::now(), facts::load());
    let (date, commit) = (facts::day(), facts::commit());
    let place = tempfile::tempdir_in(&given.dir).unwrap();
    let measured = measure::run(&real, given.events, place.path());
    let about = report::About {
        quick: given.quick,
        events: given.events,
        machine: facts::machine(&given.dir),
        date,
        commit,
        load: (load, facts::load()),
        seconds: begun.elapsed().as_secs(),
    };
    let text = report::markdown(&measured, &about);
    println!("{text}");
    if let Some(dir) = &given.results {
        std::fs::create_dir_all(dir).unwrap();
        std::fs::write(dir.join("nostr.md"), text).unwrap();
        std::fs::write(dir.join("nostr.json"), report::json(&measured, &about)).unwrap();
        eprintln!("written: nostr.json, nostr.md in the directory of the results");
    }
    ExitCode::SUCCESS
}
