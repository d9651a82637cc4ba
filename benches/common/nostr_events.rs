//! Synthetic Nostr events, and the questions that a relay answers.
//!
//! Each event follows a randomly drawn real event of `../shared/data/nostr-events.jsonl`: it has the same kind, form of
//! tags and size, and a time up to 30 days earlier. Authors and referenced events are copied as a whole: all keys of an
//! event, in its tags too, belong to one copy of the real events. So each copy has as many events per author, and as
//! many references per event, as the real data. A number at the end of the content makes each event unique. The id is
//! correct, the signature is not.

// Each program uses a part of this module.
#![allow(dead_code)]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use deedbook::nostr::{Event, Filter, Id};

const DAY: u64 = 86_400;
const MONTH: usize = 30 * DAY as usize;
/// Digits of a key that hold the number of the copy.
const COPY_DIGITS: usize = 8;
const KEY_DIGITS: usize = 64;

/// Pseudo-random numbers, the same in every run (SplitMix64).
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % end as u64) as usize
    }
}

/// The real events, if the file exists next to the repository.
pub fn real(repository: &Path) -> Option<Vec<Event>> {
    let path = repository.join("../shared/data/nostr-events.jsonl");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: {} is not there", path.display());
        return None;
    };
    Some(text.lines().filter_map(|line| Event::from_json(line.as_bytes()).ok()).collect())
}

/// Endless events, the same in every run.
pub struct Synthetic<'a> {
    real: &'a [Event],
    copies: usize,
    numbers: Numbers,
    made: usize,
    scratch: Vec<u8>,
}

impl<'a> Synthetic<'a> {
    /// For `events` in all: with this number, an author has as many events as in the real data.
    pub fn new(real: &'a [Event], events: usize) -> Self {
        let copies = (events / real.len()).max(1);
        Self { real, copies, numbers: Numbers(1), made: 0, scratch: Vec::new() }
    }

    /// Write the next events as JSON lines; returns their ids.
    pub fn write(&mut self, events: usize, path: &Path) -> Vec<Id> {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
        let (mut ids, mut line) = (Vec::with_capacity(events), Vec::new());
        for event in self.take(events) {
            line.clear();
            event.write_json(&mut line);
            line.push(b'\n');
            out.write_all(&line).unwrap();
            ids.push(event.id);
        }
        out.flush().unwrap();
        ids
    }
}

impl Iterator for Synthetic<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let mut event = self.real[self.numbers.below(self.real.len())].clone();
        let copy = self.numbers.below(self.copies);
        event.pubkey = copied(&event.pubkey, copy);
        for value in event.tags.iter_mut().flat_map(|tag| tag.iter_mut().skip(1)) {
            copy_key(value, copy);
        }
        let earlier = self.numbers.below(MONTH) as u32;
        event.created_at = event.created_at.saturating_sub(earlier);
        event.content.push_str(&format!(" {}", self.made));
        event.id = event.canonical_id_with(&mut self.scratch);
        self.made += 1;
        Some(event)
    }
}

/// One question, with other values each time.
pub struct Question {
    pub name: &'static str,
    pub filters: Vec<Filter>,
}

/// Each question `times` times, about `events` synthetic events.
pub fn questions(real: &[Event], events: usize, times: usize) -> Vec<Question> {
    let copies = (events / real.len()).max(1);
    let of_kind = |kind| real.iter().filter(|event| event.kind == kind).collect::<Vec<_>>();
    let (profiles, notes, reactions) = (of_kind(0), of_kind(1), of_kind(7));
    let threads: Vec<&String> = notes
        .iter()
        .flat_map(|event| &event.tags)
        .filter(|tag| tag[0] == "e" && tag.get(1).is_some_and(|id| is_key(id)))
        .map(|tag| &tag[1])
        .collect();
    let author = |numbers: &mut Numbers, of: &[&Event]| {
        let event = of[numbers.below(of.len())];
        copied(&event.pubkey, numbers.below(copies))
    };
    let profile = |numbers: &mut Numbers| Filter {
        authors: Some([author(numbers, &profiles)].into()),
        kinds: Some([0].into()),
        limit: Some(1),
        ..Filter::default()
    };
    let thread = |numbers: &mut Numbers| {
        let mut root = threads[numbers.below(threads.len())].clone();
        copy_key(&mut root, numbers.below(copies));
        Filter {
            kinds: Some([1].into()),
            tags: [(b'e', [root].into())].into(),
            limit: Some(100),
            ..Filter::default()
        }
    };
    let latest = |numbers: &mut Numbers| Filter {
        authors: Some((0..50).map(|_| author(numbers, &notes)).collect()),
        kinds: Some([1].into()),
        limit: Some(100),
        ..Filter::default()
    };
    let day = |numbers: &mut Numbers| {
        let at = u64::from(reactions[numbers.below(reactions.len())].created_at);
        let until = at - numbers.below(MONTH) as u64;
        Filter {
            kinds: Some([7].into()),
            since: Some(until - DAY),
            until: Some(until),
            limit: Some(500),
            ..Filter::default()
        }
    };
    let newest = |numbers: &mut Numbers| Filter {
        until: Some(u64::from(notes[0].created_at) - numbers.below(MONTH) as u64),
        limit: Some(100),
        ..Filter::default()
    };
    let one_author = |numbers: &mut Numbers| Filter {
        authors: Some([author(numbers, &notes)].into()),
        limit: Some(100),
        ..Filter::default()
    };
    // Replies name the event and its author.
    let replies: Vec<(&String, &String)> = notes
        .iter()
        .filter_map(|note| {
            let named = |letter| {
                let tag = note.tags.iter().find(|tag| tag[0] == letter);
                tag.and_then(|tag| tag.get(1)).filter(|value| is_key(value))
            };
            named("e").zip(named("p"))
        })
        .collect();
    let tagged = |numbers: &mut Numbers, letters: &[u8]| {
        let (of_event, of_author) = replies[numbers.below(replies.len())];
        let copy = numbers.below(copies);
        let value = |letter| {
            let mut value = if letter == b'e' { of_event.clone() } else { of_author.clone() };
            copy_key(&mut value, copy);
            [value].into()
        };
        let tags = letters.iter().map(|&letter| (letter, value(letter))).collect();
        Filter { tags, limit: Some(100), ..Filter::default() }
    };
    let ask = |name, make: &dyn Fn(&mut Numbers) -> Filter| {
        let mut numbers = Numbers(3);
        Question { name, filters: (0..times).map(|_| make(&mut numbers)).collect() }
    };
    vec![
        ask("a profile", &profile),
        ask("a thread by #e", &thread),
        ask("the last 100 notes of 50 authors", &latest),
        ask("a kind within a day", &day),
        ask("the newest 100 of all, from a second on", &newest),
        ask("the last 100 of an author", &one_author),
        ask("the last 100 by #p", &|numbers| tagged(numbers, b"p")),
        ask("the last 100 by #e and #p", &|numbers| tagged(numbers, b"ep")),
    ]
}

/// The bytes of an article, and the entries of a follow list: 12 KB and 160 KB.
const ARTICLE_BYTES: usize = 12_000;
const FOLLOWED: usize = 2_250;

/// Articles and follow lists, one of each for an author.
pub fn long_events(authors: usize) -> Vec<Event> {
    let mut numbers = Numbers(4);
    let mut key = |_| std::array::from_fn::<u8, 32, _>(|_| numbers.below(256) as u8);
    let followed = |key: [u8; 32]| vec!["p".into(), Id(key).to_string()];
    let mut events = Vec::new();
    for number in 0..authors {
        let pubkey = key(0);
        let list: Vec<Vec<String>> = (0..FOLLOWED).map(&mut key).map(followed).collect();
        let name = vec!["d".into(), format!("article {number}")];
        let text = format!("{number} {}", "All work and no play. ".repeat(ARTICLE_BYTES / 22));
        for (kind, tags, content) in [(30_023, vec![name], text), (3, list, String::new())] {
            let (id, sig) = (Id([0; 32]), [0; 64]);
            let created_at = 1_600_000_000 + number as u32;
            let mut event = Event { id, pubkey, created_at, kind, tags, content, sig };
            event.id = event.canonical_id();
            events.push(event);
        }
    }
    events
}

/// Questions about these events.
pub fn long_questions(events: &[Event]) -> Vec<Question> {
    let of = |kind: u16, limit| {
        let all = events.iter().filter(move |event| event.kind == kind);
        all.map(move |event| Filter {
            authors: Some([event.pubkey].into()),
            kinds: Some([kind].into()),
            limit: Some(limit),
            ..Filter::default()
        })
    };
    let newest = events.iter().filter(|event| event.kind == 3).map(|event| Filter {
        kinds: Some([30_023].into()),
        until: Some(event.created_at.into()),
        limit: Some(20),
        ..Filter::default()
    });
    vec![
        Question { name: "an article of 12 KB", filters: of(30_023, 1).collect() },
        Question { name: "a follow list of 160 KB", filters: of(3, 1).collect() },
        Question { name: "20 articles of 12 KB", filters: newest.collect() },
    ]
}

/// The key in another copy.
fn copied(key: &[u8; 32], copy: usize) -> [u8; 32] {
    let mut key = *key;
    key[..COPY_DIGITS / 2].copy_from_slice(&(copy as u32).to_be_bytes());
    key
}

/// The same for a tag's value: a key, or `kind:key:name`.
fn copy_key(value: &mut String, copy: usize) {
    let at = match value.split(':').nth(1) {
        Some(key) if is_key(key) => value.find(':').unwrap() + 1,
        None if is_key(value) => 0,
        _ => return,
    };
    value.replace_range(at..at + COPY_DIGITS, &format!("{copy:0COPY_DIGITS$x}"));
}

fn is_key(text: &str) -> bool {
    text.len() == KEY_DIGITS && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}
