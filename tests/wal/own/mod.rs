//! What only a write-ahead log has, on the simulated disk: records dropped at both ends, segments, a
//! head marker, consumers.

mod changed;
mod sync;
mod truncation;
