//! Repairing a ledger where it lies: torn ends, damage inside files, leases, crashes.

use deedbook::ledger::FileInfo;

use crate::prelude::*;

const PLAIN: Repair = Repair { force: false, dry_run: false, accept_loss: false };
const DRY: Repair = Repair { dry_run: true, ..PLAIN };
const ACCEPTING: Repair = Repair { accept_loss: true, ..PLAIN };
const FORCED: Repair = Repair { force: true, ..ACCEPTING };

fn repair(options: &Options, how: Repair) -> Result<Vec<(FileInfo, RepairReport)>> {
    options.repair(DIR, BASE, how)
}

fn bytes_of(storage: &dyn Storage, index: u32) -> Vec<u8> {
    read_file(storage, &Path::new(DIR).join(format!("{index}-{BASE}")))
}

fn is_whole(options: &Options) -> bool {
    options.verify(DIR, BASE).unwrap().iter().all(|(_, report)| report.ok())
}

#[test]
fn a_torn_end_is_saved_and_cut() {
    let bytes = file_of(&events(0..5, 60));
    for cut in 0..bytes.len() {
        let (memory, options) = memory();
        put(&memory, 0, &file_of(&events(0..2, 60)));
        put(&memory, 1, &bytes[..cut]);
        let (payloads, end) = prefix(&bytes[..cut]);
        let planned = repair(&options, DRY).unwrap();
        assert_eq!(bytes_of(&memory, 1), bytes[..cut], "cut at {cut}: a dry run changes nothing");
        let done = repair(&options, PLAIN).unwrap();
        for (report, is_done) in [(&planned[1].1, false), (&done[1].1, true)] {
            let found = (report.records, report.valid_end, report.cut_bytes, report.mended);
            let wanted = (payloads.len() as u64, end as u64, (cut - end) as u64, is_done);
            assert_eq!(found, wanted, "cut at {cut}: {report:?}");
            assert!(
                report.loss.is_none() && report.damages.is_empty() != (end < cut),
                "{report:?}"
            );
        }
        assert_eq!((done[0].1.records, done[0].1.damages.is_empty()), (2, true));
        assert_eq!(bytes_of(&memory, 1), bytes[..end], "cut at {cut}");
        assert!(is_whole(&options), "cut at {cut}");
        let saved: Vec<_> = quarantined(&memory).into_values().collect();
        let wanted = if end < cut && bytes[end..cut].iter().any(|byte| *byte != 0) { 1 } else { 0 };
        assert_eq!(saved.len(), wanted, "cut at {cut}");
        assert!(saved.iter().all(|saved| *saved == bytes[end..cut]), "cut at {cut}");
        assert!(options.contents(DIR, Some(BASE)).unwrap().quarantined().unwrap().is_empty());
    }
}

#[test]
fn an_accepted_loss_removes_damage_inside_a_file() {
    let bytes = file_of(&events(0..6, 60));
    let mut ambiguous = 0;
    for bit in 0..8 * bytes.len() {
        let (memory, options) = memory();
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        put(&memory, 3, &damaged);
        put(&memory, 4, &file_of(&events(6..8, 60)));
        let planned = repair(&options, DRY).unwrap().remove(0).1;
        let is_torn = planned.loss.is_none();
        let left = repair(&options, Repair { force: true, ..PLAIN }).unwrap().remove(0).1;
        assert_eq!(left.mended, is_torn, "bit {bit}: {left:?}");
        if !is_torn {
            assert!(
                bytes_of(&memory, 3) == damaged && quarantined(&memory).is_empty(),
                "bit {bit}"
            );
            if planned.cut_records > 0 {
                ambiguous += 1;
                refused(repair(&options, ACCEPTING), ErrorKind::Corrupt);
                assert_eq!(bytes_of(&memory, 3), damaged, "bit {bit}");
            }
            let done = repair(&options, FORCED).unwrap().remove(0).1;
            assert_eq!((done.records, done.mended), (planned.records, true), "bit {bit}");
            let kept = options.contents(DIR, Some(BASE)).unwrap().quarantined().unwrap();
            assert_eq!(Some(&kept[0]), done.saved.first(), "bit {bit}");
            assert_eq!(quarantined(&memory).get("3-events"), Some(&damaged), "bit {bit}");
        }
        assert!(is_whole(&options), "bit {bit}");
        // One record is lost, and perhaps the next record, if the damaged length reaches over it.
        let found = drain(&options.open(small(DIR, 1000)).unwrap());
        let mut lost: Vec<_> = (0..8).collect();
        lost.retain(|number| !found.iter().any(|event| number_of(event) == *number));
        assert!(
            lost.len() == 1 || lost.len() == 2 && lost[0] + 1 == lost[1],
            "bit {bit}: {lost:?}"
        );
        assert_eq!(found.len() + lost.len(), 8, "bit {bit}");
    }
    assert!(ambiguous < 8, "{ambiguous}");
}

/// The length of a damaged record reaches over whole records, which may be parts of the payload.
#[test]
fn only_force_drops_uncertain_records() {
    let (memory, options) = memory();
    let mut bytes = file_of(&events(0..5, 0));
    bytes[64..68].copy_from_slice(&4096_u32.to_le_bytes());
    put(&memory, 0, &bytes);
    let error = refused(repair(&options, ACCEPTING), ErrorKind::Corrupt);
    assert!(error.message().contains("2 intact records may lie inside the damage"), "{error}");
    assert_eq!(repair(&options, DRY).unwrap()[0].1.cut_records, 2);
    assert_eq!(bytes_of(&memory, 0), bytes);
    let done = repair(&options, FORCED).unwrap().remove(0).1;
    assert_eq!((done.records, done.cut_records), (2, 2));
    assert_eq!(bytes_of(&memory, 0), file_of(&events(0..2, 0)));
    assert_eq!(quarantined(&memory).get("0-events"), Some(&bytes));
}

#[test]
fn a_record_beyond_the_limit_is_not_damage() {
    let (memory, options) = memory();
    let bytes = [file_of(&events(0..2, 0)), record(&vec![b'x'; (1 << 20) + 1])].concat();
    put(&memory, 0, &bytes);
    refused(repair(&options, FORCED), ErrorKind::Corrupt);
    assert!(bytes_of(&memory, 0) == bytes);
}

#[test]
fn a_file_that_others_write_or_send_stays() {
    let (memory, ledger) = in_memory(100_000);
    let options = on(memory.clone());
    let mut damaged = file_of(&events(0..4, 40));
    damaged[60] ^= 1;
    put(&memory, 0, &damaged);
    let sender = options.open(small(DIR, 1000)).unwrap();
    assert!(!drain(&sender).is_empty());
    let error = refused(repair(&options, FORCED), ErrorKind::Locked);
    assert!(error.message().contains("leased"), "{error}");
    assert_eq!(bytes_of(&memory, 0), damaged);
    sender.close().unwrap();
    ledger.append(&event(9, 40)).unwrap();
    let reports = repair(&options, FORCED).unwrap();
    assert!(reports[0].1.mended && !reports[1].1.mended);
    ledger.append(&event(10, 40)).unwrap();
    let found: Vec<_> = send(&ledger).into_iter().flat_map(|(_, payloads)| payloads).collect();
    assert_eq!(found.len(), 5, "what the live writer appended is not lost");
}

/// Each crash leaves the damaged file, or the repaired file with the removed bytes in the quarantine.
#[test]
fn a_repair_that_crashes_anywhere_loses_nothing() {
    let whole = file_of(&events(0..6, 60));
    let mut inside = whole.clone();
    let at = file_of(&events(0..2, 60)).len() + 9;
    inside[at] ^= 1;
    let torn = whole[..whole.len() - 5].to_vec();
    let rest = [events(0..2, 60), events(3..6, 60)].concat();
    for (damaged, repaired) in [(inside, file_of(&rest)), (torn, file_of(&events(0..5, 60)))] {
        let disk = Sim::new();
        put(&disk, 0, &damaged);
        let file = disk.open(&Path::new(DIR).join("0-events"), Access::Write).unwrap();
        file.sync_data().unwrap();
        [DIR, "/"].iter().for_each(|dir| disk.sync_dir(Path::new(dir)).unwrap());
        let is_torn = damaged.starts_with(&repaired);
        let wanted = if is_torn { damaged[repaired.len()..].to_vec() } else { damaged.clone() };
        disk.record();
        assert!(repair(&on(disk.clone()), FORCED).unwrap()[0].1.mended);
        let mut states = 0;
        for (number, moment) in disk.recorded().into_iter().enumerate() {
            let crashes = moment.crashes();
            for seed in 0..12 {
                let choice = if seed == 0 { crashes.nth(0) } else { crashes.sample(mix(seed)) };
                let disk = crashes.build(&choice);
                let found = bytes_of(&disk, 0);
                let is_kept = quarantined(&disk).into_values().any(|kept| kept == wanted);
                let is_cut = found == repaired || (is_torn && found.starts_with(&repaired));
                let stayed = found == damaged;
                assert!(stayed || (is_cut && is_kept), "call {number}, {choice:?}");
                assert!(repair(&on(disk.clone()), FORCED).unwrap()[0].1.mended);
                // Zeros after the last record are no damage, and stay.
                let now = bytes_of(&disk, 0);
                assert!(now.starts_with(&repaired), "call {number}, {choice:?}");
                let is_cut = now[repaired.len()..].iter().all(|byte| *byte == 0);
                assert!(is_cut, "call {number}, {choice:?}");
                assert!(is_whole(&on(disk)), "call {number}, {choice:?}");
                states += 1;
            }
        }
        assert!(states > 100, "{states} states");
    }
}
