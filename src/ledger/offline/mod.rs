//! A ledger without a store: list its files, read them, verify and salvage them. Nothing is changed.

pub(super) mod check;
pub(super) mod contents;
pub(super) mod files;
