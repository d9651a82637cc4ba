//! A pier's own metadata, which stays in LMDB, and the copy in the last epoch.

use crate::lmdb::support::*;

/// The golden pier as books, its log, and its last epoch.
fn pier() -> (TempDir, PathBuf, PathBuf) {
    let (dir, _, dest) = space();
    let book = book::Options::new().storage(Arc::new(Watched::idle()));
    let options = Options::new().book(book);
    options.migrate(data("pier-lmdb"), &dest, |_, _| Ok(())).unwrap();
    let last = dest.join(".urb/log/0i60");
    (dir, dest, last)
}

fn top_of(pier: &Path) -> Meta {
    Environment::open(pier.join(".urb/log")).unwrap().meta().unwrap()
}

fn copy_of(epoch: &Path) -> Meta {
    Book::open(epoch).unwrap().meta().unwrap()
}

fn save_copy(epoch: &Path, meta: Meta) {
    let book = Book::append_to(epoch).unwrap();
    book.save_meta(&meta).unwrap();
    book.close().unwrap();
}

fn life(life: u32) -> Meta {
    Meta { life: Some(life), ..Meta::default() }
}

#[test]
fn saving_pier_metadata_updates_lmdb_and_the_copy() {
    let (_dir, dest, last) = pier();
    let pier = Pier::append_to(&dest).unwrap();
    assert_eq!(pier.meta().unwrap(), PIER_META);
    let before = contents(&dest.join(".urb/log"));
    let saved = Meta { life: Some(256), who: Some(u128::MAX - 255), ..PIER_META };
    pier.save_meta(&Meta { who: saved.who, ..life(256) }).unwrap();
    assert_eq!(pier.meta().unwrap(), saved);
    assert_eq!((top_of(&dest), copy_of(&last)), (saved, saved));
    let after = contents(&dest.join(".urb/log"));
    let keys = |values: &[(Vec<u8>, Vec<u8>)]| {
        values.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&after), keys(&before));
    let rolled = pier.roll().unwrap();
    pier.save_meta(&Meta { fake: Some(false), ..life(3) }).unwrap();
    let saved = Meta { fake: Some(false), life: Some(3), ..saved };
    assert_eq!(pier.meta().unwrap(), saved);
    pier.close().unwrap();
    assert_eq!(pier.meta().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(pier.save_meta(&life(1)).unwrap_err().kind(), ErrorKind::Closed);
    let epoch = dest.join(format!(".urb/log/0i{rolled}"));
    assert_eq!((top_of(&dest), copy_of(&epoch)), (saved, saved));
    let reader = Pier::open(&dest).unwrap();
    refused(reader.save_meta(&life(1)), ErrorKind::ReadOnly, "for reading only");
    assert_eq!((reader.meta().unwrap(), top_of(&dest)), (saved, saved));
}

// Promise: pier-metadata.
#[test]
fn differing_pier_metadata_is_an_error_until_saved() {
    let (_dir, dest, last) = pier();
    save_copy(&last, Meta { who: Some(0x0200), ..life(5) });
    let reader = Pier::open(&dest).unwrap();
    let says =
        "metadata who is 0x100 in data.mdb, the pier's own, but 0x200 in 0i60/meta.bin; saving";
    let error = refused(reader.meta(), ErrorKind::Corrupt, says);
    assert_eq!(error.path(), Some(&*dest.join(".urb/log/data.mdb")));
    let pier = Pier::append_to(&dest).unwrap();
    refused(pier.meta(), ErrorKind::Corrupt, says);
    // A save keeps the fields that the caller does not name, so both files must agree on them.
    let says = "metadata life is 4 in data.mdb, the pier's own, but 5 in 0i60/meta.bin";
    refused(
        pier.save_meta(&Meta { who: Some(0x0300), ..Meta::default() }),
        ErrorKind::Corrupt,
        says,
    );
    assert_eq!((top_of(&dest), copy_of(&last).who), (PIER_META, Some(0x0200)));
    let both = Meta { who: Some(0x0200), ..life(4) };
    pier.save_meta(&both).unwrap();
    let saved = Meta { who: Some(0x0200), ..PIER_META };
    assert_eq!((pier.meta().unwrap(), reader.meta().unwrap()), (saved, saved));
    assert_eq!((top_of(&dest), copy_of(&last)), (saved, saved));
    for (field, says) in [
        (Meta { version: Some(9), ..Meta::default() }, "version is 3 in data.mdb, the"),
        (Meta { fake: Some(false), ..Meta::default() }, "fake is true in data.mdb, the"),
    ] {
        pier.close().unwrap();
        save_copy(&last, field);
        refused(reader.meta(), ErrorKind::Corrupt, says);
        save_copy(&last, PIER_META);
        save_copy(&last, Meta { who: Some(0x0200), ..Meta::default() });
    }
    assert_eq!(reader.meta().unwrap(), saved);
}

#[test]
fn the_last_epochs_metadata_replaces_a_missing_environment() {
    let (_dir, dest, last) = pier();
    let top = dest.join(".urb/log/data.mdb");
    save_copy(&last, life(5));
    fs::remove_file(&top).unwrap();
    let copied = Meta { life: Some(5), ..PIER_META };
    let pier = Pier::append_to(&dest).unwrap();
    assert_eq!(pier.meta().unwrap(), copied);
    pier.save_meta(&life(6)).unwrap();
    assert!(!top.exists(), "no environment is made");
    // LMDB creates an empty file, and a kill may leave it there. The second environment has no metadata.
    fs::write(&top, b"").unwrap();
    assert_eq!(pier.meta().unwrap().life, Some(6));
    fs::remove_file(&top).unwrap();
    make(&dest.join(".urb/log"), &[(1, b"\0\0\0\0jam")], &[]);
    assert_eq!(pier.meta().unwrap().life, Some(6));
    // The copy supplies a field that the environment lacks. Without a copy, the field is missing.
    fs::remove_file(&top).unwrap();
    make(&dest.join(".urb/log"), &[], &[("life", b"\x07")]);
    refused(pier.meta(), ErrorKind::Corrupt, "life is 7");
    pier.save_meta(&life(7)).unwrap();
    assert_eq!(pier.meta().unwrap(), Meta { life: Some(7), ..PIER_META });
    fs::remove_file(last.join("meta.bin")).unwrap();
    assert_eq!(pier.meta().unwrap(), life(7));
}

// Promise: pier-metadata.
#[test]
fn an_unreadable_environment_is_not_a_missing_environment() {
    let (_dir, dest, last) = pier();
    let top = dest.join(".urb/log/data.mdb");
    let whole = fs::read(&top).unwrap();
    let pier = Pier::append_to(&dest).unwrap();
    for broken in [&whole[..4100], b"something else"] {
        fs::write(&top, broken).unwrap();
        refused(pier.meta(), ErrorKind::NotALog, "no LMDB environment");
        refused(pier.save_meta(&life(9)), ErrorKind::NotALog, "no LMDB environment");
        assert_eq!(fs::read(&top).unwrap(), broken);
    }
    fs::remove_file(&top).unwrap();
    std::os::unix::fs::symlink(last.join("data.mdb"), &top).unwrap();
    assert_eq!(pier.meta().unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(copy_of(&last), PIER_META);
}

/// The process ends, or a call fails, before each call of a save. LMDB gets the new values first. The metadata is then
/// old or new, or reading reports both values, and the same save repairs the difference.
// Promise: pier-metadata.
#[test]
fn repeating_an_interrupted_metadata_save_completes_it() {
    let (mut old, mut half, mut new) = (0, 0, 0);
    for dead in [true, false] {
        let mut call = 1;
        loop {
            let (_dir, dest, last) = pier();
            let armed = Arc::new(std::sync::atomic::AtomicU64::new(u64::MAX));
            let at = armed.clone();
            let disk = Watched::new(move |now, _| {
                let at = at.load(Ordering::Relaxed);
                match now == at || (dead && now > at) {
                    true => Err(std::io::ErrorKind::Other.into()),
                    false => Ok(()),
                }
            });
            let options = book::Options::new().storage(Arc::new(disk.clone()));
            let pier = options.open_pier(&dest, Mode::Append).unwrap();
            armed.store(disk.calls() + call, Ordering::Relaxed);
            let struck_at = disk.calls() + call;
            let saved = pier.save_meta(&life(9));
            let struck = disk.calls() >= struck_at;
            armed.store(u64::MAX, Ordering::Relaxed);
            drop(pier);

            let after = Meta { life: Some(9), ..PIER_META };
            let found = (top_of(&dest), copy_of(&last));
            let unsynced = Arc::new(Watched::idle());
            let options = book::Options::new().storage(unsynced);
            let pier = options.open_pier(&dest, Mode::Append).unwrap();
            match found {
                (top, copy) if top == copy => {
                    assert_eq!(pier.meta().unwrap(), top);
                    assert!(top == after || saved.is_err(), "call {call}");
                    (old, new) = (old + u32::from(top != after), new + u32::from(top == after));
                }
                (top, copy) => {
                    assert_eq!((top, copy), (after, PIER_META), "call {call}");
                    saved.unwrap_err();
                    let says = "life is 9 in data.mdb, the pier's own, but 4 in 0i60/meta.bin";
                    refused(pier.meta(), ErrorKind::Corrupt, says);
                    half += 1;
                }
            }
            pier.save_meta(&life(9)).unwrap();
            assert_eq!((top_of(&dest), copy_of(&last)), (after, after));
            if !struck {
                break;
            }
            call += 1;
        }
    }
    assert!(old > 4 && half > 4 && new > 1, "{old} old, {half} differ, {new} new");
}

/// A reader may look between the two steps of another process.
#[test]
fn a_save_by_another_process_is_waited_for() {
    let (_dir, dest, last) = pier();
    let looks = Arc::new(AtomicUsize::new(0));
    let (looked, epoch) = (looks.clone(), last.clone());
    let disk = Watched::new(move |_, path| {
        if path.ends_with("0i60/meta.bin") && looked.fetch_add(1, Ordering::Relaxed) == 8 {
            save_copy(&epoch, life(4));
        }
        Ok(())
    });
    let options = book::Options::new().storage(Arc::new(disk));
    let pier = options.open_pier(&dest, Mode::Read).unwrap();
    save_copy(&last, life(3));
    assert_eq!(pier.meta().unwrap(), PIER_META);
    assert!(looks.load(Ordering::Relaxed) > 8);
}

/// LMDB opens an environment once in a process.
#[test]
fn threads_read_and_save_the_metadata_at_once() {
    let (_dir, dest, _) = pier();
    let pier = Pier::append_to(&dest).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..30 {
                    let found = pier.meta().unwrap();
                    assert_eq!(found.who.unwrap(), u128::from(found.life.unwrap() << 6));
                }
            });
        }
        for number in 4..24 {
            let meta = Meta { who: Some(u128::from(number) << 6), ..life(number) };
            pier.save_meta(&meta).unwrap();
        }
    });
}
