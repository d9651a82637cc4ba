//! Torn records that hold whole ones, and ends below the mark.

use super::*;
use crate::support::formats::views::ways;

for_every_subject! {
    /// A torn record above the mark ends the log: no reader gives the whole records in it, also not at the start of a
    /// segment or after damage below the mark.
    records_inside_a_torn_record_never_surface,
    /// The checksum of the first record ties the mark to the log. A log that began with a batch forgot the checksum.
    /// The engine took its mark for another log's, and no longer reported a loss below it.
    a_loss_below_the_mark_is_always_reported,
    /// A check reported "lost acknowledged" only for missing ends, not for damage in the middle.
    damage_below_the_mark_is_a_loss,
}

/// A payload that, appended at `end`, has whole records at the next border of a file.
fn deceiving(subject: &Subject, end: u64, shift: usize) -> Vec<u8> {
    let at = (end + subject.format.head_bytes()) as usize;
    let border = subject.border_bytes as usize;
    let mut payload = vec![1; at.next_multiple_of(border) - at + shift];
    payload.extend(subject.nested().repeat(4));
    payload
}

/// The payloads of all readable records, damage passed over. Every way to read agrees; the event store's log has no steps.
fn read_past_damage(subject: &Subject, disk: &Sim) -> Vec<Vec<u8>> {
    let payloads = |walk: Walk| walk.records.into_iter().map(|r| r.bytes).collect::<Vec<_>>();
    let has_steps = subject.read(disk).unwrap().bookmark(None).is_ok();
    let all = ways(subject.looks, &subject.at(Arc::new(disk.clone()))).into_iter();
    let all: Vec<_> = all.filter(|(way, _)| has_steps || !way.contains("step")).collect();
    let first = subject.read(disk).unwrap().forward(None, None, true).all().unwrap();
    let first: Vec<_> = first.into_iter().map(|record| record.bytes).collect();
    for (way, walk) in all {
        assert!(walk.error.is_none(), "{}, {way}: {:?}", subject.name, walk.error);
        assert!(payloads(walk) == first, "{}, {way}", subject.name);
    }
    first
}

// Promise: wal-record-in-record.
fn records_inside_a_torn_record_never_surface(subject: &Subject) {
    let disk = Sim::new();
    let log = subject.open(&disk, MANUAL).unwrap();
    let acknowledged: Vec<Vec<u8>> = (1..5).map(|n| vec![n; 20]).collect();
    for bytes in &acknowledged {
        log.append(1, bytes).unwrap();
    }
    log.sync().unwrap();
    let end = log.end().unwrap();
    let last = last_offset(subject, &log.read_all().unwrap(), end);
    let payload = deceiving(subject, end, 0);
    log.append(2, &payload).unwrap();
    let mut torn = 0;
    for after in states(&disk, 200) {
        damage(subject, &after, subject.telling_byte(last, end));
        let got = read_past_damage(subject, &after);
        assert_eq!(got[..3], acknowledged[..3]);
        torn += u64::from(got.len() == 3);
        assert!(got.len() == 3 || got[3..] == [payload.clone()], "{} records", got.len());
    }
    assert!(torn > 0);
}

fn a_loss_below_the_mark_is_always_reported(subject: &Subject) {
    let record = |n: u8| (u32::from(n), vec![n; 100]);
    for first in [1, 2, 3] {
        for closed in [true, false] {
            let disk = Sim::new();
            let log = subject.open(&disk, ALWAYS).unwrap();
            let batch: Vec<_> = (0..first).map(record).collect();
            log.append_all(&batch).unwrap();
            log.append_all(&[record(8)]).unwrap();
            log.append_all(&[record(9)]).unwrap();
            let (records, end) = (log.read_all().unwrap(), log.end().unwrap());
            if closed {
                log.close().unwrap();
            }
            for gone in 1..records.len() {
                let disk = disk.kill();
                let mut at = end;
                for count in 0..gone {
                    at = last_offset(subject, &records[..records.len() - count], at);
                }
                cut(subject, &disk, at);
                let checked = subject.check(&disk).unwrap();
                assert!(checked.lost_acknowledged, "{gone} of {}: {checked:?}", records.len());
                let refused = subject.open(&disk, MANUAL).err().map(|error| error.kind());
                assert_eq!(refused, Some(ErrorKind::LostRecords), "{gone} of {}", records.len());
            }
        }
    }
}

fn damage_below_the_mark_is_a_loss(subject: &Subject) {
    let disk = Sim::new();
    let log = subject.open(&disk, ALWAYS).unwrap();
    let mut offsets = Vec::new();
    for n in 1..6u8 {
        let offset = log.end().unwrap();
        log.append(0, &[n; 60]).unwrap();
        offsets.push((offset, log.end().unwrap()));
    }
    for closed in [false, true] {
        if closed {
            log.close().unwrap();
        }
        for (number, &(offset, end)) in offsets.iter().enumerate() {
            let disk = disk.kill();
            damage(subject, &disk, subject.telling_byte(offset, end));
            let checked = subject.check(&disk).unwrap();
            assert!(checked.lost_acknowledged, "record {number}, closed: {closed}: {checked:?}");
            assert_eq!(checked.records, 4, "record {number}, closed: {closed}");
        }
    }
}
