//! Files that are gone, torn or in another one's place, as readers, salvages and repairs see them.

use deedbook::Mode;
use deedbook::nostr::{Event, Options};
use deedbook::storage::sim::Sim;

use crate::rescue::{PAGE, on, segment};
use crate::support::{event, read};
use crate::world::DIR;

/// A note of one page.
fn long(number: u32) -> Event {
    event(1, 1000 + number, 1, &[], &format!("{number} {}", "x".repeat(2000)))
}

fn notes(numbers: std::ops::Range<u32>) -> Vec<Event> {
    numbers.map(long).collect()
}

/// A store whose process died after the commit.
fn killed(options: impl Fn(&Sim) -> Options, numbers: std::ops::Range<u32>) -> Sim {
    let disk = Sim::new();
    let store = options(&disk).open(DIR, Mode::Append).unwrap();
    store.append_many(&notes(numbers)).unwrap();
    store.commit().unwrap();
    let killed = disk.kill();
    drop(store);
    killed
}

/// The reference implementation appends where the header says. It said 4096 until a checkpoint: after a kill, that
/// program overwrote committed events.
#[test]
fn the_header_says_where_events_end() {
    let disk = killed(on, 0..5);
    let bytes = read(&disk, &segment(0));
    let field = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!((field(20), field(24)), (5, 6 * PAGE as u32));
}
