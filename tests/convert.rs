//! Conversions that are killed, cut off from power, and lied to: the source stays as it is, and what is
//! called a copy is one.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod common;
#[path = "common/flips.rs"]
mod flips;

use std::io::ErrorKind as Io;
use std::path::Path;
use std::sync::Arc;

use common::{Event, contents, read_all, read_file};
use deedbook::book::{Layout, Meta, Mode, Options, convert};
use deedbook::storage::sim::{Fault, Sim, What};
use deedbook::storage::{Disk, Storage};
use deedbook::{Durability, ErrorKind, Result};
use flips::Flips;

const SOURCE: &str = "/source";
const TARGET: &str = "/target";
/// Of a power cut that can leave more states.
const STATES: u64 = 40;
const WAYS: [(Layout, Layout); 2] =
    [(Layout::Packed, Layout::Slots), (Layout::Slots, Layout::Packed)];

fn on(storage: impl Storage + 'static) -> Options {
    Options::new().storage(Arc::new(storage)).durability(Durability::Manual)
}

fn events() -> Vec<Event> {
    (0..40).map(|n| (n, vec![n as u8 + 1; 1 + 7 * n as usize])).collect()
}

/// A closed book with these events and metadata, on stable storage.
fn write(options: &Options, path: &Path, layout: Layout, events: &[Event]) {
    let options = options.clone().layout(layout);
    let book = options.open(path, Mode::Create).unwrap();
    for (mug, jam) in events {
        book.append(*mug, jam).unwrap();
    }
    book.save_meta(&Meta { life: Some(3), ..Meta::default() }).unwrap();
    book.close().unwrap();
}

fn begun(from: Layout) -> Sim {
    let disk = Sim::new();
    write(&on(disk.clone()), Path::new(SOURCE), from, &events());
    disk
}

fn converted(disk: &Sim, target: &str, to: Layout) -> Result<u64> {
    let report = convert(SOURCE, target, to, &on(disk.clone()), |_, _| Ok(()))?;
    Ok(report.deeds)
}

fn log_of(disk: &Sim, path: &str) -> Vec<Event> {
    let book = on(disk.clone()).open(path, Mode::Read).unwrap();
    let (deeds, failed) = read_all(&book);
    assert!(failed.is_none(), "{path}: {failed:?}");
    contents(&deeds)
}

/// The source is what it was, and a conversion that begins again, to another place, ends.
fn check_source(disk: &Sim, source: &[u8], to: Layout) {
    let there = read_file(disk, &Path::new(SOURCE).join("book.log"));
    assert!(there == source, "the source changed");
    assert_eq!(converted(disk, "/again", to).unwrap(), 40);
    assert_eq!(log_of(disk, "/again"), events());
}

#[test]
fn a_crash_at_any_step_of_a_conversion_leaves_the_source_and_no_false_event() {
    for (from, to) in WAYS {
        let disk = begun(from);
        let source = read_file(&disk, &Path::new(SOURCE).join("book.log"));
        disk.record();
        assert_eq!(converted(&disk, TARGET, to).unwrap(), 40);
        let (mut moments, mut partly) = (0, 0);
        for (at, moment) in disk.recorded().into_iter().enumerate() {
            let crashes = moment.crashes();
            let count = crashes.count().min(STATES);
            let cut = (0..count).map(|index| crashes.build(&crashes.sample(index)));
            for image in cut.chain([moment.kill()]) {
                if let Ok(book) = on(image.clone()).open(TARGET, Mode::Read) {
                    let (deeds, _) = read_all(&book);
                    assert!(events().starts_with(&contents(&deeds)), "step {at}");
                    partly += u64::from(!deeds.is_empty());
                }
            }
            check_source(&moment.kill(), &source, to);
            moments += 1;
        }
        assert!(moments > 20 && partly > 5, "{moments} moments, {partly} with events");

        // Once it returned, no power cut takes an event, or the metadata.
        let crashes = disk.crashes();
        for index in 0..crashes.count().min(STATES) {
            let image = crashes.build(&crashes.sample(index));
            assert_eq!(log_of(&image, TARGET), events());
            let book = on(image).open(TARGET, Mode::Read).unwrap();
            assert_eq!((book.layout(), book.meta().unwrap().life), (to, Some(3)));
        }
    }
}

#[test]
fn a_conversion_of_which_a_call_fails_is_an_error_or_a_copy() {
    for (from, to) in WAYS {
        let (mut failed, mut call) = (0, 1);
        loop {
            let disk = begun(from);
            let source = read_file(&disk, &Path::new(SOURCE).join("book.log"));
            disk.inject(Fault::once(call, What::Error(Io::Other)));
            let done = converted(&disk, TARGET, to);
            let struck = disk.fired() > 0;
            disk.heal();
            match done {
                Ok(deeds) => assert_eq!((deeds, log_of(&disk, TARGET)), (40, events())),
                Err(_) => failed += 1,
            }
            check_source(&disk, &source, to);
            if !struck {
                break;
            }
            call += 1;
        }
        assert!(failed > 20, "{failed} of {call} calls");
    }
}

/// A disk that stores another byte: in `slots` no checksum of a deed tells, but the comparison does.
#[test]
fn a_copy_that_differs_from_its_source_is_an_error_of_its_event() {
    let long = [vec![1; 2 << 20], b"marked".to_vec()].concat();
    for events in
        [vec![(1, b"one".to_vec()), (2, b"marked".to_vec())], vec![(1, vec![1]), (2, long)]]
    {
        let dir = tempfile::tempdir().unwrap();
        let (source, target) = (dir.path().join("source"), dir.path().join("target"));
        write(&on(Disk), &source, Layout::Packed, &events);
        let lying = on(Flips { name: "book.log", of: b"marked" });
        let done = convert(&source, &target, Layout::Slots, &lying, |_, _| Ok(()));
        let error = done.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        let says = "event 2 of the copy is not that of the source";
        assert!(error.to_string().contains(says), "{error}");
    }
}
