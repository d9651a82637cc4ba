//! The life of an event, from an append to a server that takes JSON:
//!
//! ```sh
//! cargo run --example spool -- DIR URL <events.jsonl
//! ```
//!
//! Each line is appended; then what waits is sent, file by file, and removed once it arrived. Killed
//! at any moment and started again, it loses no event; a batch may arrive twice.

use std::error::Error;

use deedbook::ledger::{LedgerConfig, LedgerStore, TransientDB};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(dir), Some(url)) = (arguments.next(), arguments.next()) else {
        return Err("usage: spool DIR URL <events.jsonl".into());
    };
    let config = LedgerConfig {
        header: Box::new(|| b"{\"batch\":[".to_vec()),
        footer: Box::new(|| b"]}".to_vec()),
        separator: b",".to_vec(),
        ..LedgerConfig::lines(dir, "events")
    };
    let db = TransientDB::new(LedgerStore::new(config)?);
    for event in std::io::stdin().lines() {
        db.append(event?)?;
    }
    while let Some(result) = db.fetch(None, None)? {
        let (readers, removable) =
            (result.data.unwrap_or_default(), result.removable.unwrap_or_default());
        for (reader, sent) in readers.into_iter().zip(removable) {
            ureq::post(&url)
                .header("Content-Type", "application/json")
                .header("Content-Length", reader.content_length().to_string())
                .send(ureq::SendBody::from_owned_reader(reader))?;
            db.remove(&[sent])?;
        }
    }
    Ok(())
}
