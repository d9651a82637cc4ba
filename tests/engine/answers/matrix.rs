//! One matrix of damage, read in every way: bits, lost sectors, cut ends and records inside records,
//! with every kind of sidecar.
//!
//! Small logs exhaustively. `DEEDBOOK_FLIPS` and `DEEDBOOK_CUTS` say how many are tried at least.

use super::*;
use crate::support::formats::toy::TOY;
use crate::support::report;

/// The toy format has this matrix alone.
const FORMATS: [&dyn Format; 4] = [&BOOK, &SINGLE, &TINY, &TOY];

fn in_every_state(
    format: &dyn Format,
    events: &[Event],
    mut break_and_judge: impl FnMut(&Specimen<'_>),
) {
    for beside in besides(events.len()) {
        break_and_judge(&Specimen::new(format, events, beside));
    }
}

/// Small records: empty, of zeros, shorter and longer than a segment.
fn small(round: u64) -> Vec<Event> {
    let mut all = events(4, 30 + round);
    all.insert(1, (7, Vec::new()));
    all.insert(3, (8, [&[0; 20][..], &[1]].concat()));
    all.push(event_of(50 + round, 130));
    all
}

/// Another log every round, until enough was tried for all formats.
fn until(enough: u64, mut round: impl FnMut(u64, &dyn Format) -> u64) -> u64 {
    let tried = Cell::new(0);
    let mut rounds = 0;
    while tried.get() < enough {
        for format in FORMATS {
            tried.set(tried.get() + round(rounds, format));
        }
        rounds += 1;
    }
    tried.get()
}

// Promise: cut-anywhere.
#[test]
fn a_log_cut_at_every_byte() {
    let cuts = until(report::of_tier("DEEDBOOK_CUTS"), |round, format| {
        let mut tried = 0;
        in_every_state(format, &small(round), |specimen| {
            for cut in specimen.edges[0]..=specimen.space.len() {
                judge(specimen, &specimen.space[..cut], &|| format!("cut at {cut}"));
                tried += 1;
            }
        });
        tried
    });
    all_passed();
    report::write("damage-cuts", &format!("{{\"cuts\": {cuts}}}\n"));
}

// Promise: flip-middle, flip-last.
#[test]
fn every_single_bit_flipped() {
    let flips = until(report::of_tier("DEEDBOOK_FLIPS"), |round, format| {
        let mut tried = 0;
        in_every_state(format, &small(round), |specimen| {
            for bit in 8 * specimen.edges[0]..8 * specimen.space.len() {
                let mut space = specimen.space.clone();
                space[bit / 8] ^= 1 << (bit % 8);
                judge(specimen, &space, &|| format!("bit {bit} (byte {})", bit / 8));
                tried += 1;
            }
        });
        tried
    });
    all_passed();
    report::write("damage-flips", &format!("{{\"flips\": {flips}}}\n"));
}

/// Two damaged records: in the head, the payload or the end of each.
#[test]
fn one_bit_in_each_of_two_records() {
    for format in FORMATS {
        let events = events(6, 40);
        in_every_state(format, &events, |specimen| {
            let places = |i: usize| {
                let (at, end) = (specimen.edges[i], specimen.edges[i + 1]);
                let length = format.framing().length();
                [at + length.start, at + length.start + 1, at + format.framing().head(), end - 1]
            };
            for (i, j) in [(0, 1), (0, 5), (1, 2), (1, 3), (1, 5), (2, 5), (4, 5)] {
                for first in places(i) {
                    for second in places(j) {
                        let mut space = specimen.space.clone();
                        space[first] ^= 4;
                        space[second] ^= 8;
                        judge(specimen, &space, &|| format!("bytes {first} and {second}"));
                    }
                }
            }
        });
    }
    all_passed();
}

const SECTOR: usize = 512;

/// Records shorter and longer than a sector.
fn mixed() -> Vec<Event> {
    let mut all = events(14, 90);
    all.extend((0..4).map(|i| event_of(100 + i, 1500)));
    all.extend(events(4, 60));
    all
}

fn sectors(change: impl Fn(&mut [u8], usize)) {
    for format in FORMATS {
        in_every_state(format, &mixed(), |specimen| {
            for at in (0..specimen.space.len()).step_by(SECTOR) {
                let mut space = specimen.space.clone();
                let kept = space[..specimen.edges[0]].to_vec();
                change(&mut space, at);
                space[..kept.len()].copy_from_slice(&kept);
                judge(specimen, &space, &|| format!("sector {}", at / SECTOR));
            }
        });
    }
}

fn piece(bytes: &mut [u8], at: usize, sectors: usize) -> &mut [u8] {
    let end = bytes.len().min(at + sectors * SECTOR);
    &mut bytes[at.min(end)..end]
}

// Promise: missing-data, wal-torn.
#[test]
fn every_sector_and_every_two_lost_to_zeros() {
    sectors(|bytes, at| piece(bytes, at, 1).fill(0));
    sectors(|bytes, at| piece(bytes, at, 2).fill(0));
    all_passed();
}

#[test]
fn every_two_sectors_that_lie_apart_lost() {
    for apart in [2, 3, 5] {
        sectors(|bytes, at| {
            piece(bytes, at, 1).fill(0);
            piece(bytes, at + apart * SECTOR, 1).fill(0xa5);
        });
    }
    all_passed();
}

#[test]
fn readers_agree_about_swapped_or_repeated_sectors() {
    sectors(|bytes, at| {
        if at + 2 * SECTOR <= bytes.len() {
            bytes[at..at + 2 * SECTOR].rotate_left(SECTOR);
        }
    });
    sectors(|bytes, at| {
        if at + 2 * SECTOR <= bytes.len() {
            bytes.copy_within(at..at + SECTOR, at + SECTOR);
        }
    });
    all_passed();
}

// Promise: missing-data.
#[test]
fn every_sector_and_all_after_it_stale() {
    for framing in [Framing::Book, Framing::Wal] {
        let stale: Vec<_> =
            events(60, 200).iter().flat_map(|(t, b)| framing.encode(*t, b)).collect();
        for format in FORMATS.iter().filter(|format| format.framing() == framing) {
            in_every_state(*format, &mixed(), |specimen| {
                for at in (SECTOR..specimen.space.len()).step_by(SECTOR) {
                    let mut space = specimen.space.clone();
                    let end = space.len().min(stale.len());
                    if at < end {
                        space[at..end].copy_from_slice(&stale[at..end]);
                    }
                    judge(specimen, &space, &|| format!("stale from sector {}", at / SECTOR));
                }
            });
        }
    }
    all_passed();
}

#[test]
fn reserved_zeros_after_the_end_are_no_damage() {
    for format in FORMATS {
        in_every_state(format, &small(0), |specimen| {
            for zeros in [1, 7, 8, 11, 12, 24, 600] {
                let mut space = specimen.space.clone();
                space.resize(space.len() + zeros, 0);
                judge(specimen, &space, &|| format!("{zeros} zeros"));
            }
        });
    }
    all_passed();
}

/// Records around one whose payload holds records at its begin, middle and end.
fn nested(framing: Framing) -> Vec<Event> {
    let inner = |i: u64| framing.encode(7000 + i as u32, &event_of(900 + i, 30).1);
    let payload = [inner(0), inner(1), b"between".to_vec(), inner(2), inner(3), vec![9]].concat();
    let mut all = events(2, 30);
    all.push((5, payload));
    all.extend(events(2, 30));
    all
}

// Promise: record-in-record.
#[test]
fn readers_agree_about_damage_to_nested_records() {
    for format in FORMATS {
        let judge = |specimen: &Specimen<'_>, space: &[u8], what: &dyn Fn() -> String| {
            // A Book's trailers tell where a damaged deed ends, and an open mark where a torn tail begins.
            let is_cut = space.len() < specimen.space.len();
            let durable = specimen.evidence.durable;
            let tells = durable.is_some_and(|end| !is_cut || end <= specimen.edges[2]);
            if format.framing() == Framing::Book && tells {
                let answer = specimen.answer(space);
                let is_outer = answer.given().all(|piece| specimen.edges.contains(&piece.at));
                assert!(is_outer && !answer.ambiguous, "{}: {answer:?}", what());
            }
            judge(specimen, space, what);
        };
        in_every_state(format, &nested(format.framing()), |specimen| {
            let (at, end) = (specimen.edges[2], specimen.edges[3]);
            let framing = (at..at + format.framing().head()).chain(end - 12..end);
            for bit in framing.flat_map(|byte| 8 * byte..8 * byte + 8) {
                let mut space = specimen.space.clone();
                space[bit / 8] ^= 1 << (bit % 8);
                judge(specimen, &space, &|| format!("bit {bit} (byte {})", bit / 8));
            }
            for cut in at..=end {
                judge(specimen, &specimen.space[..cut], &|| format!("cut at {cut}"));
            }
            for zeros in [at..at + 4, at..at + 8, at..at + 12, end - 12..end, at..end] {
                let mut space = specimen.space.clone();
                space[zeros.clone()].fill(0);
                judge(specimen, &space, &|| format!("zeros {zeros:?}"));
            }
        });
    }
    all_passed();
}

/// The oracle against what was appended: after one flipped bit readers give all the other records,
/// but where a length leads by chance to another record, or nothing follows to prove what does.
#[test]
fn the_oracle_loses_one_record_to_one_bit() {
    for format in FORMATS {
        for beside in [Beside::Nothing, Beside::Open(7), Beside::Closed(7)] {
            let specimen = Specimen::new(format, &small(0), beside);
            let (mut all, mut more) = (0, 0);
            for bit in 8 * specimen.edges[0]..8 * specimen.space.len() {
                let mut space = specimen.space.clone();
                space[bit / 8] ^= 1 << (bit % 8);
                let (answer, expected) = (specimen.answer(&space), unharmed(&specimen, &space));
                let places = expected.iter().map(|&i| specimen.edges[i]);
                let is_all = answer.given().map(|piece| piece.at).eq(places.clone());
                let is_salvaged = places.clone().all(|at| answer.pieces.iter().any(|p| p.at == at));
                assert_eq!(expected.len(), specimen.events.len() - 1);
                assert!(is_salvaged, "{}, bit {bit}: {answer:?}", format.name());
                assert!(is_all || answer.ambiguous, "{}, bit {bit}: {answer:?}", format.name());
                all += 1;
                more += u64::from(!is_all || answer.ambiguous);
            }
            assert!(all > 1000 && more * 100 < all, "{}: {more} of {all}", format.name());
        }
    }
}
