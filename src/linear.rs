//! A test of every format: the time to read a damaged log grows with its size, and not with the square.

use crate::book::{Codec as Deeds, Layout};
use crate::ledger::codec::Codec as Lines;
use crate::log::is_linear;
use crate::wal::codec::Codec as Entries;

/// Every second record of a log of 1.6 MB had a flipped bit: a check took more than a minute, and a
/// ledger's `fetch` over two. After each damaged record the walk went on to the end of the log.
#[test]
fn many_damaged_records_cost_a_few_reads() {
    is_linear(Deeds::new(Layout::Packed, 1 << 32));
    is_linear(Deeds::new(Layout::Padded, 1 << 32));
    is_linear(Entries::new(64 << 20));
    is_linear(Lines::new(1 << 20));
}
