//! A relay on loopback over an event store, until Ctrl+C.
//!
//!     relay DIRECTORY [PORT] [always|default|lmdb]
//!
//! The last word chooses the durability, or nostr-lmdb in place of the event store, to compare.

use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;

use deedbook::Durability;
use deedbook::nostr::Options;
use deedbook_nostr::Database;
use nostr_database::NostrDatabase;
use nostr_lmdb::NostrLMDB;
use nostr_relay_builder::builder::RateLimit;
use nostr_relay_builder::{LocalRelay, RelayBuilder};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let directory = args.next().ok_or("usage: relay DIRECTORY [PORT] [always|default|lmdb]")?;
    let port: u16 = args.next().as_deref().unwrap_or("0").parse()?;
    let options = Options::new();
    let database: Arc<dyn NostrDatabase> = match args.next().as_deref().unwrap_or("always") {
        "always" => {
            Arc::new(Database::open_with(directory, &options.durability(Durability::Always))?)
        }
        "default" => Arc::new(Database::open_with(directory, &options)?),
        "lmdb" => Arc::new(NostrLMDB::open(directory)?),
        other => return Err(format!("{other}: always, default or lmdb needed").into()),
    };
    // The limits of nostr-relay-builder are for the sessions of people.
    let limit = RateLimit { max_reqs: 500, notes_per_minute: u32::MAX };
    let mut builder = RelayBuilder::default().database(database).rate_limit(limit);
    if port != 0 {
        builder = builder.port(port);
    }
    let relay = LocalRelay::new(builder);
    relay.run().await?;
    writeln!(io::stdout(), "{}", relay.url().await)?;
    tokio::signal::ctrl_c().await?;
    relay.shutdown();
    Ok(())
}
