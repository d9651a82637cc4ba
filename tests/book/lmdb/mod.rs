//! Urbit's event logs in LMDB: what its own code wrote is read, brought to books, and back.

#![cfg(unix)]
#![allow(unsafe_code, clippy::undocumented_unsafe_blocks)]

mod back;
mod hostile;
mod migrate;
mod pier_meta;
mod resume;
mod source;
mod support;
