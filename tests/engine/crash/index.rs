//! Logs long enough to close blocks of the index. Short histories leave the index empty, and so
//! never test a wrong index.

use super::*;

for_every_subject! {
    /// A repair, or an opening that cuts, cuts below blocks of the index. Leftover entries named
    /// borders of removed records, and new records at those places could not be read by number;
    /// also if the writer dies before its first sync, and leaves the old index.
    a_repair_truncates_the_index_with_the_log,
    /// The index of a cut log, without a mark to vouch for it: the entries name removed records.
    an_index_without_a_mark_is_not_believed,
}

/// Whether blocks of the index would take thousands of segments.
fn is_too_small(subject: &Subject) -> bool {
    subject.border_bytes < 512
}

/// A closed log. Each record, or every second record, closes a block of the index.
fn blocks(subject: &Subject, sizes: &[usize]) -> (Sim, Vec<Record>, Vec<u64>) {
    let disk = Sim::new();
    let log = subject.open(&disk, MANUAL).unwrap();
    let mut offsets = Vec::new();
    for (n, size) in sizes.iter().enumerate() {
        let end = log.end().unwrap();
        log.append(n as u32, &vec![n as u8 + 1; *size]).unwrap();
        offsets.push(end);
        if n % 2 == 1 {
            log.sync().unwrap();
        }
    }
    let records = log.read_all().unwrap();
    views::check_all(subject, &*log, &records).unwrap();
    log.close().unwrap();
    (disk, records, offsets)
}

const SIZES: [usize; 8] = [30_000, 40_000, 5_000, 70_000, 200, 66_000, 33_000, 90_000];

fn append(log: &dyn Log, n: u8, size: usize) {
    log.append(u32::from(n), &vec![n; size]).unwrap();
}

fn a_repair_truncates_the_index_with_the_log(subject: &Subject) {
    if is_too_small(subject) {
        return;
    }
    for (damaged, at_once) in [(1, true), (1, false), (3, true), (3, false), (6, true)] {
        let (disk, records, offsets) = blocks(subject, &SIZES);
        let index = subject.sidecar().join("index");
        let old_index = disk.open(&index, Access::Read).map(|_| read_file(&disk, &index));
        let log = match at_once {
            // The end is lost, and the engine opens the log anyway.
            true => {
                cut(subject, &disk, offsets[damaged] + 100);
                subject.open(&disk, How { recovery: Recovery::Spec, ..MANUAL }).unwrap()
            }
            false => {
                let at = subject.telling_byte(offsets[damaged], offsets[damaged + 1]);
                damage(subject, &disk, at);
                subject.repair(&disk).unwrap();
                subject.open(&disk, ALWAYS).unwrap()
            }
        };
        let mut expected = records[..damaged].to_vec();
        assert_eq!(log.read_all().unwrap(), expected);
        views::check_all(subject, &*log, &expected).unwrap();
        // Writes over the old blocks, with records that end elsewhere.
        for n in 0..12 {
            append(&*log, 100 + n, 23_456);
            expected = log.read_all().unwrap();
            assert_eq!(expected.len(), damaged + usize::from(n) + 1);
            views::check_all(subject, &*log, &expected).unwrap();
        }
        if let (true, false, Ok(old_index)) = (at_once, subject.counts_records, old_index) {
            let died = disk.kill();
            write_file(&died, &index, &old_index);
            subject.open(&died, MANUAL).unwrap().close().unwrap();
            views::check_all(subject, &*reader(subject, &died), &expected).unwrap();
        }
        log.close().unwrap();
        for log in [subject.open(&disk, ALWAYS).unwrap(), reader(subject, &disk)] {
            assert_eq!(log.read_all().unwrap(), expected);
            views::check_all(subject, &*log, &expected).unwrap();
        }
    }
}

fn reader(subject: &Subject, disk: &Sim) -> Box<dyn Log> {
    subject.read(disk).unwrap()
}

fn an_index_without_a_mark_is_not_believed(subject: &Subject) {
    if is_too_small(subject) {
        return;
    }
    let (disk, records, offsets) = blocks(subject, &SIZES);
    for kept in [1, 2, 4, 7] {
        let disk = disk.kill();
        disk.remove(&subject.sidecar().join("mark")).unwrap();
        cut(subject, &disk, offsets[kept]);
        if subject.counts_records {
            match subject.open(&disk, ALWAYS).and_then(|log| log.read_all()) {
                Ok(found) => assert!(found.len() <= kept && found == records[..found.len()]),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}"),
            }
            continue;
        }
        let log = subject.open(&disk, ALWAYS).unwrap();
        views::check_all(subject, &*log, &records[..kept]).unwrap();
        append(&*log, 77, 100_000);
        append(&*log, 78, 1_000);
        let expected = log.read_all().unwrap();
        assert_eq!(expected.len(), kept + 2);
        views::check_all(subject, &*log, &expected).unwrap();
        log.close().unwrap();
        views::check_all(subject, &*reader(subject, &disk), &expected).unwrap();
    }
}
