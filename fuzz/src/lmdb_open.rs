//! A good environment with any numbers changed: reading and exporting end with an error or with bytes of the file. LMDB
//! runs in this process, so a signal is a finding.

use std::fs;
use std::path::Path;

use deedbook::book::Book;
use deedbook::book::lmdb::{Environment, Options};

use super::kit::Input;

const GOOD: &[u8] = include_bytes!("../../tests/data/lmdb/lmdb-100/data.mdb");
const PAGE: usize = 4096;

/// The target: whether LMDB also writes, then changes of a few bytes each.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let writes = input.u8() & 7 == 7;
    let mut bytes = GOOD.to_vec();
    while !input.is_empty() {
        let page = input.below(GOOD.len() / PAGE) * PAGE;
        let low = usize::from(input.u8());
        // The head of a page with the offsets, the node at an offset, or any byte.
        let at = page
            + match input.u8() {
                how @ 0..=95 => low % (16 + usize::from(how)),
                how @ 96..=191 => {
                    let offset = page + 16 + 2 * usize::from(how - 96);
                    let node = usize::from(u16::from_le_bytes([GOOD[offset], GOOD[offset + 1]]));
                    (node + low % 24) % PAGE
                }
                how => (low | usize::from(how) << 8) % PAGE,
            };
        for place in at..(at + 1 + usize::from(input.u8() % 8)).min(bytes.len()) {
            bytes[place] = input.u8();
        }
    }
    let thread = std::thread::current().id();
    let name = format!("deedbook-lmdb-{}-{thread:?}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    fs::create_dir_all(dir.join("lmdb")).unwrap();
    fs::write(dir.join("lmdb/data.mdb"), &bytes).unwrap();
    read(&dir.join("lmdb"), bytes.len());
    if writes {
        write(&dir);
    }
    fs::remove_dir_all(&dir).unwrap();
}

fn read(dir: &Path, file_bytes: usize) {
    let Ok(environment) = Environment::open(dir) else { return };
    let mut total = 0;
    let _ = environment.each(0, &mut |_, _, jam| {
        total += jam.len();
        Ok(std::ops::ControlFlow::Continue(()))
    });
    assert!(total <= file_bytes, "{total} bytes of a file of {file_bytes}");
    let _ = (environment.bounds(), environment.meta());
}

/// Export the hundred events and one more to the changed environment.
fn write(dir: &Path) {
    let good = dir.join("good");
    fs::create_dir_all(&good).unwrap();
    fs::write(good.join("data.mdb"), GOOD).unwrap();
    let source = Book::create(dir.join("book")).unwrap();
    let environment = Environment::open(&good).unwrap();
    environment
        .each(1, &mut |_, mug, jam| {
            source.append(mug, jam).map(|_| std::ops::ControlFlow::Continue(()))
        })
        .unwrap();
    drop(environment);
    source.append(0, b"one more").unwrap();
    source.close().unwrap();
    drop(source);
    let _ = Options::default().export(dir.join("book"), dir.join("lmdb"), |_, _| Ok(()));
}
