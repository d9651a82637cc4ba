//! The layout `slots`: appends and syncs take turns at two headers.

use std::sync::Arc;

use deedbook::Durability;
use deedbook::Mode;
use deedbook::book::{Book, Layout, Options};
use shuttle::thread;

use crate::disk::{Disk, Trouble};
use crate::{check_share, payload};

fn open(disk: &Disk, durability: Durability) -> Book {
    let layout = Some(Layout::Slots);
    let options =
        Options::new().durability(durability).layout(layout).storage(Arc::new(disk.clone()));
    options.open("/log", Mode::Append).expect("the log opens")
}

/// The event and all earlier events survive a power cut at this very moment.
fn acknowledged(disk: &Disk, event: u64, jam: &[u8]) {
    let book = open(&disk.after_power_cut(), Durability::Manual);
    let deeds: Vec<_> = book.iter(1..).unwrap().map(|deed| deed.unwrap()).collect();
    assert!(deeds.len() as u64 >= event, "event {event} is lost, {} are there", deeds.len());
    assert_eq!(deeds[event as usize - 1].jam, jam, "event {event}");
}

/// The next append must not change a header under sync: a power cut in the middle of the sync would
/// leave neither the old header nor the new one.
// Promise: slots-threads.
#[test]
fn returned_appends_in_slots_survive_a_power_cut() {
    check_share(1.0, || {
        let disk = Disk::new(Trouble::None);
        let book = open(&disk, Durability::Always);
        let threads: Vec<_> = (0..3u8)
            .map(|number| {
                let (book, disk) = (book.clone(), disk.clone());
                thread::spawn(move || {
                    for i in 0..2 {
                        let event = book.append(7, &payload(number, i)).unwrap();
                        acknowledged(&disk, event, &payload(number, i));
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// Synced events stay, while other threads append and sync.
// Promise: slots-threads.
#[test]
fn synced_slots_events_survive_concurrent_appends() {
    check_share(1.0, || {
        let disk = Disk::new(Trouble::None);
        let book = open(&disk, Durability::Manual);
        let threads: Vec<_> = (0..3u8)
            .map(|number| {
                let (book, disk) = (book.clone(), disk.clone());
                thread::spawn(move || {
                    let event = book.append(7, &payload(number, 0)).unwrap();
                    book.sync().unwrap();
                    acknowledged(&disk, event, &payload(number, 0));
                    book.append(7, &payload(number, 1)).unwrap();
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        book.close().unwrap();
        acknowledged(&disk, 6, &open(&disk, Durability::Manual).read(6).unwrap().jam);
    });
}
