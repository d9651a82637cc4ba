//! The ground of all other code: threads and locks, checksums, lines for the log, parts of slices.

#[macro_use]
pub(crate) mod seeded;

pub(crate) mod background;
pub(crate) mod checksum;
pub(crate) mod interrupt;
pub(crate) mod lines;
pub(crate) mod locks;
pub(crate) mod range;
pub(crate) mod setters;
pub(crate) mod slice;
