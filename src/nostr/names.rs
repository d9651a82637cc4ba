//! Tag names that the reference implementation lost: it keeps the first byte of a name only.
//!
//! An event's id proves its tags. So known names are tried until the id is met; where none does, the
//! event stays as it was found, and is lossy. Records with a checksum are of this program, which loses
//! no names: of them nothing is tried.

use super::event::{Event, EventRef};
use super::record;
use crate::scan::Bad;

/// Names of more than one byte, of each letter the likelier ones first.
#[rustfmt::skip]
const KNOWN: &[&str] = &[
    "alt", "amount", "aes-256-gcm", "about", "author", "access_token", "branch-name", "bolt11",
    "background", "blurhash", "client", "content-warning", "challenge", "clone", "closed",
    "current_participants", "community", "commit", "credential", "description", "delegation",
    "delay", "dim", "duration", "derivation", "expiration", "emoji", "encrypted", "ends", "end",
    "error", "euc", "extension", "fallback", "file", "fee", "file-type", "goal", "group", "geohash",
    "hidden", "image", "imeta", "info", "input", "item", "key", "lnurl", "location", "label",
    "language", "lud16", "method", "mint", "maintainers", "magnet", "name", "nonce", "network",
    "nip", "output", "option", "occupancy", "origin", "published_at", "proxy", "preimage", "price",
    "payload", "param", "parent-commit", "participants", "picture", "platform", "private",
    "preview", "pubkey", "poll_option", "relay", "relays", "recording", "request", "response",
    "rtt", "room", "subject", "summary", "starts", "start", "start_tzid", "status", "streaming",
    "size", "server", "service", "state", "supported_nips", "segment", "title", "thumb",
    "total_participants", "torrent", "text-track", "type", "tracker", "url", "unlocks", "version",
    "value", "valid_until", "word", "web", "website", "zap", "zap-lnurl", "zone", "HEAD",
];

/// Those of a number.
#[rustfmt::skip]
const NUMBERS: &[&str] = &[
    "amount", "current_participants", "delay", "duration", "end", "ends", "expiration", "nonce",
    "price", "published_at", "size", "start", "starts", "total_participants", "valid_until",
];

/// Forms of an event that are tried before it counts as lossy: some hundredths of a second, as every
/// walk along such events takes them once.
const TRIES_MAX: u64 = 1 << 14;

/// What the id says of an event's tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Names {
    /// They are as the id has them.
    Intact,
    /// With these names the id is met.
    Recovered(Event),
    /// No known names meet the id.
    Lossy,
}

/// Hold the id of a stored event against its tags, and look for lost names.
pub fn recover(event: &EventRef<'_>) -> Names {
    let mut scratch = Vec::new();
    if event.check_id(&mut scratch).is_ok() {
        return Names::Intact;
    }
    let mut event = event.to_event();
    let choices: Vec<Vec<String>> = event.tags.iter().map(|tag| choices(tag)).collect();
    for (tag, names) in event.tags.iter_mut().zip(&choices) {
        rename(tag, names.first());
    }
    let mut search = Search { event, choices, tries: 0, scratch };
    for unlikely in 0..=search.choices.len() {
        if search.meets_with(unlikely, 0) {
            return Names::Recovered(search.event);
        }
    }
    Names::Lossy
}

/// The event of a record that lies in no segment, with its names; whether it is lossy.
pub(super) fn event_of(record: &[u8]) -> Result<(Event, bool), Bad> {
    let layout = record::check(record)?;
    let event = layout.event(record);
    if layout.has_sum || !may_be_lost(&event) {
        return Ok((event.to_event(), false));
    }
    Ok(match recover(&event) {
        Names::Intact => (event.to_event(), false),
        Names::Recovered(event) => (event, false),
        Names::Lossy => (event.to_event(), true),
    })
}

/// Whether a name may be another than the one that is stored.
pub(super) fn may_be_lost(event: &EventRef<'_>) -> bool {
    event.tags.iter().any(|tag| {
        let mut texts = tag.elements();
        let name = texts.next().unwrap_or_default();
        is_open(&name, &texts.next().unwrap_or_default())
    })
}

/// The same of the name and the first value of a tag.
fn is_open(name: &str, value: &str) -> bool {
    let hexadecimal = || value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    match name {
        // Tags of events and people outnumber all others: only so do long lists stay quick.
        "e" | "p" | "q" | "E" | "P" => !hexadecimal(),
        _ => name.chars().take(2).count() == 1,
    }
}

fn rename(tag: &mut [String], name: Option<&String>) {
    if let (Some(first), Some(name)) = (tag.first_mut(), name) {
        first.clone_from(name);
    }
}

struct Search {
    /// Every tag has the first of its names, but for those that are being tried.
    event: Event,
    choices: Vec<Vec<String>>,
    tries: u64,
    scratch: Vec<u8>,
}

impl Search {
    /// Whether the id is met if so many of the tags from one on have another than their likeliest
    /// name.
    fn meets_with(&mut self, unlikely: usize, from: usize) -> bool {
        if unlikely == 0 {
            self.tries += 1;
            return self.event.check_id(&mut self.scratch).is_ok();
        }
        for at in from..self.choices.len() {
            let name = |search: &Self, number| search.choices.get(at)?.get(number).cloned();
            let mut number = 1;
            while let Some(other) = name(self, number).filter(|_| self.tries < TRIES_MAX) {
                self.rename(at, Some(&other));
                if self.meets_with(unlikely - 1, at + 1) {
                    return true;
                }
                number += 1;
            }
            let likeliest = name(self, 0);
            self.rename(at, likeliest.as_ref());
        }
        false
    }

    fn rename(&mut self, at: usize, name: Option<&String>) {
        if let Some(tag) = self.event.tags.get_mut(at) {
            rename(tag, name);
        }
    }
}

/// What a tag's name may have been, the likeliest first.
fn choices(tag: &[String]) -> Vec<String> {
    let Some(name) = tag.first() else { return Vec::new() };
    let value = tag.get(1).map(String::as_str).unwrap_or_default();
    let Some(first) = name.chars().next().filter(|_| is_open(name, value)) else {
        return vec![name.clone()];
    };
    match first {
        // The reference writes an empty name as this.
        '?' => return vec![String::new(), name.clone()],
        // The first of two bytes of a character: a name of one character may be any of these.
        '\u{C2}'..='\u{DF}' => {
            let lead = (u32::from(first) & 0x1F) << 6;
            return (0..64)
                .filter_map(|low| char::from_u32(lead | low))
                .map(String::from)
                .collect();
        }
        _ => {}
    }
    let known = KNOWN.iter().filter(|known| known.starts_with(first));
    let mut names: Vec<String> = known.map(|&known| known.to_owned()).collect();
    let number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    names.sort_by_key(|name| NUMBERS.contains(&name.as_str()) != number);
    let letter_is_likely = match first {
        'e' | 'p' | 'q' | 'E' | 'P' => false,
        'a' | 'A' | 'i' => value.contains(':') && !value.starts_with("http"),
        't' => !value.chars().any(|c| c.is_whitespace() || c.is_uppercase()),
        _ => true,
    };
    let at = if letter_is_likely { 0 } else { names.len() };
    names.insert(at, name.clone());
    names
}
