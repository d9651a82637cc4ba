//! Events of a small world, with many equal authors, tags, times and ids, and a list of all that an index should know.

use std::collections::BTreeMap;

use deedbook::engine::nostr::{encode, parse};
use deedbook::nostr::{Change, Event, EventRef, Filter, Flags, Id, Index, Location, Wanted};

/// Numbers that are the same in every run.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }

    pub fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    fn few<T>(&mut self, max: u64, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(max + 1)).map(|_| one(self)).collect()
    }
}

pub const KINDS: [u16; 6] = [0, 1, 3, 7, 30_023, 30_024];

pub fn author(number: u64) -> [u8; 32] {
    let mut key = [0xAA; 32];
    // Authors 0 and 1 differ in their last byte only, 2 and 3 in the ninth.
    match number {
        0 | 1 => key[31] = number as u8,
        2 | 3 => key[8] = number as u8,
        other => key[0] = other as u8,
    }
    key
}

fn time(numbers: &mut Numbers) -> u32 {
    match numbers.below(20) {
        0 => 0,
        1 => u32::MAX,
        _ => 1_000 + numbers.below(40) as u32,
    }
}

fn value(numbers: &mut Numbers) -> String {
    match numbers.below(400) {
        0 => "x".repeat(70_000),
        other if other % 8 == 0 => String::new(),
        other => format!("{:064x}", other % 8),
    }
}

pub fn event(numbers: &mut Numbers) -> Event {
    let mut id = [0; 32];
    id[0] = numbers.below(4) as u8;
    id[24..].copy_from_slice(&numbers.below(u64::MAX).to_be_bytes());
    let tags = numbers.few(4, |numbers| {
        let name = ["e", "p", "t", "d", "d", "long", ""][numbers.below(7) as usize];
        match numbers.below(10) {
            0 => vec![name.to_owned()],
            1 => vec![],
            _ => vec![name.to_owned(), value(numbers), "more".to_owned()],
        }
    });
    Event {
        id: Id(id),
        pubkey: author(numbers.below(6)),
        created_at: time(numbers),
        kind: KINDS[numbers.below(6) as usize],
        tags,
        content: String::new(),
        sig: [0; 64],
    }
}

pub fn filter(numbers: &mut Numbers) -> Filter {
    let mut filter = Filter::default();
    if numbers.one_in(2) {
        filter.authors = Some(numbers.few(4, |n| author(n.below(7))).into_iter().collect());
    }
    if numbers.one_in(2) {
        filter.kinds = Some(numbers.few(3, |n| KINDS[n.below(6) as usize]).into_iter().collect());
    }
    for letter in *b"eptd" {
        if numbers.one_in(6) {
            filter.tags.insert(letter, numbers.few(3, value).into_iter().collect());
        }
    }
    let second = |numbers: &mut Numbers| match numbers.below(8) {
        0 => 1 << 40,
        _ => u64::from(time(numbers)),
    };
    if numbers.one_in(3) {
        filter.since = Some(second(numbers));
    }
    if numbers.one_in(3) {
        filter.until = Some(second(numbers));
    }
    if numbers.one_in(2) {
        filter.limit = Some(numbers.below(12));
    }
    filter
}

/// The bytes of an event's record, from which `borrowed` makes an `EventRef`.
pub fn record(event: &Event) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(event, Flags::default(), false, 4096, &mut bytes).unwrap();
    bytes
}

pub fn borrowed(record: &[u8]) -> EventRef<'_> {
    parse(record).unwrap()
}

/// The expected contents of an index.
#[derive(Clone, Default)]
pub struct World {
    pub events: BTreeMap<Id, Known>,
    next: u32,
}

#[derive(Clone)]
pub struct Known {
    pub record: Vec<u8>,
    pub at: Location,
    pub hidden: bool,
}

impl Known {
    pub fn event(&self) -> EventRef<'_> {
        borrowed(&self.record)
    }
}

impl World {
    fn place(&mut self) -> Location {
        self.next += 1;
        Location { segment: self.next % 3, offset: self.next * 4096 }
    }

    /// Add events, in one call.
    pub fn insert(&mut self, index: &Index, events: &[Event], covered: Option<&[u8]>) {
        let new: Vec<_> = events
            .iter()
            .map(|event| {
                (event.id, Known { record: record(event), at: self.place(), hidden: false })
            })
            .collect();
        let borrowed: Vec<_> = new.iter().map(|(_, known)| (known.event(), known.at)).collect();
        let changes: Vec<_> =
            borrowed.iter().map(|(event, at)| Change::Insert(event, *at)).collect();
        index.apply(&changes, covered).unwrap();
        self.events.extend(new);
    }

    /// Hide, remove or move some of the events, in one call.
    pub fn change(&mut self, index: &Index, numbers: &mut Numbers, one_in: u64) {
        let before = self.events.clone();
        let mut changes = Vec::new();
        let chosen: Vec<_> = before.values().filter(|_| numbers.one_in(one_in)).collect();
        let events: Vec<_> = chosen.iter().map(|known| known.event()).collect();
        for event in &events {
            match numbers.below(3) {
                0 => {
                    self.events.get_mut(&event.id).unwrap().hidden = true;
                    changes.push(Change::Hide(event));
                }
                1 => {
                    self.events.remove(&event.id);
                    changes.push(Change::Remove(event));
                }
                _ => {
                    let at = self.place();
                    self.events.get_mut(&event.id).unwrap().at = at;
                    changes.push(Change::Move(event.id, event.created_at, at));
                }
            }
        }
        index.apply(&changes, None).unwrap();
    }

    /// The matches of the filters, newest first, from a look at each event.
    pub fn scan(&self, filters: &[Filter]) -> Vec<Location> {
        let mut all: Vec<_> = self.events.values().filter(|known| !known.hidden).collect();
        all.sort_by_key(|known| (std::cmp::Reverse(known.event().created_at), known.event().id));
        let mut wanted = Wanted::of(filters);
        all.retain(|known| wanted.takes(&known.event()));
        all.iter().map(|known| known.at).collect()
    }

    /// The same from the index, with the number of entries read.
    pub fn ask(&self, index: &Index, filters: &[Filter]) -> (Vec<Location>, u64) {
        let by_place: BTreeMap<_, _> =
            self.events.values().map(|known| (known.at, known)).collect();
        let mut query = index.query_any(filters).unwrap();
        let mut wanted = Wanted::of(filters);
        let mut found = Vec::new();
        while !wanted.is_satisfied() {
            let Some(at) = query.next() else { break };
            let at = at.unwrap();
            let known = by_place.get(&at).expect("an event lies where the index says");
            if !known.hidden && wanted.takes(&known.event()) {
                found.push(at);
            }
        }
        (found, query.entries_read())
    }
}
