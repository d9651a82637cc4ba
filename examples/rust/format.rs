//! A format of your own: the engine opens, appends, reads and checks a log whose bytes `toy.rs` defines.
//!
//! ```sh
//! cargo run --example format --features sim -- DIR one two three
//! ```
//!
//! The arguments are appended, and the whole log is printed. `docs/format.md` explains `toy.rs`.
#![allow(clippy::print_stdout)]

#[allow(dead_code, clippy::unwrap_used, clippy::indexing_slicing)]
mod toy;

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use deedbook::engine::{Common, Log, check_rest};
use deedbook::storage::Disk;
use deedbook::{Durability, LockTimeout, Mode, OnCorrupt, Recovery};
use toy::Toy;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir: PathBuf = arguments.next().ok_or("usage: format DIR [PAYLOAD...]")?.into();
    let options = Common {
        durability: Durability::Manual,
        recovery: Recovery::default(),
        file_mode: 0o600,
        slow_sync: Duration::from_secs(1),
        lock_timeout: LockTimeout::default(),
        check_all: false,
        storage: Arc::new(Disk),
    };
    let log = Log::<Toy>::open_with(&dir, Mode::Append, options.clone())?;
    for payload in arguments {
        log.append_tagged((), payload.as_bytes())?;
    }
    log.close()?; // syncs

    let log = Log::<Toy>::open_with(&dir, Mode::Read, options.clone())?;
    let mut cursor = log.cursor_by_offset(None, None, OnCorrupt::Raise)?;
    while let Some((offset, payload)) = cursor.next()? {
        println!("{offset} {}", String::from_utf8_lossy(payload));
    }
    let report = check_rest::<Toy>(&dir, &options, &[], |_, _| Ok(()))?;
    println!("{} records, {:?}", report.records, report.verdict);
    Ok(())
}
