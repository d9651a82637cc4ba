//! The fuzz targets without libFuzzer: `tests/engine/fuzz_corpus.rs` includes this module by path and replays seeds and
//! crashers with an ordinary compiler.
//!
//! The input is not just the bytes of a log, because a mutation would hardly ever get past a checksum. The input is a
//! program for [`kit::image`], which writes intact deeds, raw bytes and damage in any order.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::panic, clippy::print_stdout)]

pub mod consumers;
pub mod cut;
mod fenced;
pub mod history;
pub mod index_open;
pub mod intent;
pub mod kit;
pub mod ledger_open;
pub mod ledger_operations;
pub mod lmdb_open;
pub mod mark;
pub mod nostr_import;
pub mod nostr_json;
pub mod nostr_operations;
pub mod nostr_pages;
pub mod nostr_tags;
pub mod nostr_wal;
pub mod open_on_bytes;
pub mod operations;
pub mod parse;
pub mod transactions;
pub mod views;
pub mod wal_open;
pub mod wal_operations;

// Makes a copied index count as made at its place.
#[path = "../../tests/support/common/index_files.rs"]
mod index_files;

// A second description of an event store's layout.
#[path = "../../tests/support/nostr_layout.rs"]
#[allow(dead_code, clippy::duplicate_mod)]
mod nostr_layout;

#[path = "../../tests/support/ledger/mod.rs"]
mod ledger;
#[path = "../../tests/support/mix.rs"]
mod mix;
#[path = "../../tests/support/store/mod.rs"]
mod nostr_store;
#[path = "../../tests/support/plain.rs"]
#[allow(dead_code)]
mod plain;
#[path = "../../tests/support/common/skip.rs"]
#[allow(dead_code)]
mod skip;

/// A target's body: panics for a finding.
pub type Body = fn(&[u8]);

/// Every target by name.
pub const TARGETS: [(&str, Body); 20] = [
    ("parse", parse::run),
    ("open_on_bytes", open_on_bytes::run),
    ("operations", operations::run),
    ("mark", mark::run),
    ("intent", intent::run),
    ("consumers", consumers::run),
    ("transactions", transactions::run),
    ("cut", cut::run),
    ("wal_open", wal_open::run),
    ("wal_operations", wal_operations::run),
    ("ledger_open", ledger_open::run),
    ("ledger_operations", ledger_operations::run),
    ("lmdb_open", lmdb_open::run),
    ("index_open", index_open::run),
    ("nostr_pages", nostr_pages::run),
    ("nostr_tags", nostr_tags::run),
    ("nostr_json", nostr_json::run),
    ("nostr_import", nostr_import::run),
    ("nostr_wal", nostr_wal::run),
    ("nostr_operations", nostr_operations::run),
];
