//! Clients that other people wrote, on a relay of `nostr-relay-builder` over an event store.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::mutable_key_type)] // Events compare by their fixed parts.

mod go;
mod process;
mod sdk;
#[path = "../../../tests/support/common/skip.rs"]
mod skip;
