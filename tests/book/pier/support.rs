//! Piers to be opened and broken.

use deedbook::book::pier::Epoch;

pub use crate::prelude::*;
use crate::support::crashes;

pub const PIER: &str = "/zod";
pub const COPY: &str = "/copy";
pub const LOG: &str = "/zod/.urb/log";

pub fn options(disk: &Sim) -> Options {
    Options::new().storage(Arc::new(disk.clone()))
}

pub fn manual(disk: &Sim) -> Options {
    options(disk).durability(Durability::Manual)
}

pub fn appending(disk: &Sim) -> Pier {
    options(disk).open_pier(PIER, Mode::Append).unwrap()
}

pub fn reading(disk: &Sim) -> Pier {
    options(disk).open_pier(PIER, Mode::Read).unwrap()
}

pub fn jam(event: u64) -> Vec<u8> {
    format!("event {event}").repeat(1 + event as usize % 3).into_bytes()
}

pub fn append(pier: &Pier, events: std::ops::RangeInclusive<u64>) {
    for event in events {
        assert_eq!(pier.append(event as u32, &jam(event)).unwrap(), event);
    }
}

/// A closed pier with the epochs 0i0 (events 1 to 3), 0i3 (4 and 5), 0i5 (6 to 9).
pub fn three_epochs() -> Sim {
    let disk = Sim::new();
    let pier = appending(&disk);
    append(&pier, 1..=3);
    assert_eq!(pier.roll().unwrap(), 3);
    append(&pier, 4..=5);
    assert_eq!(pier.roll().unwrap(), 5);
    append(&pier, 6..=9);
    pier.close().unwrap();
    disk
}

/// A directory of epochs that no pier made: the number of each, and how many events.
pub fn epochs(of: &[(u64, u64)]) -> Sim {
    let disk = Sim::new();
    for dir in ["/zod", "/zod/.urb", LOG] {
        disk.create_dir(Path::new(dir)).unwrap();
    }
    for &(number, events) in of {
        let book = options(&disk).open(epoch(number), Mode::Create).unwrap();
        for event in number + 1..=number + events {
            assert_eq!(book.append(event as u32, &jam(event)).unwrap(), event);
        }
        book.close().unwrap();
    }
    disk
}

pub fn epoch(number: u64) -> PathBuf {
    Path::new(LOG).join(format!("0i{number}"))
}

pub fn put(disk: &Sim, path: impl AsRef<Path>, bytes: &[u8]) {
    write_file(disk, path.as_ref(), bytes);
}

/// Every event of a pier in order, checked against what was written.
pub fn all(pier: &Pier) -> Vec<u64> {
    read(pier, OnCorrupt::Raise)
}

pub fn read(pier: &Pier, on_corrupt: OnCorrupt) -> Vec<u64> {
    let mut events = Vec::new();
    let mut cursor = pier.cursor(.., on_corrupt).unwrap();
    while let Some(deed) = cursor.next().unwrap() {
        let event = deed.event.unwrap();
        assert_eq!((deed.mug, deed.jam), (event as u32, &*jam(event)));
        events.push(event);
    }
    events
}

pub fn layouts(pier: &Pier) -> Vec<Layout> {
    pier.epochs().unwrap().iter().map(|epoch| epoch.layout).collect()
}

pub fn numbers(pier: &Pier) -> Vec<u64> {
    pier.epochs().unwrap().iter().map(|epoch| epoch.number).collect()
}

pub fn dropped(epochs: deedbook::Result<Vec<Epoch>>) -> Vec<u64> {
    epochs.unwrap().iter().map(|epoch| epoch.number).collect()
}

/// Crash at each call that was recorded, and in the opening after it.
pub fn crash_each(disk: &Sim, states: u64, judge: impl Fn(&Sim)) -> Counts {
    crashes::crash_each(disk, states, |disk| drop(appending(disk)), judge)
}
