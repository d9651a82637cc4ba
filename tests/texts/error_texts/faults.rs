//! Every call of the disk fails once in every operation, or permanently.

use std::io::ErrorKind;

use super::*;

const CALLS: [Call; 15] = [
    Call::Open,
    Call::Create,
    Call::CreateDir,
    Call::Rename,
    Call::Remove,
    Call::List,
    Call::SyncDir,
    Call::Lock,
    Call::Len,
    Call::Id,
    Call::Read,
    Call::Write,
    Call::SetLen,
    Call::Allocate,
    Call::Sync,
];
/// No operation makes as many calls of one kind; an operation that always fails ends far below.
const CALLS_MAX: u64 = 400;

/// Prepares, calls `begin`, and runs the operation.
type Operation = fn(&dyn Format, &mut Sim, &dyn Fn(&Sim)) -> Result<()>;

/// Each with the format whose texts it meets; most texts belong to every format.
const OPERATIONS: [(&str, &dyn Format, Operation); 7] = [
    ("append to a torn one", &BOOK, |format, disk, begin| {
        torn(format, disk);
        begin(disk);
        format.open(&on(format, disk), Mode::Append, MANUAL).map(drop)
    }),
    ("salvage", &TINY, |format, disk, begin| {
        torn(format, disk);
        disk.create_dir(Path::new("/copy")).unwrap();
        begin(disk);
        format.salvage(&on(format, disk), &format.path_in(Path::new("/copy")), MANUAL).map(drop)
    }),
    ("truncate_before the end, at a border", &TINY, |_, disk, begin| {
        let at = on(&TINY, disk);
        let wal = TINY.options(&at, MANUAL).open(&at.path, Mode::Create).unwrap();
        // Each record is a segment.
        (0..4).for_each(|n| assert!(wal.append(&[n; 56]).is_ok()));
        wal.sync().unwrap();
        begin(disk);
        wal.truncate_before(wal.end()?).map(drop)
    }),
    ("truncate_after", &TINY, |_, disk, begin| {
        let (wal, lsns) = wal(disk);
        wal.set_consumer("late", lsns[8]).unwrap();
        begin(disk);
        wal.truncate_after(lsns[4]).map(drop)
    }),
    ("append to, segments below the head", &TINY, |format, disk, begin| {
        let (wal, lsns) = wal(disk);
        wal.truncate_before(lsns[6]).unwrap();
        wal.close().unwrap();
        let stale = wal.path().join(segment_name(0));
        crate::support::common::write_file(disk, &stale, &[1; 64]);
        begin(disk);
        format.open(&on(format, disk), Mode::Append, MANUAL).map(drop)
    }),
    ("repair, segments after a gap", &TINY, |format, disk, begin| {
        with_gap(disk);
        begin(disk);
        format.repair(&on(format, disk), MANUAL).map(drop)
    }),
    ("metadata", &BOOK, |format, disk, begin| {
        let at = on(format, disk);
        let options = crate::support::formats::book::options(&at, MANUAL);
        let book = options.open(&at.path, Mode::Append).unwrap();
        book.save_meta(&Meta { life: Some(1), ..Meta::default() }).unwrap();
        begin(disk);
        book.meta()?;
        book.save_meta(&Meta { life: Some(2), ..Meta::default() })
    }),
];

/// A writer that died in the last record.
fn torn(format: &dyn Format, disk: &mut Sim) {
    let log = format.create(&on(format, disk), &events());
    log.sync().unwrap();
    log.append(1, &[7; 90]).unwrap();
    let end = log.end().unwrap();
    let killed = disk.kill();
    drop(log);
    *disk = killed;
    cut(format, disk, end - 5);
}

pub fn all(texts: &mut Texts) {
    for (operation, format, run) in OPERATIONS {
        sweep(texts, format, &format!("{}: {operation}", format.name()), run);
    }
}

fn with_gap(disk: &mut Sim) {
    let (wal, _) = wal(disk);
    (0..4).for_each(|_| assert!(wal.append(&[7; 90]).is_ok()));
    let path = wal.path().join(segment_name(9));
    let killed = disk.kill();
    drop(wal);
    *disk = killed;
    disk.remove(&path).unwrap();
}

fn wal(disk: &Sim) -> (Wal, Vec<Lsn>) {
    let at = on(&TINY, disk);
    let wal = TINY.options(&at, MANUAL).open(&at.path, Mode::Create).unwrap();
    let lsns = (0..9).map(|n| wal.append(&[n; 40]).unwrap()).collect();
    wal.sync().unwrap();
    (wal, lsns)
}

fn sweep(texts: &mut Texts, format: &dyn Format, name: &str, run: Operation) {
    // By text, so one more call before others changes nothing.
    let mut met: BTreeMap<String, Error> = BTreeMap::new();
    for call in CALLS {
        let kinds: &[ErrorKind] = match call {
            Call::Open => &[ErrorKind::Other, ErrorKind::NotFound, ErrorKind::InvalidInput],
            _ => &[ErrorKind::Other],
        };
        for (&kind, times) in kinds.iter().flat_map(|kind| [(kind, 1), (kind, u64::MAX)]) {
            for at in 1..CALLS_MAX {
                let mut disk = Sim::new();
                let what = What::Error(kind);
                let begin = |disk: &Sim| disk.inject(Fault { at, of: Some(call), what, times });
                let result = run(format, &mut disk, &begin);
                if disk.fired() == 0 {
                    break;
                }
                if let Err(error) = result {
                    met.insert(error.to_string(), error);
                }
            }
        }
    }
    let mut here = texts.situation(format!("{name}, while a call of the disk fails"));
    for error in met.values() {
        here.error(name, error);
    }
}
