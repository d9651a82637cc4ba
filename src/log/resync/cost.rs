//! The cost of reading after damage: the bytes read, and the answers.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::ground::locks::Mutex;
use crate::scan::search::Budget;
use crate::scan::toy::Toy;
use crate::scan::{Scanned, Scanner};
use crate::sidecar::Index;
use crate::storage::counted::Counted;

/// `2 * damaged` records, a bit of the payload of every second one flipped.
fn every_second<F: Framing>(framing: F, damaged: usize) -> Counted {
    let mut file = Counted::default();
    for n in 0..2 * damaged {
        let at = file.bytes.len();
        framing.encode(&mut file.bytes, F::Tag::default(), &[0xee; 20]);
        if n % 2 == 0 {
            file.bytes[at + 20] ^= 1;
        }
    }
    file
}

/// Read a file like a cursor that passes over damage. Returns the number of records, the number of
/// proved records, and the damages.
fn walk<F: Framing>(
    file: &Counted,
    framing: F,
    rescue: bool,
    mut learnt: Learnt<F>,
) -> (usize, usize, Vec<Damage>) {
    let end = file.bytes.len() as u64;
    let index = Arc::new(Mutex::new(Index::empty(Path::new("/s"))));
    let evidence = Evidence::new(index, None, None);
    let mut scanner = Scanner::of_frames(framing, 0, end);
    let (mut given, mut proved, mut damages, mut is_proved) = (0, 0, Vec::new(), true);
    loop {
        match scanner.next(file).unwrap() {
            Scanned::Record { .. } => {
                (given, proved) = (given + 1, proved + usize::from(is_proved))
            }
            Scanned::End => return (given, proved, damages),
            Scanned::Stop { offset: at, why } => {
                let stretch = Stretch { file, framing, at, end, ordinal: None, rescue };
                let found = resync(stretch, &why, "", &evidence, false, &mut learnt).unwrap();
                damages.extend(found.damage);
                is_proved = damages.last().is_some_and(|damage| damage.next_proved);
                let Some((next, _)) = found.next else { return (given, proved, damages) };
                scanner.seek(next);
            }
        }
    }
}

/// A budget like a long log's, in which the 64 MiB of every search are a small part.
fn with_budget<F: Framing>(file: &Counted) -> Learnt<F> {
    let size = file.bytes.len() as u64;
    let mut learnt = Learnt::default();
    (learnt.search, learnt.corrections) = (Budget::of(8 * size), Budget::of(8 * size));
    learnt.data = Some((size, size));
    learnt
}

/// Check that a walk reads a log of a format, with every second record damaged, only a few times,
/// whatever the log's size.
pub fn is_linear<F: Framing>(framing: F) {
    for damaged in [1_000, 4_000] {
        for rescue in [false, true] {
            let file = every_second(framing, damaged);
            let learnt = with_budget(&file);
            let (given, proved, damages) = walk(&file, framing, rescue, learnt);
            assert_eq!((given, proved, damages.len()), (damaged, damaged, damaged));
            let (read, size) = (file.read(), file.bytes.len() as u64);
            let most = 8 * size + (1 << 20);
            assert_eq!(read.max(most), most);
        }
    }
}

/// Many heads each claim most of the file, an intact record follows each head, and only the last
/// records are proved: for each head, a walk searched the rest of the file. Now the search ends,
/// and the report says so.
#[test]
fn a_search_that_would_be_quadratic_ends() {
    let framing = Toy::new(1 << 32);
    let mut file = Counted::default();
    let (pairs, bytes_of_pair) = (300, 60 + 24 + 200);
    let len = pairs * bytes_of_pair;
    for pair in 0..pairs {
        let claim = (len + 1_000 - pair * bytes_of_pair) as u64;
        file.bytes.extend(claim.to_le_bytes());
        file.bytes.extend([0xee; 52]);
        framing.encode(&mut file.bytes, 0, &[0xdd; 200]);
    }
    file.bytes.extend([0xee; 500]);
    (0..10).for_each(|_| _ = framing.encode(&mut file.bytes, 0, &[0xdd; 200]));
    let size = file.bytes.len() as u64;
    let (given, proved, damages) = walk(&file, framing, false, with_budget(&file));
    assert!(given < pairs && proved <= given);
    assert!(damages.iter().any(|damage| damage.reason.ends_with(GIVEN_UP)));
    assert!(damages.last().is_some_and(|damage| !damage.next_proved));
    let read = file.read();
    assert_eq!(read.max(24 * size), 24 * size);
}
