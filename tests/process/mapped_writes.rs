//! The real disk: stores through a map, disks without a map, and files beyond 4 GiB.
#![cfg(target_os = "linux")]

use deedbook::book::Options;

use crate::support::prelude::*;

/// Small writes begin to go through the map after this many bytes.
const UNMAPPED_BYTES: usize = 64 << 10;

fn is_mapped(path: &Path) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.contains(path.to_str().unwrap())
}

/// Appends enough to a book for a map, and reads the book. Returns whether there was a map at the end.
fn appends_are_mapped(path: &Path, storage: Disk) -> bool {
    let durability = Durability::Manual;
    let options = Options::new().durability(durability).storage(Arc::new(storage));
    let book = options.open(path, Mode::Create).unwrap();
    for i in 0..1000u32 {
        book.append(i, &[i as u8; 200]).unwrap();
    }
    let mapped = is_mapped(&path.canonicalize().unwrap());
    book.close().unwrap();
    let read = Book::open(path).unwrap();
    for (i, deed) in read.iter(..).unwrap().map(Result::unwrap).enumerate() {
        assert_eq!((deed.mug, deed.jam), (i as u32, vec![i as u8; 200]));
    }
    assert_eq!(read.len().unwrap(), 1000);
    mapped
}

/// Under `faulthandler` enabled late, a cut by another process ended the writer, and the map could not be turned off.
#[test]
fn a_disk_without_mapped_writes_maps_nothing() {
    let dir = tempfile::tempdir().unwrap();
    assert!(appends_are_mapped(&dir.path().join("mapped"), Disk));
    assert!(!appends_are_mapped(&dir.path().join("plain"), Disk::without_mapped_writes()));
}

#[test]
fn the_environment_switches_mapped_writes_off() {
    for (set, mapped) in [(None, true), (Some("0"), false), (Some("1"), true)] {
        let dir = tempfile::tempdir().unwrap();
        let role = if mapped { "mapped" } else { "plain" };
        let mut child = in_role("mapped_writes::child", role, &dir.path().join("book"));
        child.env_remove("DEEDBOOK_MAPPED_WRITES");
        if let Some(set) = set {
            child.env("DEEDBOOK_MAPPED_WRITES", set);
        }
        let done = child.output().unwrap();
        let printed = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && printed.contains("appended"), "{set:?}: {printed}");
    }
}

#[test]
fn child() {
    let Some((role, path)) = role() else { return };
    assert_eq!(appends_are_mapped(&path, Disk), role == "mapped");
    eprintln!("appended");
}

/// With the map's offset in 32 bits, small appends beyond 4 GiB overwrote the records 4 GiB before.
#[test]
fn small_writes_beyond_4_gib_land_correctly() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large");
    let file: Box<dyn File> = Disk.create_new(&path, 0o600).unwrap();
    let far = (4u64 << 30) + 4096;
    file.write_at(b"first", 4096).unwrap();
    // Sparse up to this offset, to reserve only 1 MiB of space.
    file.set_len(far).unwrap();
    assert!(file.allocate(far + (1 << 20)).unwrap(), "this file system cannot reserve space");
    file.write_at(&vec![1; UNMAPPED_BYTES], far).unwrap();
    let at = far + UNMAPPED_BYTES as u64;
    file.write_at(b"beyond", at).unwrap();
    assert!(is_mapped(&path.canonicalize().unwrap()));
    let reader = Disk.open(&path, Access::Read).unwrap();
    let read = |offset: u64, len: usize| {
        let mut bytes = vec![0; len];
        assert_eq!(reader.read_at(&mut bytes, offset).unwrap(), len);
        bytes
    };
    assert_eq!((read(4096, 5), read(at, 6)), (b"first".to_vec(), b"beyond".to_vec()));
    // The place of a 32-bit offset.
    assert_eq!(read(at & 0xffff_ffff, 6), [0; 6]);
}
