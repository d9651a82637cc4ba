//! Refusals of only a pier: wrong epochs, epochs in LMDB, rolls.

use std::io::ErrorKind as Io;

use deedbook::book::Options;
use deedbook::book::pier::Pier;

use crate::error_texts::of_transactions::put_at;
use crate::support::prelude::*;
use crate::support::texts::{Situation, Texts};

const PIER: &str = "/zod";
const LOG: &str = "/zod/.urb/log";

fn options(disk: &Sim) -> Options {
    let storage = Arc::new(disk.clone());
    Options::new().durability(Durability::Manual).storage(storage)
}

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
    let reader = open(&disk, Mode::Read).unwrap();
    drop((pier, reader));
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

fn tried(here: &mut Situation<'_>, disk: &Sim) {
    here.tried("open", open(disk, Mode::Read));
}

fn sequences(texts: &mut Texts) {
    let mut gap = texts.situation("pier: an epoch is missing between two");
    tried(&mut gap, &holding(&[(0, 3), (5, 1)]));
    let mut both = texts.situation("pier: two epochs have the same events");
    tried(&mut both, &holding(&[(0, 3), (2, 4)]));
    let mut none = texts.situation("pier: no epoch");
    none.refused("open", open(&holding(&[]), Mode::Read));
    let mut there = texts.situation("pier: one that is there, or begins elsewhere");
    let disk = holding(&[(3, 2)]);
    there.refused("create", open(&disk, Mode::Create));
    let asked = options(&disk).epoch(4);
    there.refused("append to with epoch 4", asked.open_pier(PIER, Mode::Append));
}

fn stores(texts: &mut Texts) {
    let file = |name: &str, bytes: &[u8]| {
        let disk = holding(&[(0, 3)]);
        disk.create_dir(&epoch(3)).unwrap();
        write_file(&disk, &epoch(3).join(name), bytes);
        disk
    };
    let cases = [
        ("in LMDB by epoc.txt", file("epoc.txt", b"1")),
        ("of a version to come", file("epoc.txt", b"4")),
        ("with a long text", file("epoc.txt", &[b'3'; 4097])),
        ("without a log", file("vere.txt", b"3.5")),
    ];
    for (name, disk) in cases {
        tried(&mut texts.situation(format!("pier: an epoch {name}")), &disk);
    }
    let disk = holding(&[(0, 3)]);
    write_file(&disk, &epoch(3), b"");
    tried(&mut texts.situation("pier: an epoch that is a file"), &disk);
    let disk = holding(&[]);
    write_file(&disk, &Path::new(LOG).join("data.mdb"), b"");
    tried(&mut texts.situation("pier: LMDB without epochs"), &disk);
}

fn mended(texts: &mut Texts) {
    let disk = holding(&[(0, 3), (3, 2)]);
    let log = epoch(0).join("book.log");
    let mut bytes = read_file(&disk, &log);
    bytes[16 + 12] ^= 1;
    write_file(&disk, &log, &bytes);
    let mut sealed = texts.situation("pier: a sealed epoch is damaged");
    sealed.refused("repair", options(&disk).repair_pier(PIER, Repair::default()));
    let disk = holding(&[(0, 3)]);
    let other = options(&disk).epoch(100).open("/other", Mode::Create).unwrap();
    other.append(0, b"deed").unwrap();
    other.close().unwrap();
    disk.rename(Path::new("/other"), &epoch(3)).unwrap();
    let mut renamed = texts.situation("pier: the log of an epoch has other numbers than its name");
    renamed.refused("salvage", options(&disk).salvage_pier(PIER, "/copy"));
}

fn handles(texts: &mut Texts) {
    let disk = holding(&[(0, 3)]);
    let mut reading = texts.situation("pier: opened for reading");
    let reader = open(&disk, Mode::Read).unwrap();
    reading.refused("roll", reader.roll());
    reading.refused("read", reader.read(4));
    reading.refused("set a consumer at event 5", reader.set_consumer("one", 5));
    let mut slow = reader.follow(None).unwrap();
    let mut writing = texts.situation("pier: opened for appending");
    let pier = open(&disk, Mode::Append).unwrap();
    pier.roll().unwrap();
    writing.refused("roll, a second time", pier.roll());
    let new = open(&Sim::new(), Mode::Append).unwrap();
    writing.refused("read of an empty one", new.read(1));
    pier.append(0, b"deed").unwrap();
    pier.roll().unwrap();
    slow.next(std::time::Duration::ZERO).unwrap();
    pier.retain(&Retention::new().bytes_max(0)).unwrap();
    let mut dropped = texts.situation("pier: its first epochs were dropped");
    (0..2).for_each(|_| drop(slow.next(std::time::Duration::ZERO)));
    dropped.refused("follow", slow.next(std::time::Duration::ZERO));
    pier.close().unwrap();
    let mut closed = texts.situation("pier: closed");
    closed.refused("append", pier.append(0, b""));
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
