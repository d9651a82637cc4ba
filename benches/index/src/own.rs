//! The index as the crate has it.

use std::time::{Duration, Instant};

use deedbook::engine::nostr::{encode, parse};
use deedbook::nostr::{Change, Event, EventRef, Filter, Flags, Id, Index, Location};

use crate::events::{self, Numbers};
use crate::{DAY, GETS, LIMIT, QUERIES};

/// Time the index.
pub fn measure(events: &[events::Event], batch: usize) {
    println!("\nthe index");
    let scratch = tempfile::tempdir_in(".").unwrap();
    let records: Vec<Vec<u8>> = events.iter().map(record).collect();
    let index = Index::open(scratch.path()).unwrap();
    let begin = Instant::now();
    for (i, part) in records.chunks(batch).enumerate() {
        let place = |j: usize| Location { segment: i as u32, offset: j as u32 * 4096 };
        let part: Vec<EventRef<'_>> = part.iter().map(|record| parse(record).unwrap()).collect();
        let changes: Vec<Change<'_>> =
            part.iter().enumerate().map(|(j, event)| Change::Insert(event, place(j))).collect();
        index.apply(&changes, Some(&(i as u64).to_be_bytes())).unwrap();
    }
    let rate = events.len() as f64 / begin.elapsed().as_secs_f64();
    println!("  insert            {rate:>9.0} events/s");
    drop(index);
    let begin = Instant::now();
    let index = Index::open(scratch.path()).unwrap();
    println!("  open, clean       {:>9.1} ms", begin.elapsed().as_secs_f64() * 1e3);
    let mut numbers = Numbers::new(2);
    let mut begin = crate::cpu_seconds();
    for number in 0..2 * GETS {
        if number == GETS {
            begin = crate::cpu_seconds();
        }
        let id = Id(events[numbers.below(events.len())].id);
        index.location(&id).unwrap().expect("an event");
    }
    println!("  get by id         {:>9.0} /s", GETS as f64 / (crate::cpu_seconds() - begin));
    let mut any = || &events[numbers.below(events.len())];
    time("profile", &index, || Filter {
        authors: Some([author(any())].into()),
        kinds: Some([0].into()),
        ..Filter::default()
    });
    time("thread", &index, || {
        let tag = std::iter::repeat_with(&mut any)
            .find_map(|event| event.tags.iter().find(|(letter, _)| *letter == b'e'));
        let value = text(&tag.unwrap().1);
        Filter { tags: [(b'e', [value].into())].into(), ..Filter::default() }
    });
    time("notes of 50", &index, || Filter {
        authors: Some((0..50).map(|_| author(any())).collect()),
        kinds: Some([1].into()),
        ..Filter::default()
    });
    time("kind in a day", &index, || {
        let event = any();
        Filter {
            kinds: Some([event.kind].into()),
            since: Some((event.at - DAY).into()),
            until: Some(event.at.into()),
            ..Filter::default()
        }
    });
}

fn time(name: &str, index: &Index, mut filter: impl FnMut() -> Filter) {
    let (mut took, mut found) = (Vec::new(), 0);
    for round in 0..2 * QUERIES {
        let filter = filter();
        let begin = Instant::now();
        let given = index.query(&filter).unwrap().take(LIMIT).map(Result::unwrap).count();
        let elapsed: Duration = begin.elapsed();
        if round >= QUERIES {
            took.push(elapsed);
            found += given;
        }
    }
    crate::report(name, took, found);
}

fn author(event: &events::Event) -> [u8; 32] {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&event.author);
    key
}

fn text(value: &[u8; 8]) -> String {
    value.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn record(event: &events::Event) -> Vec<u8> {
    let tags =
        event.tags.iter().map(|(letter, value)| vec![char::from(*letter).into(), text(value)]);
    let event = Event {
        id: Id(event.id),
        pubkey: author(event),
        created_at: event.at,
        kind: event.kind,
        tags: tags.collect(),
        content: String::new(),
        sig: [0; 64],
    };
    let mut bytes = Vec::new();
    encode(&event, Flags::default(), false, 4096, &mut bytes).unwrap();
    bytes
}
