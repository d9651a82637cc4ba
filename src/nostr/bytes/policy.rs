//! The rules of NIP-01, NIP-09 and NIP-40 for events: pure, no I/O.
//!
//! | kinds | class |
//! |---|---|
//! | 0, 3, 10000-19999 | replaceable: the newest of an author counts |
//! | 20000-29999 | ephemeral: not stored |
//! | 30000-39999 | addressable: the newest of an author and a `d` tag counts |
//! | others | regular |

use std::borrow::Cow;

use super::event::{EventRef, Id};
use super::signature;
use super::tags::{Tag, TagsRef};

/// Deletion requests of NIP-09.
pub const DELETION: u16 = 5;
/// The name of the tag of NIP-40.
const EXPIRATION: &str = "expiration";

/// How long an event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Regular,
    Replaceable,
    Ephemeral,
    Addressable,
}

/// The class of a kind.
pub fn class_of(kind: u16) -> Class {
    match kind {
        0 | 3 | 10_000..20_000 => Class::Replaceable,
        20_000..30_000 => Class::Ephemeral,
        30_000..40_000 => Class::Addressable,
        _ => Class::Regular,
    }
}

/// The key shared by all versions of a replaceable or addressable event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    pub kind: u16,
    pub pubkey: [u8; 32],
    /// Empty for replaceable events.
    pub d: String,
}

impl Address {
    /// The address of an event, if it has one.
    pub fn of(event: &EventRef<'_>) -> Option<Self> {
        let d = match class_of(event.kind) {
            Class::Replaceable => String::new(),
            Class::Addressable => d_of(event.tags).into_owned(),
            Class::Regular | Class::Ephemeral => return None,
        };
        Some(Self { kind: event.kind, pubkey: event.pubkey, d })
    }

    /// Read the value of an `a` tag: `KIND:PUBKEY:D`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let kind: u16 = parts.next()?.parse().ok()?;
        let Id(pubkey) = parts.next()?.parse().ok()?;
        let d = parts.next().unwrap_or_default().to_owned();
        match class_of(kind) {
            Class::Replaceable => Some(Self { kind, pubkey, d: String::new() }),
            Class::Addressable => Some(Self { kind, pubkey, d }),
            Class::Regular | Class::Ephemeral => None,
        }
    }
}

/// Whether a version wins over another version of the same address. The newer version wins; within
/// one second, the version with the lower id.
pub fn is_newer(created_at: u32, id: Id, than_created_at: u32, than_id: Id) -> bool {
    (created_at, std::cmp::Reverse(id)) > (than_created_at, std::cmp::Reverse(than_id))
}

/// The targets of a deletion request. A request can delete its author's events only, and no
/// deletion request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    pub ids: Vec<Id>,
    /// All versions up to the time of the request.
    pub addresses: Vec<Address>,
}

/// The targets of a deletion request. Other events have none. A request without its author's
/// signature has none either, or anybody could delete the events of others.
pub fn targets_of(event: &EventRef<'_>) -> Targets {
    let targets = asked_by(event);
    if targets == Targets::default() {
        return targets;
    }
    let is_true = event.check_id(&mut Vec::new()).is_ok()
        && signature::check(event.id, &event.pubkey, &event.sig).is_ok();
    if is_true { targets } else { Targets::default() }
}

/// The targets that a request names, whoever wrote the request.
pub fn asked_by(event: &EventRef<'_>) -> Targets {
    let mut targets = Targets::default();
    if event.kind != DELETION {
        return targets;
    }
    for tag in event.tags.iter() {
        let Some(value) = tag.value() else { continue };
        match tag.letter() {
            Some(b'e') => targets.ids.extend(value.parse::<Id>()),
            Some(b'a') => {
                let address = Address::parse(&value);
                targets.addresses.extend(address.filter(|found| found.pubkey == event.pubkey));
            }
            _ => {}
        }
    }
    targets
}

/// Whether an event counts for queries and walks.
pub fn counts(event: &EventRef<'_>, now: u64) -> bool {
    event.flags.is_live() && !is_over(event.kind, event.tags, now)
}

/// Whether an event is expired.
#[inline]
pub fn is_over(kind: u16, tags: TagsRef<'_>, now: u64) -> bool {
    expires_at(kind, tags).is_some_and(|at| at <= now)
}

/// The second at which an event expires. A deletion request never expires: without the request, the
/// deleted events would come back.
#[inline]
pub fn expires_at(kind: u16, tags: TagsRef<'_>) -> Option<u64> {
    // This runs for each event read, and nearly no event has an expiration tag.
    if !tags.may_name(EXPIRATION) || kind == DELETION {
        return None;
    }
    first_value(tags, EXPIRATION)?.parse().ok()
}

/// The value of the `d` tag, which distinguishes addressable events of one author and kind.
pub fn d_of(tags: TagsRef<'_>) -> Cow<'_, str> {
    first_value(tags, "d").unwrap_or_default()
}

fn first_value<'a>(tags: TagsRef<'a>, name: &str) -> Option<Cow<'a, str>> {
    tags.iter().find(|tag| is_named(*tag, name))?.value()
}

/// Whether a tag has a name. Most names are one byte, which is cheap to compare.
fn is_named(tag: Tag<'_>, name: &str) -> bool {
    match tag.letter() {
        Some(letter) => name.as_bytes() == [letter],
        None => tag.name() == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nostr::bytes::event::{Event, Flags};
    use crate::nostr::bytes::record;

    fn with_event<T>(kind: u16, tags: &[&[&str]], look: impl FnOnce(&EventRef<'_>) -> T) -> T {
        let tags = tags.iter().map(|tag| tag.iter().map(|&part| part.to_owned()).collect());
        let event = Event {
            id: Id([7; 32]),
            pubkey: [1; 32],
            created_at: 100,
            kind,
            tags: tags.collect(),
            content: String::new(),
            sig: [0; 64],
        };
        let mut bytes = Vec::new();
        record::encode(&event, Flags::default(), false, 4096, &mut bytes).unwrap();
        look(&record::parse(&bytes).unwrap())
    }

    fn address_of(kind: u16, tags: &[&[&str]]) -> Option<Address> {
        with_event(kind, tags, Address::of)
    }

    #[test]
    fn kinds_have_the_classes_of_nip_01() {
        let classes = [0, 1, 3, 5, 9_999, 10_000, 19_999, 20_000, 29_999, 30_000, 39_999, 40_000];
        use Class::{Addressable, Ephemeral, Regular, Replaceable};
        let expected = [
            Replaceable,
            Regular,
            Replaceable,
            Regular,
            Regular,
            Replaceable,
            Replaceable,
            Ephemeral,
            Ephemeral,
            Addressable,
            Addressable,
            Regular,
        ];
        assert_eq!(classes.map(class_of), expected);
    }

    #[test]
    fn the_lower_id_wins_within_a_second() {
        let (low, high) = (Id([1; 32]), Id([2; 32]));
        assert!(is_newer(2, high, 1, low) && !is_newer(1, low, 2, high));
        assert!(is_newer(1, low, 1, high) && !is_newer(1, high, 1, low));
        assert!(!is_newer(1, low, 1, low));
    }

    #[test]
    fn an_address_is_kind_author_and_d() {
        let author = "01".repeat(32);
        let address = address_of(30_023, &[&["t", "x"], &["d", "a:b"], &["d", "second"]]).unwrap();
        assert_eq!(address, Address { kind: 30_023, pubkey: [1; 32], d: "a:b".into() });
        assert_eq!(Address::parse(&format!("30023:{author}:a:b")), Some(address));
        assert_eq!(address_of(30_023, &[]).unwrap().d, "");
        assert_eq!(address_of(0, &[&["d", "ignored"]]).unwrap().d, "");
        assert_eq!(address_of(1, &[&["d", "x"]]), None);
        for nothing in [&["d"][..], &["d", ""]] {
            assert_eq!(address_of(30_023, &[nothing, &["d", "x"]]).unwrap().d, "");
        }
        for wrong in ["30023", "30023:01:x", "x:01:y", "1:01:x", ""] {
            assert_eq!(Address::parse(wrong), None, "{wrong}");
        }
    }

    /// The index had such an event at another address, so nothing replaced or deleted the event.
    #[test]
    fn a_foreign_name_written_as_value_is_kept() {
        let tags = TagsRef::parse(b"\0\x01\0\0\x07\x02\0\x01d\0\x01x").unwrap();
        assert_eq!(tags.to_vec(), [["d", "x"]]);
        assert_eq!(d_of(tags), "x");
    }

    #[test]
    fn a_request_deletes_what_is_its_authors() {
        let (own, other) = ("01".repeat(32), "02".repeat(32));
        let (by_own, by_other) = (format!("30023:{own}:d"), format!("30023:{other}:d"));
        let tags: &[&[&str]] =
            &[&["e", &other], &["e", "no id"], &["e"], &["a", &by_own], &["a", &by_other]];
        let targets = with_event(DELETION, tags, asked_by);
        assert_eq!(targets.ids, [Id([2; 32])]);
        let address = Address { kind: 30_023, pubkey: [1; 32], d: "d".into() };
        assert_eq!(targets.addresses, [address]);
        assert_eq!(with_event(1, tags, asked_by), Targets::default());
        // The event carries an invalid signature.
        assert_eq!(with_event(DELETION, tags, targets_of), Targets::default());
    }

    #[test]
    fn an_expiration_is_a_number_of_seconds() {
        let at = |kind, tags: &[&[&str]]| {
            with_event(kind, tags, |event| expires_at(event.kind, event.tags))
        };
        let over: &[&str] = &["expiration", "1655000000"];
        assert_eq!(at(1, &[over]), Some(1_655_000_000));
        assert_eq!(
            at(1, &[&["e", "x"], &["exp"], &[], over, &["expiration", "5"]]),
            Some(1_655_000_000)
        );
        for other in ["soon", "", "-1", "1.5"] {
            assert_eq!(at(1, &[&["expiration", other], over]), None, "{other:?}");
        }
        assert_eq!(at(1, &[&["expiration"], over]), None);
        assert_eq!(
            at(1, &[&["Expiration", "5"], &["t", "expiration"], &["title", "expiration"]]),
            None
        );
        assert_eq!(at(1, &[]), None);
        assert_eq!(at(DELETION, &[over]), None);
    }

    /// A name stored in pieces is one name, as other readers see it.
    #[test]
    fn an_expiration_in_pieces_is_one() {
        let pieces = b"\0\x02\0\0\x07\x01\0\x04expi\x01\0\x10\x03\0\x01+\0\x06ration\0\x0212";
        let tags = TagsRef::parse(pieces).unwrap();
        assert_eq!(tags.to_vec(), [["expiration", "12"]]);
        assert_eq!(expires_at(1, tags), Some(12));
        assert!(is_over(1, tags, 12) && !is_over(1, tags, 11));
    }
}
