//! The files that jobs stage and commit.

pub(super) mod stage;
pub(super) mod transact;
