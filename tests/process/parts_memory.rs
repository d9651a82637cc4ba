//! An event of any size is written, read, checked, converted and migrated in a few blocks of memory.
//! `DEEDBOOK_SLOW=1` takes an event of 5 GiB, 16 GB of disk, and minutes.
#![cfg(unix)]

use deedbook::book::Layout;
use heed::EnvFlags;

use crate::counting::peak_of;
use crate::support::common::lmdb_pages::make_with;
use crate::support::prelude::*;

/// Parts, blocks of scanners, a batch; independent of the event's size.
const BOUND: u64 = 24 << 20;

struct Pattern {
    at: u64,
}

impl Pattern {
    fn byte(at: u64) -> u8 {
        (at ^ (at >> 8) ^ (at >> 20)) as u8
    }
}

impl Read for Pattern {
    fn read(&mut self, block: &mut [u8]) -> std::io::Result<usize> {
        for byte in block.iter_mut() {
            *byte = Self::byte(self.at);
            self.at += 1;
        }
        Ok(block.len())
    }
}

fn same(mut reader: impl Read, len: u64) {
    let (mut block, mut at) = (vec![0; 1 << 20], 0);
    loop {
        let read = reader.read(&mut block).unwrap();
        if read == 0 {
            break;
        }
        let wrong = (0..read).find(|&i| block[i] != Pattern::byte(at + i as u64));
        assert_eq!(wrong, None, "after byte {at}");
        at += read as u64;
    }
    assert_eq!(at, len);
}

/// An environment with one event of this length, then a short event, made by LMDB.
fn make_environment(dir: &Path, len: u64) {
    let meta: [(&str, &[u8]); 4] =
        [("who", b"\x01"), ("version", b"\x03"), ("life", b"\x01"), ("fake", b"")];
    // Without the flag, LMDB writes a value with one call, and Linux takes less than 2 GiB a call.
    let map = ((len as usize + (64 << 20)) & !0xffff, EnvFlags::WRITE_MAP);
    make_with(dir, map, &meta, |events, txn| {
        events.put_reserved(txn, &1, len as usize + 4, |space| {
            std::io::Write::write_all(space, &7u32.to_le_bytes())?;
            std::io::copy(&mut Pattern { at: 0 }.take(len), space).map(drop)
        })?;
        events.put(txn, &2, b"\x08\0\0\0after")
    });
}

// Promise: parts-large.
#[test]
fn events_of_any_size_need_little_memory() {
    let slow = std::env::var_os("DEEDBOOK_SLOW").is_some();
    let len: u64 = if slow { 5 << 30 } else { 64 << 20 };
    let limited = book::Options::new().deed_bytes_max(len + 4);
    let dir = tempfile::tempdir().unwrap();
    let within = |what: &str, work: &mut dyn FnMut()| {
        let peak = peak_of(work);
        println!("{what}: {} KiB", peak >> 10);
        assert!(peak <= BOUND, "{what} of an event of {len} bytes: {peak} reserved");
    };
    let durability = Durability::Manual;

    for layout in [Layout::Packed, Layout::Slots] {
        let path = dir.path().join(layout.name());
        let options = limited.clone().durability(durability).layout(layout);
        within("write", &mut || {
            let book = options.open(&path, Mode::Create).unwrap();
            assert_eq!(book.append_from(7, len, &mut Pattern { at: 0 }).unwrap(), 1);
            assert_eq!(book.append(8, b"after").unwrap(), 2);
            book.close().unwrap();
        });
        // Recovery must also work without its notes.
        fs::remove_dir_all(path.join(".deedbook")).unwrap();
        within("open for writing", &mut || {
            let book = options.open(&path, Mode::Append).unwrap();
            assert_eq!(book.bounds().unwrap(), Some(1..=2));
            book.close().unwrap();
        });
        within("read", &mut || {
            let book = limited.open(&path, Mode::Read).unwrap();
            same(book.jam_reader(1).unwrap(), len);
            assert_eq!(book.read(2).unwrap().jam, b"after");
        });
        within("verify", &mut || {
            let report = limited.verify(&path).unwrap();
            assert_eq!((report.verdict, report.records), (Verdict::Clean, 2));
        });
    }
    let (packed, slots) = (dir.path().join("packed"), dir.path().join("slots"));
    fs::remove_dir_all(&slots).unwrap();
    within("convert", &mut || {
        limited.convert(&packed, &slots, Layout::Slots, |_, _| Ok(())).unwrap();
    });
    fs::remove_dir_all(&slots).unwrap();
    fs::remove_dir_all(&packed).unwrap();

    // A record of a WAL, and a value of LMDB, are shorter than 4 GiB.
    let len = len.min(3 << 30);
    let path = dir.path().join("wal");
    let options = wal::Options::new().durability(durability).record_bytes_max(len);
    within("write a record", &mut || {
        let wal = options.open(&path, deedbook::Mode::Create).unwrap();
        let lsn = wal.append_from(len, &mut Pattern { at: 0 }).unwrap();
        wal.append(b"after").unwrap();
        same(wal.payload_reader(lsn).unwrap(), len);
        wal.close().unwrap();
    });
    within("verify a record", &mut || {
        let report = wal::Options::default().verify(&path).unwrap();
        assert_eq!((report.verdict, report.records), (Verdict::Clean, 2));
        drop(Wal::open(&path).unwrap());
    });
    fs::remove_dir_all(&path).unwrap();

    let (source, dest) = (dir.path().join("lmdb"), dir.path().join("book"));
    make_environment(&source, len);
    within("migrate", &mut || {
        let options = book::lmdb::Options::default();
        let report = options.migrate(&source, &dest, |_, _| Ok(())).unwrap();
        assert_eq!(report.events, 2);
    });
    let book = Book::open(&dest).unwrap();
    same(book.jam_reader(1).unwrap(), len);
    assert_eq!(book.read(2).unwrap().jam, b"after");
}
