//! Environments that were made to lead LMDB out of its file.

use std::os::unix::fs::symlink;

use crate::lmdb::support::*;
use crate::support::common::Random;
use crate::support::common::lmdb_pages::{PAGE, Pages};

/// A place by chance: the head and offsets of a page, the head of a node, or any byte.
fn any_place(pages: &Pages, random: &mut Random) -> usize {
    let mut below = |bound: usize| random.below(bound as u64) as usize;
    let page = below(pages.0.len() / PAGE) * PAGE;
    let nodes = if page < 2 * PAGE { 1 } else { pages.count(page).clamp(1, 120) };
    match below(3) {
        0 => page + below(16 + 2 * nodes),
        1 => (pages.node(page, below(nodes)) + below(17)) % pages.0.len(),
        _ => page + below(PAGE),
    }
}

/// One in sixty random changes of a byte ended the process by SIGSEGV or SIGBUS. A change is found, or it
/// changes bytes of an event; every jam that comes lies in the file.
#[test]
fn a_changed_byte_never_leads_outside_the_file() {
    let (_dir, source, dest) = space();
    make_numbered(&source, 1..=300);
    let long = [&[9u8; 4][..], &[7; 9000]].concat();
    make(&source, &[(301, &long)], &[]);
    let numbers = numbered(0..=300).into_iter().map(|(_, value)| value[4..].to_vec());
    let expected: Vec<Vec<u8>> = numbers.collect();
    let path = source.join("data.mdb");
    let whole = Pages(fs::read(&path).unwrap());
    let mut random = Random(1);
    let mut refusals = 0;
    for _ in 0..400 {
        let mut bytes = whole.0.clone();
        for _ in 0..=random.below(2) {
            bytes[any_place(&whole, &mut random)] = random.next() as u8;
        }
        fs::write(&path, &bytes).unwrap();
        let Ok(environment) = Environment::open(&source) else {
            refusals += 1;
            continue;
        };
        let mut total = 0;
        let _ = environment.each(0, &mut |event, _, jam| {
            total += jam.len();
            let is_own = expected.get(event as usize).is_some_and(|own| own == jam);
            assert!(is_own || jam.is_empty() || bytes.windows(jam.len()).any(|part| part == jam));
            Ok(std::ops::ControlFlow::Continue(()))
        });
        assert!(total <= bytes.len(), "{total} bytes of jams");
        let _ = (environment.bounds(), environment.meta());
        drop(environment);
        let _ = bring(&source, &dest);
        let _ = fs::remove_dir_all(&dest);
    }
    assert!(refusals > 100, "{refusals}");
}

/// LMDB opened `lock.mdb` through a link, and cut the file that the link named.
#[test]
fn an_export_never_writes_through_a_link() {
    for name in ["data.mdb", "lock.mdb"] {
        let (dir, source, dest) = space();
        let book = Book::create(&source).unwrap();
        book.append(1, b"one").unwrap();
        book.close().unwrap();
        drop(book);
        make(&dest, &[], &[]);
        let canary = dir.path().join("canary");
        fs::write(&canary, b"own").unwrap();
        fs::remove_file(dest.join(name)).unwrap();
        symlink(&canary, dest.join(name)).unwrap();
        back(&source, &dest).unwrap_err();
        assert_eq!(fs::read(&canary).unwrap(), b"own");
    }
}
