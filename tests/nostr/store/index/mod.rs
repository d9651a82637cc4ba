//! The index of a store: a query finds by it the same events as a scan.

mod foreign_index;
mod reader_index;
mod stale_index;
mod stories;
