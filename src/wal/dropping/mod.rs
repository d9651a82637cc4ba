//! Dropping records: truncations, retention, the consumers that forbid it, and the hook that gets
//! a segment first.

pub(super) mod consumers;
pub(super) mod cut;
pub(super) mod retain;
pub(super) mod truncate;
