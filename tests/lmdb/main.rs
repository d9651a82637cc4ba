//! Urbit's event logs in LMDB: what its own code wrote is read, brought to books, and back.

#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(unsafe_code, clippy::undocumented_unsafe_blocks)]

#[path = "../common/flips.rs"]
mod flips;
#[path = "../common/lmdb_pages.rs"]
mod lmdb_pages;
#[path = "../common/watched.rs"]
mod watched;

mod back;
mod hostile;
mod migrate;
mod pier_meta;
mod resume;
mod source;
mod support;
