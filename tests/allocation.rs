//! Hostile lengths never make the library reserve more memory than there are bytes to read.
//!
//! A binary of its own, because it counts every allocation of the process; one test, because tests
//! share the count.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use deedbook::book::{Book, Mode, OnCorrupt, Options, repair, salvage, verify};

/// Buffers of fixed size: blocks of the scanner, batches of a salvage.
const FIXED_BYTES: u64 = 4 << 20;

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn count(more: usize) {
    let now = NOW.fetch_add(more, Ordering::Relaxed) + more;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: hands everything to the system's allocator and counts sizes.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The most that `work` had at one time beyond what there was before.
fn peak_of(work: impl FnOnce()) -> u64 {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    work();
    (PEAK.load(Ordering::Relaxed) - before) as u64
}

fn deed(jam: &[u8]) -> Vec<u8> {
    let mut deed = (jam.len() as u64 + 4).to_le_bytes().to_vec();
    deed.extend(9u32.to_le_bytes());
    deed.extend(jam);
    let crc = crc32fast::hash(&deed);
    deed.extend(crc.to_le_bytes());
    deed.extend((jam.len() as u64 + 4).to_le_bytes());
    deed
}

fn header(first: u64) -> Vec<u8> {
    [&0x424F_4F4Bu32.to_le_bytes()[..], &1u32.to_le_bytes(), &first.to_le_bytes()].concat()
}

/// A mark slot with these numbers, which the codec takes for intact; see `sidecar/mark.rs`.
fn mark(numbers: [u64; 5], sums: [u32; 2], index: (u64, u64)) -> Vec<u8> {
    let mut slot = b"DBMK\x01\0\0\0".to_vec();
    numbers.iter().for_each(|number| slot.extend(number.to_le_bytes()));
    sums.iter().for_each(|sum| slot.extend(sum.to_le_bytes()));
    slot.extend(index.0.to_le_bytes());
    slot.extend(index.1.to_le_bytes());
    slot.resize(124, 0);
    let crc = crc32fast::hash(&slot);
    slot.extend(crc.to_le_bytes());
    slot
}

/// A file of `len` bytes with some parts written, the rest a hole.
fn sparse(path: &Path, len: u64, parts: &[(u64, &[u8])]) {
    let mut file = fs::File::create(path).unwrap();
    file.set_len(len).unwrap();
    for (at, bytes) in parts {
        file.seek(SeekFrom::Start(*at)).unwrap();
        file.write_all(bytes).unwrap();
    }
}

/// Everything that reads a log of unknown origin; results do not matter here.
fn handle(dir: &Path, options: &Options, writes: bool) {
    let progress = |_, _| Ok(());
    let _ = verify(dir, options, progress);
    if let Ok(book) = options.open(dir, Mode::Read) {
        read(&book);
        let _ = book.refresh();
    }
    let target = dir.with_extension("salvaged");
    let _ = salvage(dir, &target, options, progress);
    let _ = fs::remove_dir_all(&target);
    if writes {
        if let Ok(book) = options.open(dir, Mode::Append) {
            let _ = book.append(1, b"one more");
            read(&book);
        }
        let _ = repair(dir, options, deedbook::Repair::default());
    }
}

fn read(book: &Book) {
    for on_corrupt in [OnCorrupt::Raise, OnCorrupt::Skip] {
        if let Ok(mut deeds) = book.cursor(0, None, on_corrupt) {
            while let Ok(Some(_)) = deeds.next() {}
        }
    }
    if let Ok(mut deeds) = book.cursor_back(0, None) {
        while let Ok(Some(_)) = deeds.next() {}
    }
    let _ = book.splits(1 << 20, 0, None);
    let _ = book.read(1);
    let _ = book.read(u64::MAX);
    let _ = book.meta();
}

#[test]
fn hostile_lengths_never_reserve_more_than_there_is_to_read() {
    let root = tempfile::tempdir().unwrap();
    let mut checked = 0;
    let mut check =
        |name: &str, options: &Options, len: u64, parts: &[(u64, &[u8])], mark: &[u8]| {
            for writes in [false, true] {
                checked += 1;
                let dir = root.path().join(format!("log{checked}"));
                fs::create_dir_all(dir.join(".deedbook")).unwrap();
                sparse(&dir.join("book.log"), len, parts);
                if !mark.is_empty() {
                    fs::write(dir.join(".deedbook/mark"), mark).unwrap();
                    fs::write(dir.join(".deedbook/index"), vec![0xff; 4096]).unwrap();
                }
                let bound = len.min(options.deed_bytes_max) + FIXED_BYTES;
                let peak = peak_of(|| handle(&dir, options, writes));
                assert!(peak <= bound, "{name}, {len} bytes: {peak} bytes reserved, bound {bound}");
                fs::remove_dir_all(&dir).unwrap();
            }
        };
    let usual = Options::default();
    let (first, header, good) = (1u64, header(1), deed(b"good"));
    let lens = [0, 1, 3, 5, 1000, 1 << 20, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, 1 << 40, 1 << 62];
    let lens = lens.into_iter().chain([u64::MAX - 20, u64::MAX - 19, u64::MAX - 4, u64::MAX]);
    for claimed in lens {
        let head = [&claimed.to_le_bytes()[..], &[7; 50]].concat();
        let trailer = claimed.to_le_bytes();
        for len in [60, 200, 70_000, 9 << 20] {
            // As the first deed, behind a good one, and with a trailer that agrees.
            let at = 16 + good.len() as u64;
            let end = len - 8;
            let name = format!("length {claimed}");
            check(
                &name,
                &usual,
                len,
                &[(0, &header), (16, &head[..len.min(58) as usize - 16])],
                &[],
            );
            if len > 100 {
                check(
                    &name,
                    &usual,
                    len,
                    &[(0, &header), (16, &good), (at, &head), (end, &trailer)],
                    &[],
                );
            }
        }
    }
    // A deed that fills the whole file, framed but damaged; within the limit, and beyond it.
    for limit in [usual.deed_bytes_max, 1 << 20] {
        let options = Options { deed_bytes_max: limit, ..usual.clone() };
        let len = 48u64 << 20;
        let claimed = (len - 16 - 20).to_le_bytes();
        check(
            "whole file",
            &options,
            len,
            &[(0, &header), (16, &claimed), (len - 8, &claimed)],
            &[],
        );
    }
    // A wall of heads: each claims what is left, and none ends where it says.
    let wall: Vec<u8> = (0..4000u64).flat_map(|i| (70_000 - 17 * i).to_le_bytes()).collect();
    check("wall of heads", &usual, 100_000, &[(0, &header), (16, &good), (41, &wall)], &[]);
    // Marks and indexes that ask for the moon.
    let sum = crc32fast::hash(&good[..good.len() - 12]);
    for number in [1, 1 << 20, 1 << 40, u64::MAX / 24, u64::MAX / 24 + 1, u64::MAX] {
        let end = 16 + good.len() as u64;
        for numbers in [
            [1, first, 1, end, 16],
            [1, first, number, end, 16],
            [1, number, number, end, 16],
            [1, first, 1, number, 16],
            [1, first, 1, number, number],
            [number, first, 1, number, number.wrapping_sub(40)],
        ] {
            let mark = mark(numbers, [sum, sum], (number, number));
            check("mark", &usual, 300, &[(0, &header), (16, &good), (41, &good)], &mark);
        }
    }
    assert!(checked > 200);

    // Metadata of any size is not read whole.
    let dir = root.path().join("meta");
    Book::create(&dir).unwrap().close().unwrap();
    sparse(&dir.join("meta.bin"), 1 << 40, &[]);
    let peak = peak_of(|| assert!(Book::open(&dir).unwrap().meta().is_err()));
    assert!(peak <= FIXED_BYTES, "{peak} bytes reserved");
    // The count counts.
    assert!(peak_of(|| drop(vec![1u8; 10 << 20])) >= 10 << 20);
}
