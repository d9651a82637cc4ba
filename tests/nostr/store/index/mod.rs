//! The index of a store: what a query finds by it is what a scan finds.

mod foreign_index;
mod stale_index;
mod stories;
