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

/// Forms of an event that are tried, and bytes that are hashed, before it counts as lossy: about a tenth of a
/// second, which every walk along such events takes once.
const TRIES_MAX: u64 = 1 << 14;
const HASHED_BYTES_MAX: usize = 64 << 20;

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
    let mut search = Search::of(event.to_event(), scratch);
    match search.run() {
        true => Names::Recovered(search.event),
        false => Names::Lossy,
    }
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

struct Search {
    /// Every tag has the first of its names, but for those that are being tried.
    event: Event,
    open: Vec<Open>,
    tries: u64,
    hashed_bytes: usize,
    scratch: Vec<u8>,
}

/// A tag that may have one of several names.
struct Open {
    /// Its place among the tags.
    tag: usize,
    likeliest: String,
    others: Vec<String>,
}

impl Search {
    fn of(mut event: Event, scratch: Vec<u8>) -> Self {
        let mut open = Vec::new();
        for (tag, elements) in event.tags.iter_mut().enumerate() {
            let mut names = choices(elements).into_iter();
            let Some(likeliest) = names.next() else { continue };
            rename(elements, &likeliest);
            let others: Vec<String> = names.collect();
            if !others.is_empty() {
                open.push(Open { tag, likeliest, others });
            }
        }
        Self { event, open, tries: 0, hashed_bytes: 0, scratch }
    }

    /// Look for names that meet the id.
    fn run(&mut self) -> bool {
        let open = std::mem::take(&mut self.open);
        (0..=open.len()).any(|unlikely| self.goes_on() && self.meets_with(unlikely, &open))
    }

    fn goes_on(&self) -> bool {
        self.tries < TRIES_MAX && self.hashed_bytes < HASHED_BYTES_MAX
    }

    /// Whether the id is met if so many of these tags have another than their likeliest name.
    fn meets_with(&mut self, unlikely: usize, open: &[Open]) -> bool {
        let Some(fewer) = unlikely.checked_sub(1) else { return self.is_met() };
        let mut rest = open;
        // Each way leads to a try: as many tags are left as shall have another name.
        while rest.len() > fewer
            && let Some((tag, after)) = rest.split_first()
        {
            for name in &tag.others {
                if !self.goes_on() {
                    return false;
                }
                self.rename(tag.tag, name);
                if self.meets_with(fewer, after) {
                    return true;
                }
            }
            self.rename(tag.tag, &tag.likeliest);
            rest = after;
        }
        false
    }

    fn is_met(&mut self) -> bool {
        self.tries += 1;
        let is_met = self.event.check_id(&mut self.scratch).is_ok();
        self.hashed_bytes += self.scratch.len();
        is_met
    }

    fn rename(&mut self, tag: usize, name: &str) {
        if let Some(elements) = self.event.tags.get_mut(tag) {
            rename(elements, name);
        }
    }
}

fn rename(tag: &mut [String], name: &str) {
    if let Some(first) = tag.first_mut() {
        name.clone_into(first);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nostr::event::{Flags, Id};

    fn people(count: usize) -> Vec<Vec<String>> {
        vec![vec!["p".to_owned(), "ab".repeat(32)]; count]
    }

    fn relays(count: usize) -> Vec<Vec<String>> {
        vec![vec!["r".to_owned(), "wss://relay".to_owned()]; count]
    }

    /// A list of people with these tags, and an id that is another event's.
    fn wrong(tags: Vec<Vec<String>>, content: &str) -> Event {
        let (id, content) = (Id([1; 32]), content.to_owned());
        Event { id, pubkey: [2; 32], created_at: 3, kind: 3, tags, content, sig: [4; 64] }
    }

    /// Search in vain.
    fn searched(event: Event) -> Search {
        let mut search = Search::of(event.clone(), Vec::new());
        assert!(!search.run());
        let mut bytes = Vec::new();
        record::encode(&event, Flags::default(), false, 4096, &mut bytes).unwrap();
        assert_eq!(recover(&record::parse(&bytes).unwrap()), Names::Lossy);
        search
    }

    /// Each number of unlikely names up to that of all tags went through all names of the four open ones
    /// again, past every other tag, and none of that was a try: one wrong event took hours.
    #[test]
    fn tags_with_one_name_cost_no_tries() {
        let names = choices(&relays(1)[0]).len() as u64;
        let assignments = names.pow(4);
        let search = searched(wrong(relays(4), ""));
        assert_eq!((names, search.tries), (8, assignments));
        // Few enough people for the bytes.
        for tags in [[relays(4), people(100)], [people(100), relays(4)]] {
            assert_eq!(searched(wrong(tags.concat(), "")).tries, assignments);
        }
    }

    /// Of a long event each try took milliseconds, and there were as many as of a short one.
    #[test]
    fn a_search_ends_by_tries_and_by_bytes() {
        let search = searched(wrong(relays(100), ""));
        assert_eq!(search.tries, TRIES_MAX);
        for event in [
            wrong([relays(4), people(2_000)].concat(), ""),
            wrong(relays(500), &"long ".repeat(100_000)),
        ] {
            let search = searched(event);
            let (tries, bytes) = (search.tries, search.hashed_bytes);
            assert!(bytes >= HASHED_BYTES_MAX, "{tries} tries, {bytes} bytes");
            assert!(
                bytes - bytes / (tries as usize) < HASHED_BYTES_MAX,
                "{tries} tries, {bytes} bytes"
            );
        }
    }
}
