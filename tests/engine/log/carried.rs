//! The sidecar files that a salvage copies, and how a salvage keeps numbers. Tests open with their story.

use deedbook::wal::{Layout, Options};

use crate::support::prelude::*;

const LAYOUTS: [Layout; 2] = [Layout::Single, Layout::Segmented { segment_bytes: 100 }];

fn ten(path: &Path, layout: Layout) -> (Wal, Vec<Lsn>) {
    let wal = Options::new().layout(layout).open(path, Mode::Create).unwrap();
    let lsns = (0..10).map(|n| wal.append(&[n; 50]).unwrap()).collect();
    wal.sync().unwrap();
    (wal, lsns)
}

fn damage(path: &Path, layout: Layout, at: u64) {
    let (file, at) = match layout {
        Layout::Segmented { segment_bytes } => {
            (path.join(segment_name(at / segment_bytes)), at % segment_bytes)
        }
        _ => (path.to_path_buf(), at),
    };
    let mut bytes = fs::read(&file).unwrap();
    bytes[at as usize] ^= 1;
    fs::write(file, bytes).unwrap();
}

fn sidecar(path: &Path, layout: Layout) -> PathBuf {
    match layout {
        Layout::Single => path.with_file_name(".deedbook").join(path.file_name().unwrap()),
        _ => path.join(".deedbook"),
    }
}

fn salvaged(from: &Path, to: &Path) -> (SalvageReport, Wal) {
    let report = Options::new().salvage(from, to).unwrap();
    (report, Wal::append_to(to).unwrap())
}

/// A newcomer salvaged a log with a consumer. In the copy, records after the gap have other LSNs,
/// and `wal.consumers()["mail"]` raised KeyError.
#[test]
fn consumers_go_with_their_records() {
    for layout in LAYOUTS {
        let dir = tempfile::tempdir().unwrap();
        let (path, to) = (dir.path().join("log"), dir.path().join("copy"));
        let (wal, lsns) = ten(&path, layout);
        for (name, at) in [("before", 2), ("gap", 4), ("late gap", 5), ("after", 6), ("last", 9)] {
            wal.set_consumer(&name.replace(' ', "-"), lsns[at]).unwrap();
        }
        wal.set_consumer("end", wal.end().unwrap()).unwrap();
        wal.close().unwrap();
        damage(&path, layout, lsns[4].0 + 20);
        damage(&path, layout, lsns[5].0 + 20);
        let (report, copy) = salvaged(&path, &to);
        let moved: Vec<&str> = report.moved_consumers.iter().map(String::as_str).collect();
        assert_eq!((report.consumers, moved), (6, vec!["gap", "late-gap"]));
        assert_eq!(report.not_carried, [""; 0]);
        let consumers = copy.consumers().unwrap();
        let next = |name: &str| copy.read(consumers[name]).unwrap().payload[0];
        assert_eq!(["before", "gap", "late-gap", "after", "last"].map(next), [2, 6, 6, 6, 9]);
        assert_eq!(consumers["end"], copy.end().unwrap());

        // With the last record lost, consumers at the lost record, or after it, continue with the next append.
        let (path, to) = (dir.path().join("other"), dir.path().join("copy-of-other"));
        let (wal, lsns) = ten(&path, layout);
        wal.set_consumer("last", lsns[9]).unwrap();
        wal.set_consumer("end", wal.end().unwrap()).unwrap();
        wal.close().unwrap();
        damage(&path, layout, lsns[9].0 + 20);
        let (report, copy) = salvaged(&path, &to);
        assert_eq!(report.moved_consumers, ["last", "end"]);
        assert_eq!(copy.end().unwrap(), lsns[9]);
        assert!(copy.consumers().unwrap().values().all(|lsn| *lsn == lsns[9]));
    }
}

/// Unreadable files next to the log do not stop the copy of its records.
#[test]
fn salvage_names_unreadable_sidecar_files() {
    for layout in LAYOUTS {
        let dir = tempfile::tempdir().unwrap();
        let (path, to) = (dir.path().join("log"), dir.path().join("copy"));
        let (wal, lsns) = ten(&path, layout);
        wal.set_consumer("mail", lsns[3]).unwrap();
        wal.close().unwrap();
        let sidecar = sidecar(&path, layout);
        fs::write(sidecar.join("consumers"), "mail 99999999\n").unwrap();
        fs::create_dir(sidecar.join("transactions")).unwrap();
        fs::write(sidecar.join("transaction"), [0xff; 9]).unwrap();
        let (report, copy) = salvaged(&path, &to);
        assert_eq!((report.records, report.consumers, report.transactions), (10, 0, 0));
        assert_eq!(report.not_carried.len(), 3, "{:?}", report.not_carried);
        assert!(copy.consumers().unwrap().is_empty());
    }
}

fn staged(wal: &Wal, job: &str) -> Part {
    let mut stage = wal.stage(job, 0, 0, None).unwrap();
    stage.push(job.as_bytes()).unwrap();
    stage.finish().unwrap()
}

/// A salvage forgot the transactions of the log: a repeat would append a copied batch again.
#[test]
fn a_copy_knows_the_transactions_of_its_records() {
    let dir = tempfile::tempdir().unwrap();
    let (path, to) = (dir.path().join("log"), dir.path().join("copy"));
    let (wal, lsns) = ten(&path, Layout::Single);
    let id = TransactionId { app: "etl".into(), query: None, version: 7 };
    let transaction = Transaction { job: "done".into(), id: Some(id) };
    wal.commit_staged(&transaction, &[staged(&wal, "done")]).unwrap();
    let _ = staged(&wal, "open");
    wal.close().unwrap();
    damage(&path, Layout::Single, lsns[4].0 + 20);
    let (report, copy) = salvaged(&path, &to);
    assert_eq!((report.transactions, report.unfinished_transactions), (1, 1));
    assert_eq!(copy.transactions().unwrap()["etl"].version, 7);
    let again = copy.commit_staged(&transaction, &[staged(&copy, "done")]).unwrap();
    assert!(again.repeated);
    assert_eq!(copy.len().unwrap(), 10);
}

const STUB: (u32, &[u8]) = (0x79ff_04e8, &[2]);

/// A book of ten deeds, of 54 bytes each in the layout `packed`, begun after `epoch`.
fn ten_deeds(path: &Path, epoch: u64) {
    let book = book::Options::new().epoch(Some(epoch)).open(path, Mode::Create).unwrap();
    (1..=10).for_each(|n| assert!(book.append(n, &[n as u8; 30]).is_ok()));
    book.close().unwrap();
}

fn change(path: &Path, at: usize, with: &[u8]) {
    let file = path.join("book.log");
    let mut bytes = fs::read(&file).unwrap();
    bytes[at..at + with.len()].copy_from_slice(with);
    fs::write(file, bytes).unwrap();
}

fn deed_at(n: usize) -> usize {
    16 + 54 * (n - 1)
}

/// Salvage gave deeds after a gap new numbers, and other systems refer to deeds by their numbers.
#[test]
fn deeds_keep_their_numbers_by_stubs() {
    let gaps: [(u64, &[usize]); 4] = [(0, &[4]), (0, &[1, 2, 7]), (4096, &[4, 5]), (0, &[3, 10])];
    for (epoch, lost) in gaps {
        let dir = tempfile::tempdir().unwrap();
        let (path, to) = (dir.path().join("log"), dir.path().join("copy"));
        ten_deeds(&path, epoch);
        lost.iter().for_each(|n| change(&path, deed_at(*n) + 20, &[0xff]));
        let options = book::Options::new();
        let report = options.salvage_keeping_numbers(&path, &to, |_, _| Ok(())).unwrap();
        let stubs: Vec<u64> = lost.iter().filter(|n| **n < 10).map(|n| epoch + *n as u64).collect();
        assert_eq!((&report.stubs, report.renumbered()), (&stubs, false));
        assert_eq!(report.records, 10 - lost.len() as u64);
        let copy = options.open(&to, Mode::Read).unwrap();
        let last = if lost.contains(&10) { 9 } else { 10 };
        assert_eq!(copy.len().unwrap(), last);
        for n in 1..=last {
            let deed = copy.read(epoch + n).unwrap();
            match stubs.contains(&(epoch + n)) {
                true => assert_eq!((deed.mug, &deed.jam[..]), STUB),
                false => assert_eq!((deed.mug, deed.jam), (n as u32, vec![n as u8; 30])),
            }
        }
    }
}
