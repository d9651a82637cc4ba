//! The bytes of the event store: golden files, properties, damage, JSON.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::panic)]

mod damage;
mod files;
mod golden;
mod json;
mod properties;
#[path = "../ledger/sha256.rs"]
mod sha256;
mod support;
