//! Urbit's event logs in LMDB: the tests read the logs of Urbit's own code, migrate them to books, and export them.

#![cfg(unix)]
#![allow(unsafe_code, clippy::undocumented_unsafe_blocks)]

mod back;
mod migrate;
mod pier_meta;
mod resume;
mod source;
mod support;
