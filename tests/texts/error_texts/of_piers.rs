//! Refusals of only a pier: wrong epochs, epochs in LMDB, rolls.

use crate::error_texts::of_transactions::put_at;

use super::of_book::options;
use super::*;

const PIER: &str = "/zod";
const LOG: &str = "/zod/.urb/log";

fn epoch(number: u64) -> PathBuf {
    Path::new(LOG).join(format!("0i{number}"))
}

fn holding(epochs: &[(u64, u64)]) -> Sim {
    let disk = Sim::new();
    for dir in ["/zod", "/zod/.urb", LOG] {
        disk.create_dir(Path::new(dir)).unwrap();
    }
    for &(number, deeds) in epochs {
        let book = options(&disk).open(epoch(number), Mode::Create).unwrap();
        (0..deeds).for_each(|_| assert!(book.append(0, b"deed").is_ok()));
        book.close().unwrap();
    }
    disk
}

fn open(disk: &Sim, mode: Mode) -> deedbook::Result<Pier> {
    options(disk).open_pier(PIER, mode)
}

pub fn all(texts: &mut Texts) {
    sequences(texts);
    stores(texts);
    mended(texts);
    handles(texts);
    commits(texts);
    faults(texts);
}

/// A pier that turns staged parts into epochs, and a part of one deed.
fn publishing(disk: &Sim, first: Option<u64>) -> deedbook::Result<(Pier, Part)> {
    let mut stage = open(disk, Mode::Read)?.stage("job", 0, 1, first)?;
    stage.push(7, b"deed")?;
    let part = stage.finish()?;
    let pier = options(disk).epoch_part_bytes(1).open_pier(PIER, Mode::Append)?;
    Ok((pier, part))
}

fn commits(texts: &mut Texts) {
    let of = Transaction { job: "job".into(), id: None };
    let mut here = texts.situation("pier: a commit that makes epochs");
    let disk = holding(&[(0, 3)]);
    let (pier, part) = publishing(&disk, Some(9)).unwrap();
    here.refused("commit of another number", pier.commit_staged(&of, std::slice::from_ref(&part)));
    let disk = holding(&[(0, 3)]);
    let (pier, part) = publishing(&disk, None).unwrap();
    disk.record();
    pier.commit_staged(&of, &[part]).unwrap();
    let intent = Path::new(LOG).join(".deedbook/transaction");
    let begun =
        disk.recorded().into_iter().find(|moment| moment.open(&intent, Access::Read).is_ok());
    let begun = begun.unwrap().kill();
    let changed = begun.kill();
    options(&changed).open(epoch(0), Mode::Append).unwrap().append(0, b"of a book").unwrap();
    here.refused("append after the last epoch went on", open(&changed, Mode::Append));
    let later = begun.kill();
    put_at(&later, &intent, "job job\nplace top\npart 0 0 1 24 1 00000000 -\n");
    here.refused("append after a place of a later version", open(&later, Mode::Append));
}

fn sequences(texts: &mut Texts) {
    let mut here = texts.situation("pier: epochs that leave out events, overlap, or are none");
    for epochs in [&[(0, 3), (5, 1)][..], &[(0, 3), (2, 4)], &[]] {
        here.refused("open", open(&holding(epochs), Mode::Read));
    }
    let disk = holding(&[(3, 2)]);
    here.refused("create", open(&disk, Mode::Create));
    let asked = options(&disk).epoch(4);
    here.refused("append to with epoch 4", asked.open_pier(PIER, Mode::Append));
}

fn stores(texts: &mut Texts) {
    let mut here = texts.situation("pier: an epoch in LMDB, of a version to come, without a log");
    let texts: [(&str, &[u8]); 4] =
        [("epoc.txt", b"1"), ("epoc.txt", b"4"), ("epoc.txt", &[b'3'; 4097]), ("vere.txt", b"3.5")];
    for (name, bytes) in texts {
        let disk = holding(&[(0, 3)]);
        disk.create_dir(&epoch(3)).unwrap();
        write_file(&disk, &epoch(3).join(name), bytes);
        here.refused("open", open(&disk, Mode::Read));
    }
    let disk = holding(&[(0, 3)]);
    write_file(&disk, &epoch(3), b"");
    here.refused("open, the epoch is a file", open(&disk, Mode::Read));
    let disk = holding(&[]);
    write_file(&disk, &Path::new(LOG).join("data.mdb"), b"");
    here.refused("open, LMDB without epochs", open(&disk, Mode::Read));
}

fn mended(texts: &mut Texts) {
    let disk = holding(&[(0, 3), (3, 2)]);
    let log = epoch(0).join("book.log");
    let mut bytes = read_file(&disk, &log);
    bytes[16 + 12] ^= 1;
    write_file(&disk, &log, &bytes);
    let mut here = texts.situation("pier: a sealed epoch is damaged, or has other numbers");
    here.refused("repair", options(&disk).repair_pier(PIER, Repair::default()));
    let disk = holding(&[(0, 3)]);
    let other = options(&disk).epoch(100).open("/other", Mode::Create).unwrap();
    other.append(0, b"deed").unwrap();
    other.close().unwrap();
    disk.rename(Path::new("/other"), &epoch(3)).unwrap();
    here.refused("salvage", options(&disk).salvage_pier(PIER, "/copy"));
}

fn handles(texts: &mut Texts) {
    let disk = holding(&[(0, 3)]);
    let mut here = texts.situation("pier: what its handles refuse");
    let reader = open(&disk, Mode::Read).unwrap();
    here.refused("roll", reader.roll());
    here.refused("read", reader.read(4));
    here.refused("set a consumer at event 5", reader.set_consumer("one", 5));
    let mut slow = reader.follow(None).unwrap();
    let pier = open(&disk, Mode::Append).unwrap();
    pier.roll().unwrap();
    here.refused("roll, a second time", pier.roll());
    let new = open(&Sim::new(), Mode::Append).unwrap();
    here.refused("read of an empty one", new.read(1));
    pier.append(0, b"deed").unwrap();
    pier.roll().unwrap();
    slow.next(std::time::Duration::ZERO).unwrap();
    pier.retain(&Retention::new().bytes_max(0)).unwrap();
    (0..2).for_each(|_| drop(slow.next(std::time::Duration::ZERO)));
    here.refused("follow", slow.next(std::time::Duration::ZERO));
    pier.close().unwrap();
    here.refused("append", pier.append(0, b""));
}

/// Each call of the storage in turn, until none is left.
fn faults(texts: &mut Texts) {
    let mut here = texts.situation("pier: a call of the file system fails");
    let mut each = |call: &str, work: &dyn Fn(&Sim) -> deedbook::Result<()>| {
        for at in 1.. {
            let disk = holding(&[(0, 3)]);
            write_file(&disk, &epoch(0).join("vere.txt"), b"3.5");
            if call == "salvage" {
                write_file(&disk, &Path::new(LOG).join("data.mdb"), b"pages");
            }
            if call == "roll" {
                // The leftovers of an interrupted roll.
                for dir in [".deedbook", ".deedbook/next"] {
                    disk.create_dir(&Path::new(LOG).join(dir)).unwrap();
                }
                write_file(&disk, &Path::new(LOG).join(".deedbook/next/epoc.txt"), b"3");
            }
            disk.set_seed(1);
            disk.inject(Fault::once(at, What::Error(Io::Other)));
            here.tried(call, work(&disk));
            if disk.fired() == 0 {
                break;
            }
        }
    };
    each("open", &|disk| open(disk, Mode::Read).map(drop));
    each("append to", &|disk| open(disk, Mode::Append).map(drop));
    each("salvage", &|disk| options(disk).salvage_pier(PIER, "/copy").map(drop));
    each("retain", &|disk| {
        let pier = open(disk, Mode::Append)?;
        pier.set_consumer("one", 4)?;
        pier.roll()?;
        pier.consumers()?;
        let rules = Retention::new().consumed(true).age_max(std::time::Duration::ZERO);
        pier.retain(&rules).map(drop)
    });
    each("commit of what was staged before a roll", &|disk| {
        let mut stage = open(disk, Mode::Read)?.stage("job", 0, 1, None)?;
        stage.push(7, b"deed")?;
        let part = stage.finish()?;
        let pier = open(disk, Mode::Append)?;
        pier.roll()?;
        let transaction = Transaction { job: "job".into(), id: None };
        pier.commit_staged(&transaction, &[part]).map(drop)
    });
    each("commit that makes epochs", &|disk| {
        let (pier, part) = publishing(disk, None)?;
        let id = TransactionId { app: "etl".into(), query: None, version: 1 };
        let transaction = Transaction { job: "job".into(), id: Some(id) };
        pier.commit_staged(&transaction, &[part]).map(drop)
    });
}
