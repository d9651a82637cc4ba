//! A ledger without a store: list its files, read them, verify them, copy what is intact. Nothing in
//! it is changed.

pub(super) mod check;
pub(super) mod contents;
pub(super) mod files;
