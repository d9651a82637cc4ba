//! The bytes of events: records, pages, tags, JSON, and what the NIPs say of events. Pure, no I/O.

pub(super) mod event;
pub(super) mod format;
pub(super) mod hex;
pub(super) mod json;
pub(super) mod names;
pub(crate) mod page;
pub(super) mod policy;
pub(crate) mod record;
pub(super) mod signature;
pub(super) mod tags;
