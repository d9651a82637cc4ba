//! The layout of ledgers, written down once more, and an oracle of their events.

#![allow(dead_code)]

pub mod judge;
pub mod known;
pub mod oracle;
pub mod spool;
