//! The event store's own write-ahead log: its bytes, its files, what crashes and damage leave.

mod files;
mod golden;
