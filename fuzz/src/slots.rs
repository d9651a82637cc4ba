//! A log in the layout `slots` as its writer left it, then damaged, or with a header that lies under an
//! intact checksum: look, open, append, close, look again.

use deedbook::book::{Layout, Mode};
use deedbook::{Durability, ErrorKind};

use super::kit::{Event, Input, World, crc32, filler};
use super::views::look;

const SLOTS_AT: [usize; 2] = [0, 4096];
const SLOT_BYTES: usize = 48;
const CRC_AT: usize = 44;
const DEEDS_AT: usize = 8192;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let how = input.u8();
    let mut world = World::new(["/b", "/b", "/0i0", "/0i7"][usize::from(how & 3)]);
    world.options.layout = Some(Layout::Slots);
    if how & 4 != 0 {
        world.options.durability = Durability::Always;
    }
    let world = written(&mut input, world, how & 8 != 0);
    if how & 16 != 0 {
        world.put(&world.sidecar("mark"), &[]);
    }
    damage(&mut input, &world);
    let given = look(&world, true);
    appended(&mut input, &world, given.filter(|view| view.failed.is_none()).map(|v| v.events()));
}

/// What a writer leaves that closes the log, or dies.
fn written(input: &mut Input, world: World, closes: bool) -> World {
    let book = world.options.open(&world.dir, Mode::Create).unwrap();
    loop {
        let step = input.u8();
        match step & 3 {
            0 => break,
            1 => drop(book.append(input.u32(), &filler((step >> 2).into(), step)).unwrap()),
            2 => {
                let mut batch = book.batch();
                (0..=step >> 4).for_each(|i| batch.push(i.into(), &filler(9, i)).unwrap());
                book.append_batch(&batch, None, None).unwrap();
            }
            _ => book.sync().unwrap(),
        }
    }
    if closes {
        book.close().unwrap();
    }
    world.after_death()
}

fn damage(input: &mut Input, world: &World) {
    let mut log = world.log();
    for _ in 0..input.u8() & 3 {
        let kind = input.u8();
        match kind & 3 {
            0 => {
                let at = place(input, kind, log.len());
                log[at] ^= input.u8() | 1;
            }
            1 => log.truncate(DEEDS_AT + input.below(log.len() - DEEDS_AT + 1)),
            2 => {
                let at = place(input, kind, log.len());
                let end = (at + usize::from(input.u8())).min(log.len());
                log[at..end].fill(0);
            }
            _ => lie(input, &mut log, usize::from(kind >> 2 & 1)),
        }
    }
    world.put(&world.log_path(), &log);
}

/// A byte of a slot, or of a deed.
fn place(input: &mut Input, kind: u8, len: usize) -> usize {
    match kind >> 2 & 3 {
        slot @ 0..=1 => SLOTS_AT[usize::from(slot)] + input.below(SLOT_BYTES),
        _ if len > DEEDS_AT => DEEDS_AT + input.below(len - DEEDS_AT),
        _ => 0,
    }
}

/// One field of a slot made anything, with the right checksum.
fn lie(input: &mut Input, log: &mut [u8], slot: usize) {
    let field = 8 + 8 * (usize::from(input.u8()) % 5);
    let value = input.edge().to_le_bytes();
    let slot = &mut log[SLOTS_AT[slot]..][..SLOT_BYTES];
    let end = (field + 8).min(CRC_AT);
    slot[field..end].copy_from_slice(&value[..end - field]);
    let crc = crc32(&slot[..CRC_AT]);
    slot[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
}

/// A writer is refused and changes nothing, or what the readers gave stays, and what it appends follows.
fn appended(input: &mut Input, world: &World, given: Option<Vec<Event>>) {
    let before = world.files();
    let book = match world.options.open(&world.dir, Mode::Append) {
        Ok(book) => book,
        Err(error) => {
            assert_eq!(before, world.files(), "a refused writer changed something: {error}");
            return;
        }
    };
    let mut new: Vec<Event> = Vec::new();
    for round in 0..=input.u8() & 3 {
        let event = (input.u32(), filler(input.u8().into(), round));
        match book.append(event.0, &event.1) {
            Ok(_) => new.push(event),
            Err(error) => assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}"),
        }
        if input.u8() & 1 == 0 {
            book.sync().unwrap();
        }
    }
    let dies = input.u8() & 1 == 0;
    if !dies {
        book.close().unwrap();
    }
    let world = world.after_death();
    let Some(mut all) = given else { return drop(look(&world, true)) };
    all.extend(new);
    let view = look(&world, true).expect("a log just written can be read");
    assert_eq!((view.failed, view.events()), (None, all));
}
