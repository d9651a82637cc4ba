//! The class `EventStore` and its events.

pub mod arguments;
pub mod columns;
pub mod event;
pub mod files;
pub mod iterator;
pub mod lines;
pub mod reports;
pub mod store;
