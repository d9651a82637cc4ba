//! Refusals of only the event store's write-ahead log: parameters, files, numbers, checkpoints.

use deedbook::nostr::wal::{Entry, EventWal, Lsn, WalOptions, repair};

use super::*;

const DIR: &str = "/wal";
const BROKEN: What = What::Error(std::io::ErrorKind::Other);

/// Files of two entries of 79 bytes each.
fn options(disk: &Sim) -> WalOptions {
    let storage = Arc::new(disk.clone());
    WalOptions::new().segment_bytes(200).small(true).storage(storage)
}

fn insert(wal: &EventWal, len: usize) -> Result<Lsn> {
    wal.append(&Entry::Insert { record: &vec![7; len] }, 9)
}

fn written(entries: u64) -> Sim {
    let disk = Sim::new();
    let wal = options(&disk).open(DIR, Mode::Create).unwrap();
    for _ in 0..entries {
        insert(&wal, 50).unwrap();
    }
    wal.close().unwrap();
    disk
}

fn path(name: &str) -> std::path::PathBuf {
    Path::new(DIR).join(name)
}

fn flip(disk: &Sim, name: &str, at: u64, byte: u8) {
    let file = disk.open(&path(name), Access::Write).unwrap();
    file.write_at(&[byte], at).unwrap();
}

fn walked(wal: &EventWal, on_corrupt: OnCorrupt) -> Result<()> {
    let mut entries = wal.entries(Lsn(0), on_corrupt)?;
    while entries.next()?.is_some() {}
    Ok(())
}

pub fn all(texts: &mut Texts) {
    parameters(texts);
    handles(texts);
    numbers(texts);
    files(texts);
    damage(texts);
    failures(texts);
}

fn parameters(texts: &mut Texts) {
    let disk = Sim::new();
    let mut here = texts.situation("nostr wal: parameters beyond their ranges");
    let defaults = || options(&disk).small(false).segment_bytes(10 << 20);
    for options in [
        defaults().batch_interval(Duration::from_millis(9)),
        defaults().batch_bytes(1),
        defaults().segment_bytes(1),
        defaults().data_bytes_max(0),
    ] {
        here.refused("open", options.open(DIR, Mode::Create));
    }
}

fn handles(texts: &mut Texts) {
    let disk = written(3);
    let mut here = texts.situation("nostr wal: what a handle refuses");
    let limited = options(&disk).data_bytes_max(60);
    let wal = limited.open(DIR, Mode::Append).unwrap();
    here.refused("append beyond the limit", insert(&wal, 61));
}

/// A log that ends with the highest number.
fn numbers(texts: &mut Texts) {
    const LAST: u64 = 1 << 62;
    let header = [&b"WLAO"[..], &1u64.to_be_bytes(), &(LAST - 1).to_be_bytes(), &[0; 4]];
    let entry = [&[1][..], &LAST.to_be_bytes(), &7u64.to_be_bytes(), &1u32.to_be_bytes(), b"x"];
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Xz, &entry.concat());
    let disk = Sim::new();
    disk.create_dir(Path::new(DIR)).unwrap();
    let file = [&header.concat()[..], &entry.concat(), &sum.to_be_bytes()].concat();
    write_file(&disk, &path("wal.log"), &file);
    let wal = options(&disk).open(DIR, Mode::Append).unwrap();
    let mut here = texts.situation("nostr wal: an entry after the last number");
    here.refused("append", insert(&wal, 50));
}

fn files(texts: &mut Texts) {
    let mut here = texts.situation("nostr wal: files that are missing, or none");
    for gone in ["wal.log", "wal.000001.log", "wal.000002.log"] {
        let disk = written(5);
        disk.remove(&path(gone)).unwrap();
        here.refused(gone, options(&disk).open(DIR, Mode::Append));
    }
    for bytes in [&b"WLA"[..], &[b'W'; 24], &[&b"WLAO"[..], &[0; 20]].concat()] {
        let disk = Sim::new();
        disk.create_dir(Path::new(DIR)).unwrap();
        write_file(&disk, &path("wal.log"), bytes);
        here.refused("append to", options(&disk).open(DIR, Mode::Append));
    }
}

fn damage(texts: &mut Texts) {
    // A byte of the first entry of the second file: kind, number, length, data, checksum.
    let mut here = texts.situation("nostr wal: damage");
    for (at, byte) in [(24, 0), (24, 9), (24, 2), (24, 4), (30, 1), (41, 9), (50, 1), (100, 1)] {
        let disk = written(5);
        disk.remove(&path(".deedbook/wal.000001.log/mark")).unwrap();
        flip(&disk, "wal.000001.log", at, byte);
        here.refused("append to", options(&disk).open(DIR, Mode::Append));
        let reader = options(&disk).open(DIR, Mode::Read).unwrap();
        here.tried("read", walked(&reader, OnCorrupt::Raise));
        for report in reader.verify().unwrap() {
            here.damages("verify", &report.damages);
        }
    }
    let disk = written(4);
    disk.remove(&path(".deedbook/wal.000001.log/mark")).unwrap();
    let disk_of_six = written(6);
    let later = disk_of_six.open(&path("wal.000002.log"), Access::Read).unwrap();
    let mut bytes = vec![0; 24 + 2 * 79];
    later.read_at(&mut bytes, 0).unwrap();
    disk.open(&path("wal.000001.log"), Access::Write).unwrap().write_at(&bytes, 0).unwrap();
    here.refused("append to", options(&disk).open(DIR, Mode::Append));
    let may = Repair { force: false, accept_loss: false, dry_run: false };
    let disk = written(2);
    flip(&disk, "wal.log", 60, 1);
    here.refused("repair", repair(DIR, &options(&disk), may));
}

fn failures(texts: &mut Texts) {
    let mut here = texts.situation("nostr wal: a call fails");
    for call in [Call::Write, Call::Sync, Call::Remove, Call::SyncDir, Call::List] {
        for at in 1..6 {
            let disk = written(5);
            let wal = options(&disk).open(DIR, Mode::Append).unwrap();
            disk.inject(Fault::once(at, BROKEN).of(call));
            here.tried("checkpoint", wal.checkpoint(9));
            here.tried("drop", wal.drop_before_checkpoint());
        }
    }
    for call in [Call::SetLen, Call::Sync, Call::Len] {
        for at in 1..6 {
            let disk = written(1);
            disk.set_allocates(true);
            let wal = options(&disk).open(DIR, Mode::Append).unwrap();
            insert(&wal, 50).unwrap();
            disk.inject(Fault::once(at, BROKEN).of(call));
            for _ in 0..3 {
                here.tried("append", insert(&wal, 50));
                here.tried("sync", wal.sync());
            }
        }
    }
}
