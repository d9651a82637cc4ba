//! The ends of a range, as the engine takes them.

use std::ops::{Bound, RangeBounds};

/// The first number of a range, and the number after its last one; `None` where the range has no such end. A range up
/// to the highest number has no end either.
pub fn ends<T>(
    range: impl RangeBounds<T>,
    number: impl Fn(&T) -> u64,
) -> (Option<u64>, Option<u64>) {
    let first = match range.start_bound() {
        Bound::Included(first) => Some(number(first)),
        Bound::Excluded(before) => Some(number(before).saturating_add(1)),
        Bound::Unbounded => None,
    };
    let stop = match range.end_bound() {
        Bound::Included(last) => number(last).checked_add(1),
        Bound::Excluded(stop) => Some(number(stop)),
        Bound::Unbounded => None,
    };
    (first, stop)
}
