//! The keys of the index: pure, no I/O. Big-endian, so the order of bytes is the order of numbers.
//!
//! ```text
//! id                00 | id 32                                           location 8, created_at 4
//! author            01 | author 32 | newest 36                           location 8, hint 10
//! kind              02 | kind 2 | newest 36                              location 8, hint 10
//! author and kind   03 | author 32 | kind 2 | newest 36                  location 8
//! tag               04 | letter 1 | value 8 | newest 36                  location 8, hint 10
//! time              05 | newest 36                                       location 8, hint 10
//! address           06 | author 32 | kind 2 | d 16 | newest 36           location 8; addressable events only
//! covered           07                                                   a position, as the caller has it
//! segments          08                                                   last 4, unmoved from 4
//!
//! newest   created_at, all bits inverted 4 | id 32                       newest first, then by id
//! value    the first 8 bytes of the SHA-256 of the tag's first value
//! d        the first 16 bytes of the SHA-256 of the value of the `d` tag
//! hint     kind 2 | the first 8 bytes of the public key
//! ```
//!
//! A compaction moves events, and writes the new locations only under the ids. `unmoved from` is
//! the last segment at the last compaction plus one. Events from there on have not moved, and the
//! location in a range is right. For the others, the id has the location.
//!
//! Hashes give all keys of a type one short length. Two tags may share a key, so the caller matches
//! every event of a range. The hashes of `d` are compared within one author only, so 16 bytes are
//! enough.

use sha2::{Digest, Sha256};

use crate::ground::slice::{part, u32_be_at};
use crate::nostr::bytes::event::{EventRef, Id, Location};
use crate::nostr::bytes::policy::d_of;

const ID: u8 = 0;
const AUTHOR: u8 = 1;
const KIND: u8 = 2;
const AUTHOR_KIND: u8 = 3;
const TAG: u8 = 4;
const TIME: u8 = 5;
const ADDRESS: u8 = 6;
/// The key of the position that the index covers.
pub const COVERED: &[u8] = &[7];
/// The key of the last segment and of the first segment with unmoved events.
pub const SEGMENTS: &[u8] = &[8];

const AUTHOR_BYTES: usize = 32;
const VALUE_BYTES: usize = 8;
const D_BYTES: usize = 16;
const TIME_BYTES: usize = 4;
const ID_BYTES: usize = 32;
/// Size of the sort order: the end of every key except an id's key.
pub const NEWEST_BYTES: usize = TIME_BYTES + ID_BYTES;
const HINT_AUTHOR_BYTES: usize = 8;
/// Size of a hint.
pub const HINT_BYTES: usize = 2 + HINT_AUTHOR_BYTES;
const LOCATION_BYTES: usize = 8;

/// Kinds for which the newest event of an author and a `d` tag counts.
const ADDRESSABLE: std::ops::Range<u16> = 30_000..40_000;

/// The time and id of an event, as bytes sorted newest first.
pub type Newest = [u8; NEWEST_BYTES];

/// The kind and the author of an event, enough to skip most events that do not match.
pub type Hint = [u8; HINT_BYTES];

/// Call `put` with each key of an event and its value, except the id's key.
pub fn each(event: &EventRef<'_>, location: Location, mut put: impl FnMut(&[u8], &[u8])) {
    let newest = newest(event.created_at, event.id);
    let mut hinted = [0; LOCATION_BYTES + HINT_BYTES];
    let (at, hint_bytes) = hinted.split_at_mut(LOCATION_BYTES);
    at.copy_from_slice(&encode_location(location));
    hint_bytes.copy_from_slice(&hint(event.kind, &event.pubkey));
    let (hint, alone) = (&hinted[..], part(&hinted, ..LOCATION_BYTES));
    let mut key = Vec::with_capacity(1 + AUTHOR_BYTES + 2 + D_BYTES + NEWEST_BYTES);
    let mut put = |prefix: &dyn Fn(&mut Vec<u8>), value: &[u8]| {
        key.clear();
        prefix(&mut key);
        key.extend_from_slice(&newest);
        put(&key, value);
    };
    put(&|key| author(&event.pubkey, key), hint);
    put(&|key| kind(event.kind, key), hint);
    put(&|key| author_kind(&event.pubkey, event.kind, key), alone);
    put(&|key| time(key), hint);
    for one in event.tags.iter() {
        if let (Some(letter), Some(value)) = (one.letter(), one.value()) {
            put(&|key| tag(letter, &value, key), hint);
        }
    }
    if ADDRESSABLE.contains(&event.kind) {
        let d = d_of(event.tags);
        put(&|key| address(&event.pubkey, event.kind, &d, key), alone);
    }
}

/// The key of an id.
pub fn id(id: &Id) -> [u8; 1 + ID_BYTES] {
    let mut key = [ID; 1 + ID_BYTES];
    let (_, rest) = key.split_at_mut(1);
    rest.copy_from_slice(&id.0);
    key
}

/// The prefix of a range: all events of an author.
pub fn author(pubkey: &[u8; 32], key: &mut Vec<u8>) {
    key.push(AUTHOR);
    key.extend_from_slice(pubkey);
}

/// All events of a kind.
pub fn kind(kind: u16, key: &mut Vec<u8>) {
    key.push(KIND);
    key.extend_from_slice(&kind.to_be_bytes());
}

/// All events of an author and a kind.
pub fn author_kind(pubkey: &[u8; 32], kind: u16, key: &mut Vec<u8>) {
    key.push(AUTHOR_KIND);
    key.extend_from_slice(pubkey);
    key.extend_from_slice(&kind.to_be_bytes());
}

/// All events with a tag.
pub fn tag(letter: u8, value: &str, key: &mut Vec<u8>) {
    key.extend_from_slice(&[TAG, letter]);
    key.extend(Sha256::digest(value).iter().take(VALUE_BYTES));
}

/// All events.
pub fn time(key: &mut Vec<u8>) {
    key.push(TIME);
}

/// The prefix of all versions at an address, if the kind has addresses.
pub fn versions(pubkey: &[u8; 32], kind: u16, d: &str, key: &mut Vec<u8>) {
    match ADDRESSABLE.contains(&kind) {
        true => address(pubkey, kind, d, key),
        false => author_kind(pubkey, kind, key),
    }
}

fn address(pubkey: &[u8; 32], kind: u16, d: &str, key: &mut Vec<u8>) {
    key.push(ADDRESS);
    key.extend_from_slice(pubkey);
    key.extend_from_slice(&kind.to_be_bytes());
    key.extend(Sha256::digest(d).iter().take(D_BYTES));
}

/// The first key and the end of a range: the events from `since` to `until`, both included.
pub fn range(prefix: &[u8], since: u32, until: u32) -> (Vec<u8>, Vec<u8>) {
    let from = [prefix, &(!until).to_be_bytes()].concat();
    // The end is longer than any id, so it sorts after every id of the last second.
    let end = [prefix, &(!since).to_be_bytes(), &[0xFF; ID_BYTES + 1]].concat();
    (from, end)
}

/// The sort order of an event.
pub fn newest(created_at: u32, id: Id) -> Newest {
    let mut newest = [0; NEWEST_BYTES];
    let (time, rest) = newest.split_at_mut(TIME_BYTES);
    time.copy_from_slice(&(!created_at).to_be_bytes());
    rest.copy_from_slice(&id.0);
    newest
}

/// The sort order in a key, if the key is long enough.
pub fn newest_of(key: &[u8]) -> Option<Newest> {
    key.last_chunk().copied()
}

/// The id in a sort order.
pub fn id_of(newest: &Newest) -> Id {
    let mut id = [0; ID_BYTES];
    id.copy_from_slice(newest.split_at(TIME_BYTES).1);
    Id(id)
}

/// The hint of an event.
pub fn hint(kind: u16, pubkey: &[u8; 32]) -> Hint {
    let mut hint = [0; HINT_BYTES];
    let (first, rest) = hint.split_at_mut(2);
    first.copy_from_slice(&kind.to_be_bytes());
    rest.copy_from_slice(pubkey.split_at(HINT_AUTHOR_BYTES).0);
    hint
}

/// The value of an id's key.
pub fn place(location: Location, created_at: u32) -> [u8; LOCATION_BYTES + TIME_BYTES] {
    let mut value = [0; LOCATION_BYTES + TIME_BYTES];
    let (at, time) = value.split_at_mut(LOCATION_BYTES);
    at.copy_from_slice(&encode_location(location));
    time.copy_from_slice(&created_at.to_be_bytes());
    value
}

/// The value of [`SEGMENTS`].
pub fn segments(last: u32, unmoved_from: u32) -> [u8; LOCATION_BYTES] {
    encode_location(Location { segment: last, offset: unmoved_from })
}

fn encode_location(location: Location) -> [u8; LOCATION_BYTES] {
    (u64::from(location.segment) << 32 | u64::from(location.offset)).to_be_bytes()
}

/// The location at the start of any value but a position.
pub fn location_of(value: &[u8]) -> Option<Location> {
    Some(Location { segment: u32_be_at(value, 0)?, offset: u32_be_at(value, 4)? })
}

/// The hint after the location, if any.
pub fn hint_of(value: &[u8]) -> Option<Hint> {
    value.get(LOCATION_BYTES..)?.try_into().ok()
}

/// The location and the time in the value of an id's key.
pub fn place_of(value: &[u8]) -> Option<(Location, u32)> {
    Some((location_of(value)?, u32_be_at(value, LOCATION_BYTES)?))
}
