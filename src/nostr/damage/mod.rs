//! The files of a store held against each other before anything changes, and the cut of a damaged log.

pub(super) mod belonging;
pub(super) mod checked_log;
pub(super) mod mend_wal;
pub(super) mod rescue;
pub(super) mod seen;
pub(super) mod spec;
pub(super) mod vouching;
pub(super) mod witnesses;
