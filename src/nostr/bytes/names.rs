//! Recover tag names that the reference implementation lost: it keeps only a name's first byte.
//!
//! An event's id proves its tags, so the search tries known names until the id matches. If no names
//! match, the event stays as stored and counts as lossy. The search skips records with a checksum:
//! this program wrote them with full names.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::event::{Event, EventRef};
use super::record;
use crate::scan::Bad;

/// Names of more than one byte. The likelier names of each letter come first.
#[rustfmt::skip]
const KNOWN: &[&str] = &[
    "alt", "amount", "aes-256-gcm", "about", "author", "access_token", "branch-name", "bolt11",
    "background", "bitcoin", "blurhash", "client", "content-warning", "challenge", "clone", "closed",
    "current_participants", "community", "commit", "credential", "description", "delegation",
    "delay", "dim", "duration", "derivation", "expiration", "emoji", "encrypted", "ends", "end",
    "error", "euc", "extension", "fallback", "file", "fee", "file-type", "goal", "group", "geohash",
    "hidden", "image", "imeta", "info", "input", "item", "key", "lnurl", "location", "label",
    "language", "lud16", "method", "mint", "maintainers", "magnet", "mostr", "name", "nonce", "network",
    "nip", "output", "option", "occupancy", "origin", "published_at", "proxy", "preimage", "price",
    "payload", "param", "parent-commit", "participants", "picture", "platform", "private",
    "preview", "pubkey", "poll_option", "relay", "relays", "recording", "request", "response",
    "rtt", "room", "subject", "summary", "starts", "start", "start_tzid", "status", "streaming",
    "size", "server", "service", "state", "supported_nips", "segment", "title", "thumb",
    "total_participants", "torrent", "text-track", "type", "tracker", "url", "unlocks", "version",
    "value", "valid_until", "word", "web", "website", "zap", "zap-lnurl", "zone", "HEAD",
];

/// Names whose values are numbers.
#[rustfmt::skip]
const NUMBERS: &[&str] = &[
    "amount", "current_participants", "delay", "duration", "end", "ends", "expiration", "nonce",
    "price", "published_at", "size", "start", "starts", "total_participants", "valid_until",
];

/// Names whose values are 64 hexadecimal digits.
const HEXADECIMAL: &[&str] = &["parent-commit", "payload", "preimage", "pubkey"];

/// A search hashes so many bytes (1,024 pages of them) before the event counts as lossy.
const HASHED_BYTES_MAX: usize = 4 << 20;
/// The shortest length that counts for a form of an event.
const FORM_BYTES_MIN: usize = 1 << 10;
/// A walk stops searching after so many events in a row without a match.
const VAIN_MAX: u32 = 32;
/// An event with more references keeps all references as stored, so that long lists of people stay
/// quick.
const REFERENCES_MAX: usize = 16;
/// Forms that rename a reference get a quarter of the bytes.
const REFERENCE_BYTES_MAX: usize = HASHED_BYTES_MAX / 4;

/// The result of comparing an event's tags with its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Names {
    /// The stored tags match the id.
    Intact,
    /// The event with recovered names, which match the id.
    Recovered(Event),
    /// No known names match the id.
    Lossy,
}

/// Compare the tags of a stored event with its id, and search for lost names.
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

/// The searches of one walk. Without a shared limit, each event of a forged segment cost a search,
/// and 64 MiB took minutes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Searches {
    /// Events in a row without a match.
    vain: Arc<AtomicU32>,
}

impl Searches {
    /// Like [`recover`], until too many searches in a row fail.
    pub(crate) fn recover(&self, event: &EventRef<'_>) -> Names {
        if self.vain.load(Ordering::Relaxed) >= VAIN_MAX {
            let is_met = event.check_id(&mut Vec::new()).is_ok();
            return if is_met { Names::Intact } else { Names::Lossy };
        }
        let names = recover(event);
        match names {
            Names::Intact => {}
            Names::Recovered(_) => self.vain.store(0, Ordering::Relaxed),
            Names::Lossy => drop(self.vain.fetch_add(1, Ordering::Relaxed)),
        }
        names
    }
}

/// The event of a record outside any segment, with recovered names, and whether the event is lossy.
pub(crate) fn event_of(record: &[u8], searches: &Searches) -> Result<(Event, bool), Bad> {
    let layout = record::check(record)?;
    let event = layout.event(record);
    if layout.has_sum || !may_be_lost(&event) {
        return Ok((event.to_event(), false));
    }
    Ok(match searches.recover(&event) {
        Names::Intact => (event.to_event(), false),
        Names::Recovered(event) => (event, false),
        Names::Lossy => (event.to_event(), true),
    })
}

/// Whether the reference implementation may have cut a name of the event.
pub(crate) fn may_be_lost(event: &EventRef<'_>) -> bool {
    event.tags.iter().any(|tag| is_open(&tag.elements().next().unwrap_or_default()))
}

/// Whether the reference implementation may have cut this name.
fn is_open(name: &str) -> bool {
    name.chars().take(2).count() == 1
}

/// Whether a tag looks like a reference to an event or a person. Nearly all tags that look like
/// references are references, and they outnumber all other tags.
fn is_reference(tag: &[String]) -> bool {
    let [name, value, ..] = tag else { return false };
    matches!(name.as_str(), "e" | "p" | "q" | "E" | "P") && is_hexadecimal(value)
}

fn is_hexadecimal(value: &str) -> bool {
    value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit())
}

struct Search {
    /// Every tag has the first of its names, except the tags under trial.
    event: Event,
    open: Vec<Open>,
    /// Tags that refer to events and people, if there are few.
    references: Vec<Open>,
    hashed_bytes: usize,
    hashed_bytes_max: usize,
    scratch: Vec<u8>,
}

/// A tag that may have one of several names.
#[derive(Clone)]
struct Open {
    /// The tag's index among the tags.
    tag: usize,
    likeliest: String,
    others: Vec<String>,
}

impl Open {
    /// The same tag with only the names whose values are hexadecimal.
    fn hexadecimal(&self) -> Option<Self> {
        let others = self.others.iter().filter(|name| HEXADECIMAL.contains(&name.as_str()));
        let others: Vec<String> = others.cloned().collect();
        (!others.is_empty()).then(|| Self { others, ..self.clone() })
    }
}

impl Search {
    fn of(mut event: Event, scratch: Vec<u8>) -> Self {
        let (mut open, mut references) = (Vec::new(), Vec::new());
        let are_few = event.tags.iter().filter(|tag| is_reference(tag)).count() <= REFERENCES_MAX;
        for (tag, elements) in event.tags.iter_mut().enumerate() {
            let into = match is_reference(elements) {
                true if are_few => &mut references,
                true => continue,
                false => &mut open,
            };
            let mut names = choices(elements).into_iter();
            let Some(likeliest) = names.next() else { continue };
            rename(elements, &likeliest);
            let others: Vec<String> = names.collect();
            if !others.is_empty() {
                into.push(Open { tag, likeliest, others });
            }
        }
        let (hashed_bytes, hashed_bytes_max) = (0, HASHED_BYTES_MAX);
        Self { event, open, references, hashed_bytes, hashed_bytes_max, scratch }
    }

    /// Search for names that match the id.
    fn run(&mut self) -> bool {
        let open = std::mem::take(&mut self.open);
        if self.meets_any(&open) {
            return true;
        }
        // A tag that looks like a reference may have another name; try those forms last.
        let all = std::mem::take(&mut self.references);
        self.hashed_bytes_max = HASHED_BYTES_MAX.min(self.hashed_bytes + REFERENCE_BYTES_MAX);
        let usual: Vec<Open> = all.iter().filter_map(Open::hexadecimal).collect();
        [usual, all].into_iter().filter(|references| !references.is_empty()).any(|references| {
            // References come last: other tags are likelier to have lost their names.
            self.meets_any(&[open.as_slice(), &references].concat())
        })
    }

    fn meets_any(&mut self, open: &[Open]) -> bool {
        (0..=open.len()).any(|unlikely| self.goes_on() && self.meets_with(unlikely, open))
    }

    fn goes_on(&self) -> bool {
        self.hashed_bytes < self.hashed_bytes_max
    }

    /// Whether the id matches when `unlikely` of the open tags have a name other than their
    /// likeliest.
    fn meets_with(&mut self, unlikely: usize, open: &[Open]) -> bool {
        let Some(fewer) = unlikely.checked_sub(1) else { return self.is_met() };
        let mut rest = open;
        // Every branch leads to a trial: the loop leaves as many tags as still need another name.
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
        let is_met = self.event.check_id(&mut self.scratch).is_ok();
        self.hashed_bytes += self.scratch.len().max(FORM_BYTES_MIN);
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

/// The possible names of a tag, the likeliest first.
fn choices(tag: &[String]) -> Vec<String> {
    let Some(name) = tag.first() else { return Vec::new() };
    let value = tag.get(1).map(String::as_str).unwrap_or_default();
    let Some(first) = name.chars().next().filter(|_| is_open(name)) else {
        return vec![name.clone()];
    };
    match first {
        // The reference implementation writes an empty name as `?`.
        '?' => return vec![String::new(), name.clone()],
        // The first byte of a two-byte character: the name may be any of these characters.
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
        'e' | 'p' | 'q' | 'E' | 'P' => is_hexadecimal(value),
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
    use crate::nostr::bytes::event::{Flags, Id};

    fn people(count: usize) -> Vec<Vec<String>> {
        vec![vec!["p".to_owned(), "ab".repeat(32)]; count]
    }

    fn relays(count: usize) -> Vec<Vec<String>> {
        vec![vec!["r".to_owned(), "wss://relay".to_owned()]; count]
    }

    /// A list of people with these tags, and with the id of another event.
    fn wrong(tags: Vec<Vec<String>>, content: &str) -> Event {
        let (id, content) = (Id([1; 32]), content.to_owned());
        Event { id, pubkey: [2; 32], created_at: 3, kind: 3, tags, content, sig: [4; 64] }
    }

    /// The record of an event as the reference implementation stores it: with the first byte of
    /// each name.
    fn stored(event: &Event) -> Vec<u8> {
        let mut lost = event.clone();
        lost.tags.iter_mut().for_each(|tag| tag[0].truncate(1));
        let mut bytes = Vec::new();
        record::encode(&lost, Flags::default(), false, 4096, &mut bytes).unwrap();
        bytes
    }

    /// An event with its true id.
    fn right(kind: u16, tags: &[[&str; 2]]) -> Event {
        let tags = tags.iter().map(|tag| tag.map(str::to_owned).to_vec()).collect();
        let mut event = Event { kind, ..wrong(tags, "") };
        event.id = event.canonical_id();
        event
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

    /// Each number of unlikely names went through all names of the four open tags again, past every
    /// other tag, without a trial. One wrong event took hours.
    #[test]
    fn tags_with_one_name_cost_no_tries() {
        let names = choices(&relays(1)[0]).len();
        assert_eq!(names, 8);
        let alone = searched(wrong(relays(2), "")).hashed_bytes;
        assert_eq!(alone, names.pow(2) * FORM_BYTES_MIN);
        // Few enough people for the bytes.
        for tags in [[relays(2), people(100)], [people(100), relays(2)]] {
            let search = searched(wrong(tags.concat(), ""));
            let one = search.scratch.len();
            let all = names.pow(2) * one;
            assert!(search.hashed_bytes.abs_diff(all) < all / 10, "{}", search.hashed_bytes);
        }
    }

    /// A forged page of 4 KiB cost 65 ms, and each trial of a long event took milliseconds.
    #[test]
    fn a_search_stops_after_1024_pages() {
        for event in [
            wrong(relays(100), ""),
            wrong([relays(4), people(2_000)].concat(), ""),
            wrong(relays(500), &"long ".repeat(100_000)),
        ] {
            let search = searched(event);
            let (bytes, one) = (search.hashed_bytes, search.scratch.len());
            assert!(bytes >= HASHED_BYTES_MAX, "{bytes} bytes");
            assert!(bytes < HASHED_BYTES_MAX + 2 * one.max(FORM_BYTES_MIN), "{bytes} bytes");
        }
    }

    /// A walk along 200 forged pages took 12 seconds, because every page was searched. A match
    /// restarts the count.
    #[test]
    fn a_walk_stops_searching_after_32_failures() {
        let searches = Searches::default();
        let found = |event: &Event| {
            let bytes = stored(event);
            searches.recover(&record::parse(&bytes).unwrap())
        };
        let vain = wrong(relays(1), "");
        let lost = right(1, &[["mostr", "a"], ["bitcoin", "b"]]);
        for _ in 0..VAIN_MAX - 1 {
            assert_eq!(found(&vain), Names::Lossy);
        }
        assert_eq!(found(&lost), Names::Recovered(lost.clone()));
        for _ in 0..VAIN_MAX {
            assert_eq!(found(&vain), Names::Lossy);
        }
        assert_eq!(found(&lost), Names::Lossy);
        assert_eq!(found(&right(1, &[["r", "a"]])), Names::Intact);
    }

    /// A tag whose value looks like an id or a key kept its letter as the name, whatever the id
    /// said. If no other tag was open, the wrong tags did not even count as lossy.
    #[test]
    fn a_lost_name_of_a_hexadecimal_value_returns() {
        let (one, two, three) = ("ab".repeat(32), "cd".repeat(32), "ef".repeat(32));
        let (one, two, three) = (one.as_str(), two.as_str(), three.as_str());
        let receipt = [
            ["p", one],
            ["P", two],
            ["e", three],
            ["bolt11", "lnbc10u1p3unwfusp5t9r3yymhpfqculx78u027lxspgxcr2n2987mx2j55nnfs95nxnz"],
            ["description", "{\"kind\":9734}"],
            ["preimage", two],
        ];
        let lists = vec![["p", one]; REFERENCES_MAX - 1];
        for event in [
            right(9735, &receipt),
            right(1, &[["pubkey", one]]),
            right(27_235, &[["u", "https://example.com"], ["method", "POST"], ["payload", one]]),
            right(1, &[["p", one], ["proxy", two]]),
            right(3, &[lists, vec![["pubkey", two]]].concat()),
        ] {
            let bytes = stored(&event);
            let lost = record::parse(&bytes).unwrap();
            assert!(may_be_lost(&lost), "{event:?}");
            assert_eq!(recover(&lost), Names::Recovered(event.clone()));
            assert_eq!(event_of(&bytes, &Searches::default()), Ok((event, false)));
        }
    }

    #[test]
    fn an_unknown_hexadecimal_name_is_lossy() {
        let value = "ab".repeat(32);
        let event = right(1, &[["proof", &value]]);
        let (found, is_lossy) = event_of(&stored(&event), &Searches::default()).unwrap();
        assert_eq!((found.tags[0][0].as_str(), is_lossy), ("p", true));
    }

    /// Names of people must not cost as much as other tags, or each event of a list takes long.
    #[test]
    fn tags_of_people_cost_a_quarter() {
        let few = searched(wrong(people(REFERENCES_MAX), ""));
        let one = few.scratch.len();
        assert!(few.hashed_bytes < REFERENCE_BYTES_MAX + 3 * one, "{}", few.hashed_bytes);
        for count in [REFERENCES_MAX + 1, 2_000] {
            let many = searched(wrong(people(count), ""));
            assert_eq!(many.hashed_bytes, many.scratch.len().max(FORM_BYTES_MIN), "{count}");
        }
    }
}
