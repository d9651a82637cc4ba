//! The lookup index: its keys and files, the events that wait for it, and the filters that ask it.

pub(super) mod covered;
mod files;
pub(super) mod filter;
mod keys;
pub(super) mod lookup;
mod made_here;
pub(super) mod pending;
pub(super) mod query;
mod table;
mod writes;
