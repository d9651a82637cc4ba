//! Histories of event stores, and an oracle of their events.

#![allow(dead_code)]

#[cfg(feature = "arrow")]
pub mod columns;
pub mod events;
pub mod judge;
pub mod known;
pub mod nostr_keys;
pub mod ways;
pub mod world;
