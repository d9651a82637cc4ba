//! The sizes of pages and segments are the store's.
//!
//! A run next to the Go reference found it: opening its store of 8192-byte pages without a size began a segment of
//! 4096-byte pages. The reference has one size for all, so that its next events lay askew.

use crate::store::prelude::*;

fn unnamed(disk: &Sim) -> Options {
    let mut options = on(disk);
    (options.page_bytes, options.segment_bytes) = (None, None);
    options
}

fn append(options: &Options, numbers: Range<u32>) {
    append_and_close(options, &numbers.map(short).collect::<Vec<_>>());
}

/// The size of the pages, and how many there are, of each segment.
fn pages(disk: &Sim) -> Vec<(u32, usize)> {
    let of = |id: &u32| {
        let bytes = read(disk, &segment(*id));
        let size = u32::from_be_bytes(bytes[4..8].try_into().unwrap());
        (size, bytes.len().div_ceil(size as usize))
    };
    ids(disk).iter().map(of).collect()
}

fn made(page_bytes: u32) -> Sim {
    let disk = Sim::new();
    let options = unnamed(&disk).page_bytes(page_bytes);
    append(&options.segment_bytes(4 * u64::from(page_bytes)), 0..4);
    disk
}

#[test]
fn opening_without_sizes_keeps_the_sizes() {
    for size in [4096, 8192, 16384] {
        let disk = made(size);
        append(&unnamed(&disk), 4..8);
        assert_eq!(pages(&disk), [(size, 4), (size, 4), (size, 3)]);
    }
}

#[test]
fn store_without_manifest_keeps_its_last_page_size() {
    let disk = made(8192);
    remove_manifests(&disk);
    append(&unnamed(&disk), 4..8);
    assert_eq!(pages(&disk), [(8192, 4), (8192, 6)]);
}

#[test]
fn named_sizes_change_later_openings() {
    let disk = made(8192);
    append(&unnamed(&disk).page_bytes(4096).segment_bytes(3 * 4096), 4..5);
    append(&unnamed(&disk), 5..8);
    assert_eq!(pages(&disk), [(8192, 4), (8192, 2), (4096, 3), (4096, 3)]);
}

/// A repair opens the store without naming a size, and stores the manifest before.
#[test]
fn a_repair_keeps_the_sizes_of_a_store() {
    let disk = made(8192);
    remove(&disk, &segment(0));
    assert!(unnamed(&disk).repair(Path::new(DIR), ALL).unwrap().mended);
    append(&unnamed(&disk), 4..8);
    assert!(pages(&disk).iter().all(|(size, count)| (*size, *count <= 4) == (8192, true)));
}
