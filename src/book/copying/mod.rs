//! Copies of a book: in another layout, or of the intact deeds, made aside and then put in place.

pub(super) mod aside;
pub(super) mod convert;
pub(super) mod salvage;
