//! A ledger without a store: list its files, read them, verify them, copy intact records. Changes
//! nothing there.

pub(super) mod back;
pub(super) mod check;
pub(super) mod contents;
pub(super) mod files;
pub(super) mod follow;
