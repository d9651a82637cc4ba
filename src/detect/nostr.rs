//! How an event store is recognised: by its segments.

use std::path::Path;

use super::site::{Site, names_in};
use crate::nostr::pages::segments::parse_name;

const SEGMENTS: &str = "data/segments";

pub fn evidence(site: &Site<'_>) -> Option<String> {
    if site.has("data") { first_segment(site.path) } else { None }
}

pub fn is_at(path: &Path) -> bool {
    first_segment(path).is_some()
}

fn first_segment(path: &Path) -> Option<String> {
    let names = names_in(&path.join(SEGMENTS));
    let found = names.iter().find(|name| parse_name(name).is_some())?;
    Some(format!("{SEGMENTS}/{found}"))
}
