//! The test programs share this library.

#![allow(dead_code)]

pub mod around;
pub mod common;
pub mod crashes;
pub mod formats;
#[macro_use]
pub mod harness;
pub mod judge;
pub mod ledger;
pub mod mix;
pub mod needed;
pub mod nostr_layout;
pub mod plain;
#[allow(unused_imports)] // not in every program
pub mod prelude;
pub mod report;
pub mod store;
pub mod texts;
#[path = "../../examples/rust/toy.rs"]
pub mod toy;
pub mod watch;

#[allow(unused_imports)] // not in every program
pub use common::skip;
