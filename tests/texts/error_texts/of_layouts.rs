//! Refusals of a book's other layouts, and errors of a conversion.

use deedbook::book::{Layout, Options};

use crate::error_texts::of_book::tried;

use super::*;

const FILE: &str = "/log/book.log";
const SLOTS: [usize; 2] = [0, 4096];
const DEEDS_AT: usize = 8192;
const LEN: usize = 60;

fn options(disk: &Sim) -> Options {
    let storage = Arc::new(disk.clone());
    Options::new().durability(Durability::Always).storage(storage)
}

/// A closed book in slots with four deeds of 60 bytes, in batches of the given sizes.
fn written(batches: &[usize]) -> Sim {
    let disk = Sim::new();
    let in_slots = options(&disk).layout(Layout::Slots);
    let book = in_slots.open("/log", Mode::Create).unwrap();
    for &deeds in batches {
        let mut batch = Batch::<BookFormat>::new(1000);
        (0..deeds).for_each(|n| batch.push(n as u32, &[7; LEN - 20]).unwrap());
        book.append_batch(&batch, None, None).unwrap();
    }
    book.close().unwrap();
    disk
}

/// The same without a sidecar, and changed.
fn changed(batches: &[usize], change: impl Fn(&mut Vec<u8>)) -> Sim {
    let mut bytes = read_file(&written(batches), Path::new(FILE));
    change(&mut bytes);
    let disk = Sim::new();
    disk.create_dir(Path::new("/log")).unwrap();
    write_file(&disk, Path::new(FILE), &bytes);
    disk
}

pub fn all(texts: &mut Texts) {
    ends(texts);
    choices(texts);
    conversions(texts);
}

fn ends(texts: &mut Texts) {
    let mut here = texts.situation("slots: damaged");
    let changes: [fn(&mut Vec<u8>); 5] = [
        // A deed that no slot counts; then the first batch, both slots, no batch, and one slot.
        |log| log.extend_from_within(DEEDS_AT..),
        |log| log[DEEDS_AT + 30] ^= 1,
        |log| SLOTS.iter().for_each(|at| log[at + 30] ^= 1),
        |log| log.truncate(DEEDS_AT),
        |log| log[SLOTS[1] + 30] ^= 1,
    ];
    for change in changes {
        tried(&mut here, &changed(&[4], change));
    }
    let disk = written(&[2, 2]);
    let mut changed = read_file(&disk, Path::new(FILE));
    changed[DEEDS_AT + 2 * LEN + 30] ^= 1;
    write_file(&disk, Path::new(FILE), &changed);
    tried(&mut here, &disk);
    // The newest batch has a checksum in the header; earlier batches have only the checksums of their blocks.
    let disk = written(&[2000, 1]);
    let mut rotten = read_file(&disk, Path::new(FILE));
    rotten[DEEDS_AT + 30] ^= 1;
    write_file(&disk, Path::new(FILE), &rotten);
    tried(&mut here, &disk);
}

fn choices(texts: &mut Texts) {
    let mut here = texts.situation("book: layouts asked for");
    let disk = written(&[4]);
    let asking = |layout| options(&disk).layout(layout);
    here.refused("open as packed", asking(Layout::Packed).open("/log", Mode::Read));
    here.refused("create as padded", asking(Layout::Padded).open("/new", Mode::Create));
    here.refused("parse", "slot".parse::<Layout>());
}

fn conversions(texts: &mut Texts) {
    let mut here = texts.situation("book: conversions");
    let disk = written(&[4]);
    let run = |disk: &Sim, to: Layout| options(disk).convert("/log", "/to", to, |_, _| Ok(()));
    run(&disk, Layout::Packed).unwrap();
    let beside = written(&[4]);
    beside.create_dir(Path::new("/to")).unwrap();
    write_file(&beside, Path::new("/to/meta.bin"), &[0; 256]);
    here.refused("beside another book's metadata", run(&beside, Layout::Packed));
    let twice = written(&[4]);
    options(&twice)
        .convert("/log", "/to", Layout::Packed, |_, _| {
            here.tried("while another one is at work", run(&twice, Layout::Packed));
            Ok(())
        })
        .unwrap();
    failing(&mut here);
    assert!(options(&disk).verify("/to").unwrap().ok());
}

/// Each call of the storage in turn, until none is left, after a conversion that was killed.
fn failing(here: &mut Situation<'_>) {
    for at in 1.. {
        let disk = written(&[4]);
        for dir in ["/to", "/to/.converting"] {
            disk.create_dir(Path::new(dir)).unwrap();
        }
        write_file(&disk, Path::new("/to/.converting/book.log"), b"half");
        disk.set_seed(1);
        disk.inject(Fault::once(at, What::Error(Io::Other)));
        let done = options(&disk).convert("/log", "/to", Layout::Packed, |_, _| Ok(()));
        here.tried("convert", done);
        if disk.fired() == 0 {
            break;
        }
    }
}
