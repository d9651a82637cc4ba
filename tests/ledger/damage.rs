//! A matrix of damage, checked against an oracle that knows only the byte layout: ends cut at every byte, every bit
//! flipped, lost and repeated sectors.

use deedbook::ledger::{OnCorrupt, bases};

use crate::prelude::*;
use crate::support::ledger::judge::{judge, opened};

// Promise: ledger-damage.
#[test]
fn file_cut_anywhere_sends_records_before_the_cut() {
    let bytes = file_of(&events(0..12, 70));
    for cut in 0..=bytes.len() {
        judge(&bytes[..cut], &format!("cut at {cut}"));
        if cut % 7 == 0 {
            let zeros = [&bytes[..cut], &[0; 600]].concat();
            judge(&zeros, &format!("zeros from {cut} on"));
        }
    }
}

// Promise: ledger-damage.
#[test]
fn every_single_bit_flipped_costs_one_record() {
    let mut ambiguous = 0;
    let all = events(0..14, 60);
    let bytes = file_of(&all);
    let mut edges = vec![0];
    edges.extend((1..=all.len()).map(|count| file_of(&all[..count]).len()));
    for bit in 0..8 * bytes.len() {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let hit = edges.partition_point(|&edge| edge <= bit / 8) - 1;
        let skipped = judge(&flipped, &format!("bit {bit}, record {hit}")).sent;
        let left: Vec<_> = all.iter().enumerate().filter(|(i, _)| *i != hit).collect();
        let left: Vec<_> = left.into_iter().map(|(_, payload)| payload.clone()).collect();
        // A damaged length may lead to the end of the next record, as if the payload contained the next record. Then
        // the fetch withholds the next record and keeps the file.
        let but_the_next: Vec<_> = [&left[..hit], &left[left.len().min(hit + 1)..]].concat();
        ambiguous += u32::from(skipped != left);
        assert!(skipped == left || skipped == but_the_next, "bit {bit}, record {hit}");
    }
    assert!(ambiguous < 5, "{ambiguous} flips cost two records");
    let json = format!("{{\"flips\": {}}}\n", 8 * bytes.len());
    report::write("ledger-flips", &json);
}

/// Long files, over several blocks of the scanner, with damage of every kind at random places.
// Promise: ledger-damage.
#[test]
fn lost_or_repeated_sectors_never_make_a_record() {
    let seed = report::number("DEEDBOOK_SEED", 1);
    // No record fits into a repeated sector.
    let rest = |n| (0..600).map(|i| mix(mix(n) ^ i) as u8).collect::<Vec<_>>();
    let long = |n| event(n, if n % 90 == 0 { 90_000 } else { 500 });
    let all: Vec<_> = (0..900).map(|n| [long(n), rest(n)].concat()).collect();
    let bytes = file_of(&all);
    assert!(bytes.len() > 600_000);
    for round in 0..120 {
        let mut damaged = bytes.clone();
        for hit in 0..1 + mix(seed ^ round) % 3 {
            let draw = mix(seed ^ (round << 8) ^ hit);
            let (sectors, kind) = (damaged.len() as u64 / 512, draw % 4);
            let at = 512 * (mix(draw) % sectors) as usize;
            let other = 512 * (mix(draw ^ 1) % sectors) as usize;
            match kind {
                0 => damaged[at..at + 512].fill(0),
                1 => damaged.copy_within(other..other + 512, at),
                2 => drop(damaged.drain(at..at + 512)),
                _ => damaged[at] ^= 1 << ((draw >> 60) % 8),
            }
        }
        let skipped = judge(&damaged, &format!("seed {seed}, round {round}")).sent;
        let numbers: Vec<_> = skipped.iter().map(|payload| number_of(payload)).collect();
        assert!(numbers.is_sorted(), "seed {seed}, round {round}: out of order");
        for (number, payload) in numbers.iter().zip(&skipped) {
            assert!(*payload == all[*number as usize], "seed {seed}, round {round}: {number}");
        }
        assert!(skipped.len() > 850, "seed {seed}, round {round}: {} are left", skipped.len());
    }
}

/// A torn record whose payload contains whole records: by default, the fetch never sends the inner records.
// Promise: ledger-lengths-lie.
#[test]
fn records_inside_a_torn_record_are_not_sent() {
    let inner = file_of(&events(50..53, 0));
    let outer = [&b"before"[..], &inner, b"after"].concat();
    let bytes = file_of(&[event(0, 0), event(1, 0), outer.clone()]);
    for cut in 65..bytes.len() {
        let (_, ledger) = opened(&bytes[..cut], OnCorrupt::Quarantine);
        assert_eq!(fetch_all(&ledger), [(0, events(0..2, 0))], "cut at {cut}");
    }
    let (_, ledger) = opened(&bytes, OnCorrupt::Skip);
    assert_eq!(fetch_all(&ledger)[0].1[2], outer);
}

/// One wrong bit shortened a length to end at a record inside the payload, and the fetch sent the inner records. The
/// checksum holds with the longer length, which comes first.
#[test]
fn a_shortened_length_leads_to_no_record_inside() {
    let inner = record(&[b'i'; 120]);
    let outer = [&[b'o'; 64][..], &inner].concat();
    let all = [event(0, 0), outer.clone(), event(1, 0)];
    let mut bytes = file_of(&all);
    let at = record(&all[0]).len();
    assert_eq!(bytes[at], 192);
    bytes[at] = 64;
    let skipped = judge(&bytes, "192 is 64");
    assert_eq!(skipped.sent, [event(0, 0), event(1, 0)]);
}

/// The payload of a torn record contained intact records and a damaged one. The fetch took the inner records after the
/// damage for the file's own.
#[test]
fn damage_inside_torn_record_proves_nothing_after_it() {
    let inner = [file_of(&events(50..52, 0)), vec![0xee; 30], file_of(&events(52..54, 0))].concat();
    let outer = record(&[&inner[..], b"the rest"].concat());
    let whole = file_of(&events(0..2, 0));
    let torn = [&whole[..], &outer[..8 + inner.len()]].concat();
    let skipped = judge(&torn, "torn");
    assert_eq!(skipped.sent, events(0..2, 0));
    assert!(skipped.withheld > 0 && skipped.kept);
}

/// Lengths from a hostile file: huge, zero, beyond the end, beyond the limit. A record with a length beyond the end may
/// be torn, and its payload may contain the intact records after it: `skip` sent them. Now `skip` withholds them, and
/// the whole file goes to the quarantine.
// Promise: ledger-lengths-lie.
#[test]
fn lengths_that_lie_are_damage() {
    for length in [0, 1, 23, 26, 4096, (1 << 20) + 1, u32::MAX - 8, u32::MAX] {
        let mut bytes = file_of(&events(0..5, 0));
        bytes[64..68].copy_from_slice(&length.to_le_bytes());
        let skipped = judge(&bytes, &format!("length {length}"));
        let may_be_torn = length == 4096;
        let after = if may_be_torn { Vec::new() } else { events(3..5, 0) };
        assert_eq!(skipped.sent, [events(0..2, 0), after].concat(), "length {length}");
        assert_eq!(skipped.withheld, if may_be_torn { 2 } else { 0 }, "length {length}");
        assert_eq!(skipped.kept, may_be_torn, "length {length}");
    }
}

/// The search for intact records in a hostile file ends before it becomes quadratic. A rescue gave up at the same byte,
/// and the file was removed with its last event.
#[test]
fn file_too_hard_to_search_is_quarantined() {
    let mut hard = Vec::new();
    (0..300_000).for_each(|_| hard.extend([900_000_u32.to_le_bytes(), [0xee; 4]].concat()));
    let bytes = [file_of(&events(0..2, 0)), hard, file_of(&events(2..3, 0))].concat();
    let (memory, ledger) = opened(&bytes, OnCorrupt::Skip);
    assert_eq!(send(&ledger), [(0, events(0..2, 0))]);
    let quarantined = listing(&memory, Path::new("/spool/.deedbook/quarantine"));
    assert!(quarantined.get("0-events") == Some(&bytes), "{:?}", quarantined.keys());
}

/// A record beyond the limit with a valid checksum is an event, not a torn tail: `stop` and `skip` removed the file.
// Promise: ledger-lengths-lie.
#[test]
fn record_beyond_the_limit_is_quarantined() {
    let long = vec![b'x'; (1 << 20) + 1];
    for on_corrupt in [OnCorrupt::Quarantine, OnCorrupt::Skip, OnCorrupt::Stop] {
        for after in 0..2 {
            let what = format!("{on_corrupt:?}, {after} after it");
            let rest = file_of(&events(2..2 + after, 0));
            let bytes = [file_of(&events(0..2, 0)), record(&long), rest].concat();
            let (memory, ledger) = opened(&bytes, on_corrupt);
            let fetched = ledger.fetch(None, None).unwrap().unwrap();
            let sent = if on_corrupt == OnCorrupt::Skip { 2 + after } else { 2 };
            assert_eq!(shown(&fetched), [(0, events(0..sent, 0))], "{what}");
            assert_eq!(fetched.data.as_ref().unwrap()[0].verdict(), Verdict::Corrupt, "{what}");
            ledger.remove(&fetched.removable.unwrap()).unwrap();
            let quarantined = listing(&memory, Path::new("/spool/.deedbook/quarantine"));
            assert_eq!(quarantined.get("0-events"), Some(&bytes), "{what}");
        }
    }
}

/// A rescue of the quarantine looked for the limit in the quarantine's own `.deedbook`, which nothing writes. The
/// rescue left out intact records above the usual limit.
#[test]
fn salvage_of_quarantine_uses_the_ledgers_limit() {
    let (memory, options) = memory();
    let (first, long) = (event(0, 0), vec![b'x'; (1 << 20) + 1]);
    let all = [&first[..], b"damaged", &long].map(<[u8]>::to_vec);
    let storing = options.clone().record_bytes_max(2 << 20).open(small(DIR, 4 << 20)).unwrap();
    storing.append_many(&all).unwrap();
    storing.close().unwrap();
    let file = memory.open(&Path::new(DIR).join("0-events"), Access::Write).unwrap();
    file.write_at(b"D", record(&first).len() as u64 + 8).unwrap();
    let ledger = options.open(small(DIR, 100)).unwrap();
    assert_eq!(send(&ledger), [(0, vec![first.clone()])]);
    let quarantine = Path::new(DIR).join(".deedbook/quarantine");
    assert_eq!(bases(&quarantine, &options).unwrap(), ["events"]);
    let copied = options.salvage(&quarantine, "events", "/rescued").unwrap();
    assert_eq!(copied.iter().map(|(_, report)| report.records).collect::<Vec<_>>(), [2]);
    assert_eq!(drain(&options.open(small("/rescued", 100)).unwrap()), [first, long]);
}
