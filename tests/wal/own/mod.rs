//! Features only of the write-ahead log, on the simulated disk: dropped prefixes, cut ends, segments, a head marker,
//! consumers.

mod changed;
mod sync;
mod truncation;

use super::*;
