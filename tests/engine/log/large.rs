//! Logs that are longer than the blocks, batches and chains that the code counts with.

use super::*;

/// A salvage copies in batches of 4 MiB.
#[test]
fn a_salvage_in_batches_copies_every_record_once() {
    for format in with_sums() {
        let (specimen, _, at) =
            broken(format, &plain(7_000, 1_500), Beside::Nothing, |specimen, space| {
                for i in [10, 3_000] {
                    space[specimen.edges[i] + format.framing().head() + 9] ^= 1;
                }
            });
        salvages(&specimen, &at, &all_but(7_000, &[10, 3_000]));
    }
}

/// The search for the next record tries the first half of a block of 16 KiB, then of blocks twice as long each. It
/// passes over no byte at the end of a half.
#[test]
fn the_search_finds_records_at_any_block_end() {
    for format in with_sums() {
        let (head, around) = (format.framing().head(), format.framing().around());
        for tried in [8i64 << 10, 24 << 10, 504 << 10] {
            for shift in -12..=4 {
                // From the byte after the damage's begin so many tried bytes to the next record.
                let whole = (tried + 1 + shift) as usize;
                let mut events = plain(4, 30);
                events[1].1 = vec![0xff; whole - around];
                // More than the two blocks that are read at a time.
                events[3].1 = vec![0xff; 1 << 20];
                let (specimen, _, at) =
                    broken(format, &events, Beside::Nothing, |specimen, space| {
                        let at = specimen.edges[1];
                        space[at..at + head].fill(0xff);
                        space[specimen.edges[2] - 12..specimen.edges[2]].fill(0xff);
                    });
                all_give(&specimen, &at, &[0, 2, 3]);
            }
        }
    }
}
