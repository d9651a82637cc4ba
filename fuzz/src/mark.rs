//! A good log with any sidecar: readers get only the log's deeds, and opening cuts nothing.

use deedbook::ErrorKind;
use deedbook::report::Verdict;
use deedbook::{Mode, Recovery};

use super::kit::{Event, HEADER, Input, Slot, World, filler, has_intact_slot, strict};
use super::views::look;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let how = input.u8();
    let mut world = World::new("/b");
    let written = write(&mut input, &world, how);
    let log = world.log();
    let places = strict(&log, 1 << 32);
    let (mark_path, index_path) = (world.sidecar("mark"), world.sidecar("index"));
    let (mark, index) = (world.read(&mark_path).unwrap(), world.read(&index_path));

    // The mark: damaged, absent, another log's, older, or forged.
    let mut forged = false;
    let mut bytes = mark.clone();
    match input.u8() & 7 {
        0 => bytes = input.bytes(255).to_vec(),
        1 => {
            world.storage.0.remove(&mark_path).unwrap();
            bytes = Vec::new();
        }
        2 => {
            let other = World::new("/c");
            write(&mut input, &other, how ^ 0x80);
            bytes = other.read(&other.sidecar("mark")).unwrap();
        }
        3 => {
            let count = input.below(places.len() + 1);
            let mut older = Slot::of(1, &places, count, world.log_id());
            older.seq = input.u8().into();
            bytes = older.bytes();
        }
        4 | 5 => {
            let count = input.below(places.len() + 1);
            let mut slot = Slot::of(1, &places, count, world.log_id());
            (0..1 + (input.u8() & 3)).for_each(|_| slot.lie(&mut input));
            bytes = slot.bytes();
            forged = true;
        }
        6 => {
            for _ in 0..=input.u8() & 7 {
                let at = input.below(bytes.len());
                bytes[at] ^= input.u8() | 1;
            }
        }
        _ => bytes.truncate(input.below(1024)),
    }
    use deedbook::storage::Storage;
    if !bytes.is_empty() {
        world.put(&mark_path, &bytes);
    }
    // The index: unchanged, damaged, any bytes, absent.
    match (input.u8() & 3, index) {
        (1, Some(mut index)) if !index.is_empty() => {
            let at = input.below(index.len());
            index[at] ^= input.u8() | 1;
            world.put(&index_path, &index);
        }
        (2, _) => world.put(&index_path, input.bytes(200)),
        (3, Some(_)) => world.storage.remove(&index_path).unwrap(),
        _ => {}
    }

    let view = look(&world, !forged);
    let Some(view) = view else {
        // The log has no deeds left to compare with a mark: refused, not cut.
        assert!(forged || has_intact_slot(&bytes), "an intact log cannot be read");
        return;
    };
    if forged {
        assert!(written.starts_with(&view.events()), "deeds that were never written");
    } else {
        assert_eq!(view.events(), written, "the sidecar changed what is read");
        assert_eq!((view.failed, view.verdict), (None, Verdict::Clean));
    }
    if input.u8() & 1 == 1 {
        world.options.recovery = Recovery::Spec;
    }
    let before = world.files();
    match world.options.open(&world.dir, Mode::Append) {
        Err(error) => {
            assert!(forged, "refused for its sidecar: {error:?}");
            assert_eq!(before, world.files(), "a refused writer changed something");
        }
        Ok(book) => {
            let more: Event = (5, filler(input.u8().into(), 5));
            assert_eq!(world.log(), log, "opening cut intact deeds");
            match book.append(more.0, &more.1) {
                Err(error) if forged && error.kind() == ErrorKind::TooLarge => return,
                appended => drop(appended.unwrap()),
            }
            book.close().unwrap();
            assert!(
                world.log()[HEADER..].starts_with(&log[HEADER..]),
                "appending overwrote intact deeds"
            );
            if !forged {
                let expected: Vec<Event> = written.into_iter().chain([more]).collect();
                assert_eq!(look(&world, true).unwrap().events(), expected);
                assert!(world.check().unwrap().ok());
            }
        }
    }
}

fn write(input: &mut Input, world: &World, how: u8) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    let book = world.options.open(&world.dir, Mode::Create).unwrap();
    for i in 0..how & 15 {
        let len = match how >> 4 & 3 {
            0 => 1 + usize::from(i),
            1 => usize::from(input.u8()),
            2 => usize::from(i) * 3000,
            _ => 40_000 / (1 + usize::from(i)),
        };
        events.push((u32::from(how) + u32::from(i), filler(len, i)));
    }
    for (i, (mug, jam)) in events.iter().enumerate() {
        book.append(*mug, jam).unwrap();
        if how & 64 != 0 && i % 2 == 0 {
            book.sync().unwrap();
        }
    }
    book.close().unwrap();
    events
}
