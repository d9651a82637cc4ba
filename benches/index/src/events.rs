//! Synthetic events: each follows a real event in kind, tags and time. A real author, and a real value of a tag, stands
//! for many synthetic ones, so that the shares of busy and rare authors stay the same.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::Path;

/// Synthetic events of one author per event of the real author.
const EVENTS_PER_REAL: usize = 8;
const MONTH: u64 = 30 * 86_400;

/// The fields of an event that an index stores.
pub struct Event {
    pub id: [u8; 32],
    pub author: [u8; 8],
    pub at: u32,
    pub kind: u16,
    pub tags: Vec<(u8, [u8; 8])>,
}

/// Pseudo-random numbers, the same in every run.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// `count` events modelled on the real events in a file of JSON lines.
pub fn synthetic(real: &Path, count: usize) -> Vec<Event> {
    let text = std::fs::read_to_string(real).expect("the real events");
    let real: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
    let copies = (count / real.len() / EVENTS_PER_REAL).max(1);
    let mut numbers = Numbers::new(1);
    (0..count).map(|_| one(&real[numbers.below(real.len())], copies, &mut numbers)).collect()
}

fn one(real: &serde_json::Value, copies: usize, numbers: &mut Numbers) -> Event {
    let mut id = [0; 32];
    id.chunks_mut(8).for_each(|part| part.copy_from_slice(&numbers.next().to_be_bytes()));
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
    let author = stand_in(&text(&real["pubkey"]), numbers.below(copies));
    let at = real["created_at"].as_u64().unwrap() + numbers.next() % MONTH;
    let mut tags: Vec<_> = real["tags"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|tag| Some((text(tag.get(0)?), text(tag.get(1)?))))
        .filter(|(name, _)| name.len() == 1)
        .map(|(name, value)| (name.as_bytes()[0], stand_in(&value, numbers.below(copies))))
        .collect();
    tags.sort_unstable();
    tags.dedup();
    Event { id, author, at: at as u32, kind: real["kind"].as_u64().unwrap() as u16, tags }
}

fn stand_in(real: &str, copy: usize) -> [u8; 8] {
    let mut hasher = DefaultHasher::new();
    (real, copy).hash(&mut hasher);
    hasher.finish().to_be_bytes()
}
