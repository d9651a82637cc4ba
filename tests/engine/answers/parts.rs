//! A check reads shared parts once, and reads foreign parts again.

use deedbook::book::Options;

use super::*;
use crate::support::judge::parts::share;

/// The report of a book, and how many bytes the check read.
fn verify(at: &At, intact: &[Split]) -> (VerifyReport, u64) {
    let options = Options::new().storage(at.storage.clone());
    let mut read = 0;
    let report = options.verify_rest(&at.path, intact, |done, all| {
        assert!(done <= all, "{done} of {all}");
        read = all;
        Ok(())
    });
    (report.unwrap(), read)
}

fn book() -> (At, Vec<Split>) {
    let specimen = Specimen::new(LARGE[0], &plain(24, 19_000), Beside::Closed(24));
    let at = At::memory(&specimen.files.restore(), specimen.path());
    let parts = LARGE[0].read(&at).unwrap().parts(1).unwrap();
    assert!(parts.len() > 4, "{parts:?}");
    (at, parts)
}

#[test]
fn verify_reads_only_parts_not_known_intact() {
    for format in LARGE {
        let specimen = Specimen::new(format, &plain(24, 19_000), Beside::Closed(24));
        let at = At::memory(&specimen.files.restore(), specimen.path());
        let parts = format.read(&at).unwrap().parts(1).unwrap();
        let mut records = 0;
        for part in &parts {
            let report = format.check_part(part, &at, MANUAL).unwrap();
            assert!(report.ok() && report.damages.is_empty(), "{part:?}: {report:?}");
            assert_eq!(Some(report.records), part.records);
            assert_eq!((report.bytes, report.valid_end), (part.end - part.offset, part.end));
            records += report.records;
        }
        assert_eq!(records, 24);
        let alone = format.verify_rest(&at, MANUAL, &[]).unwrap();
        assert_eq!(share(format, &at, MANUAL, &parts).unwrap(), alone);
    }
    let (at, parts) = book();
    let (alone, all) = verify(&at, &[]);
    for known in 0..parts.len() {
        let (report, read) = verify(&at, &parts[..known]);
        let rest: u64 = parts[known..].iter().map(|part| part.end - part.offset).sum();
        assert_eq!((report, read), (alone.clone(), rest), "without the first {known} parts");
    }
    // With nothing left to read, the check reads the last part: it has the last record.
    let (report, read) = verify(&at, &parts);
    let last = parts.last().unwrap();
    assert_eq!((report, read), (alone, last.end - last.offset));
    assert_eq!(all, last.end - parts[0].offset);
}

/// Damage within a log moved parts, or the numbers of records, or the log itself: a check believes none of them.
#[test]
fn verify_rereads_parts_outside_the_logs_beginning() {
    let (at, parts) = book();
    let (alone, all) = verify(&at, &[]);
    let other = {
        let specimen = Specimen::new(LARGE[0], &plain(24, 19_001), Beside::Closed(24));
        let at = At::memory(&specimen.files.restore(), specimen.path());
        LARGE[0].read(&at).unwrap().parts(1 << 40).unwrap().remove(0).identity
    };
    assert!(other.is_some());
    let last = parts.len() - 1;
    let beyond = Split { end: parts[last].end + 8, ..parts[last].clone() };
    let wrong: [(&str, Vec<Split>); 6] = [
        ("not from the first record on", parts[1..].to_vec()),
        ("one is missing", [&parts[..1], &parts[2..3]].concat()),
        ("twice the same", [&parts[..1], &parts[..1]].concat()),
        ("not counted", vec![Split { records: None, ..parts[0].clone() }]),
        ("of another log", vec![Split { identity: other, ..parts[0].clone() }]),
        ("beyond the end", [&parts[..last], &[beyond]].concat()),
    ];
    for (what, intact) in wrong {
        assert_eq!(verify(&at, &intact), (alone.clone(), all), "{what}");
    }
}

/// A part of another log is refused, and missing bytes of a part are damage.
#[test]
fn a_part_is_checked_against_its_own_log() {
    let (_, parts) = book();
    let (other, of_other) = {
        let specimen = Specimen::new(LARGE[0], &plain(9, 19_001), Beside::Closed(9));
        let at = At::memory(&specimen.files.restore(), specimen.path());
        let parts = LARGE[0].read(&at).unwrap().parts(1).unwrap();
        (at, parts)
    };
    let error = LARGE[0].check_part(&parts[0], &other, MANUAL).unwrap_err();
    assert!(error.to_string().contains("another log than the one that was split"), "{error}");
    let stranger = Split { identity: None, ..parts[4].clone() };
    let report = LARGE[0].check_part(&stranger, &other, MANUAL).unwrap();
    assert!(!report.ok() && !report.damages.is_empty(), "{report:?}");
    // Fewer records than counted, none of them damaged.
    let more = of_other[0].records.map(|records| records + 1);
    let miscounted = Split { records: more, ..of_other[0].clone() };
    let report = LARGE[0].check_part(&miscounted, &other, MANUAL).unwrap();
    assert!(!report.ok() && report.damages.is_empty(), "{report:?}");
    // A part with an unknown number of records, one of them damaged.
    let specimen = Specimen::new(LARGE[0], &plain(24, 19_000), Beside::Closed(24));
    let uncounted = Split { records: None, unacknowledged_from: None, ..parts[0].clone() };
    let check = |change: &dyn Fn(&mut [u8])| {
        let mut space = specimen.space.clone();
        change(&mut space);
        let damaged = At::memory(&specimen.broken(&space).restore(), specimen.path());
        LARGE[0].check_part(&uncounted, &damaged, MANUAL).unwrap()
    };
    assert!(check(&|_| ()).ok());
    let report = check(&|space| space[specimen.edges[1] + 100] ^= 1);
    assert!(!report.ok() && report.valid_end == uncounted.end, "{report:?}");
    assert_eq!((report.damages.len(), Some(report.records + 1)), (1, parts[0].records));
    // Zeros at the part's end are no separate damage.
    let report = check(&|space| space[specimen.edges[2]..uncounted.end as usize].fill(0));
    assert!(!report.ok() && report.damages.is_empty(), "{report:?}");
    assert_eq!((report.records, report.valid_end), (2, specimen.edges[2] as u64));
    // A part that ends within a record ends with damage.
    let within = Split { end: of_other[0].end - 1, records: None, ..of_other[0].clone() };
    assert!(!LARGE[0].check_part(&within, &other, MANUAL).unwrap().ok());
}

#[test]
fn a_progress_error_ends_verify() {
    let (at, parts) = book();
    let options = Options::new().storage(at.storage.clone());
    let refuse = |_, _| {
        let message = "enough".to_string();
        Err(deedbook::Error::new(deedbook::ErrorKind::InvalidArgument, message))
    };
    let error = options.verify_part(&parts[0], refuse).unwrap_err();
    assert_eq!(error.message(), "enough");
    let error = options.verify_rest(&at.path, &parts[..2], refuse).unwrap_err();
    assert_eq!(error.message(), "enough");
}
