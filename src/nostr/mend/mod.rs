//! Verifying, repairing and salvaging a store.

pub(super) mod check;
pub(super) mod check_log;
pub(super) mod repair;
pub(super) mod salvage;
mod verbs;
