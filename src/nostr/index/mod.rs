//! The lookup index: its keys and files, the events that wait for it, and the filters that ask it.

pub(super) mod covered;
pub(super) mod files;
pub(super) mod filter;
mod keys;
pub(super) mod lookup;
pub(super) mod moved;
pub(super) mod pending;
pub(super) mod query;
mod table;
mod writes;
