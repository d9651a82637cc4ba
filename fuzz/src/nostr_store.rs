//! What the tests of the event store go by: histories, and what is known of their events.

#![allow(dead_code)]

#[cfg(feature = "arrow")]
#[path = "../../tests/nostr_store/columns.rs"]
mod columns;
#[path = "../../tests/nostr_store/judge.rs"]
pub mod judge;
#[path = "../../tests/nostr_store/known.rs"]
pub mod known;
#[path = "../../tests/nostr_store/support.rs"]
pub mod support;
#[path = "../../tests/nostr_store/ways.rs"]
mod ways;
#[path = "../../tests/nostr_store/world.rs"]
pub mod world;
