//! Which histories there are, and how they are run.

use std::time::Duration;

use deedbook::Durability;

use super::{How, mix};

/// How the histories of a family are run.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub name: &'static str,
    pub how: How,
    /// Whether the disk reserves space.
    pub allocates: bool,
}

impl Config {
    pub fn named(name: &'static str) -> Self {
        let durability = match name {
            name if name.starts_with("always") => Durability::Always,
            name if name.starts_with("none") => Durability::None,
            // Often more than one append, and less than a long one.
            name if name.starts_with("bytes") => Durability::Bytes(700),
            name if name.starts_with("interval") => Durability::Interval(Duration::from_millis(1)),
            _ => Durability::Manual,
        };
        let how = How { durability, acknowledged: name.contains("acknowledged") };
        Self { name, how, allocates: name.contains("reserve") }
    }
}

/// All histories of at most so many steps of an alphabet, after those of `prefix`.
pub fn all_after(prefix: &str, steps: usize, alphabet: &str) -> Vec<String> {
    let mut all = vec![prefix.to_string()];
    let mut from = 0;
    for _ in 0..steps {
        let to = all.len();
        for at in from..to {
            let longer: Vec<_> = alphabet.chars().map(|op| format!("{}{op}", all[at])).collect();
            all.extend(longer);
        }
        from = to;
    }
    all
}

/// A history of 4 to 12 of these steps by chance.
pub fn by_chance(steps: &str, seed: u64) -> String {
    let steps: Vec<char> = steps.chars().collect();
    let count = 4 + mix(seed) % 9;
    let step = |at: u64| steps[(mix(seed ^ mix(at + 1)) % steps.len() as u64) as usize];
    (0..count).map(step).collect()
}
