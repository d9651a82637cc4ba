//! What the tests of ledgers go by: the layout once more, and what is known of events.

#![allow(dead_code)]

pub mod judge;
pub mod known;
pub mod oracle;
pub mod spool;
