//! Each log format as the suites of damaged and of live logs see it.

pub mod book;
pub mod framing;
#[cfg(feature = "nostr")]
pub mod nostr;
pub mod oracle;
pub mod specimen;
pub mod subject;
pub mod toy;
pub mod views;
pub mod wal;

use std::ops::Bound;

pub fn range<T>(from: Option<T>, to: Option<T>) -> (Bound<T>, Bound<T>) {
    (from.map_or(Bound::Unbounded, Bound::Included), to.map_or(Bound::Unbounded, Bound::Excluded))
}
