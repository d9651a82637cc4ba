//! The ways in which a history runs.

use super::{How, MANUAL};

use crate::support::prelude::*;

#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub name: &'static str,
    pub how: How,
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
        let recovery = match name.contains("acknowledged") {
            true => Recovery::Acknowledged,
            false => Recovery::Valid,
        };
        let how = How { durability, recovery, ..MANUAL };
        Self { name, how, allocates: name.contains("reserve") }
    }
}
