//! Tags of any entries, checked by a second implementation of the layout; and tags of any texts, read back from entries
//! readable by other programs.

use deedbook::engine::nostr::{encode, parse};
use deedbook::nostr::{Event, Flags};

use super::kit::Input;
use super::nostr_layout::{entries, entry, event_of, record};

const PAGE: usize = 4096;
/// The place of the length of the tags, in a record of one page and of several pages.
const TAGS_AT: [usize; 2] = [75, 77];

/// The target.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    match input.u8() & 1 {
        0 => any_entries(&mut input),
        _ => any_texts(&mut input),
    }
}

fn any_entries(input: &mut Input<'_>) {
    let how = input.u8();
    let mut all = Vec::new();
    while !input.is_empty() && all.len() < 40 {
        all.push(any_entry(input));
    }
    let mut tags = entries(&all);
    if how & 1 == 1 {
        let at = input.below(tags.len());
        tags[at] ^= 1 << (how >> 5);
    }
    if how & 2 == 2 {
        tags.truncate(how as usize);
    }
    let event = event_of(1, 5);
    let read = parse(&record(&event, &tags, 0, how & 4 == 4, PAGE)).map(|read| read.to_event());
    let expected = decode(&tags);
    assert_eq!(read.as_ref().ok().map(|event| &event.tags), expected.as_ref());
    let Ok(event) = read else { return };
    let mut again = Vec::new();
    encode(&event, Flags(0), true, PAGE as u32, &mut again).unwrap();
    assert_eq!(parse(&again).unwrap().to_event(), event);
}

fn any_entry(input: &mut Input<'_>) -> Vec<u8> {
    let how = input.u8();
    if how == 0xFF {
        let len = input.u8();
        return input.bytes(len.into()).to_vec();
    }
    let kind = match how & 7 {
        0..=3 => 1,
        4 => 0,
        5 => b'e',
        _ => input.u8(),
    };
    let values = (0..how >> 3 & 3).map(|_| any_value(input));
    let values: Vec<Vec<u8>> = values.collect();
    entry(kind, &values.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn any_value(input: &mut Input<'_>) -> Vec<u8> {
    match input.u8() {
        how @ 0..0x60 => b"+"[..usize::from(how & 1)].to_vec(),
        how => input.bytes((how & 7).into()).to_vec(),
    }
}

/// The tags according to the layout; `None` for refused entries.
fn decode(bytes: &[u8]) -> Option<Vec<Vec<String>>> {
    let Some(count) = bytes.first_chunk() else { return bytes.is_empty().then(Vec::new) };
    let (mut rest, mut has_value) = (&bytes[2..], false);
    let mut tags: Vec<Vec<Vec<u8>>> = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (kind, after) = rest.split_first()?;
        let (data, after) = sized(after)?;
        rest = after;
        let (number, mut data) = data.split_first()?;
        let mut values: Vec<&[u8]> = Vec::new();
        for _ in 0..*number {
            let (value, after) = sized(data)?;
            values.push(value);
            data = after;
        }
        if !data.is_empty() {
            return None;
        }
        match (kind, values.as_slice(), tags.last_mut()) {
            (1, [b"", more @ ..], Some(tag)) => {
                tag.extend(more.iter().map(|value| value.to_vec()));
                has_value |= !more.is_empty();
            }
            (1, [b"+", first, more @ ..], Some(tag)) if has_value => {
                tag.last_mut()?.extend_from_slice(first);
                tag.extend(more.iter().map(|value| value.to_vec()));
            }
            (kind, values, _) => {
                let name = char::from(*kind).to_string().into_bytes();
                let name = (*kind > 0).then_some(name);
                tags.push(name.into_iter().chain(values.iter().map(|v| v.to_vec())).collect());
                has_value = !values.is_empty();
            }
        }
    }
    let text = |tag: Vec<Vec<u8>>| tag.into_iter().map(|value| String::from_utf8(value).ok());
    let tags = tags.into_iter().map(|tag| text(tag).collect());
    rest.is_empty().then(|| tags.collect())?
}

/// The bytes after a length of two bytes, and the rest.
fn sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = u16::from_be_bytes(*bytes.first_chunk()?).into();
    bytes[2..].split_at_checked(len)
}

fn any_texts(input: &mut Input<'_>) {
    let trailer = input.u8() & 1 == 1;
    let tags = (0..input.u8() % 6).map(|_| any_texts_of_a_tag(input)).collect();
    let event = Event { tags, ..event_of(1, 5) };
    let mut bytes = Vec::new();
    encode(&event, Flags(0), trailer, PAGE as u32, &mut bytes).unwrap();
    assert_eq!(parse(&bytes).unwrap().to_event(), event);
    let at = TAGS_AT[usize::from(bytes.len() > PAGE)];
    let len = u32::from_be_bytes(*bytes[at..].first_chunk().unwrap());
    let stored = &bytes[at + 4..][..len as usize];
    assert_eq!(decode(stored).as_ref(), Some(&event.tags));
    // A reader that regards each entry as a tag finds text in each.
    let (mut rest, mut found) = (&stored[2..], 0);
    while let Some((_, after)) = rest.split_first() {
        let (data, after) = sized(after).unwrap();
        let one = [&[0, 1], &rest[..3 + data.len()]].concat();
        assert_eq!(decode(&one).unwrap().len(), 1);
        (rest, found) = (after, found + 1);
    }
    assert_eq!(found, u16::from_be_bytes(*stored.first_chunk().unwrap()));
}

fn any_texts_of_a_tag(input: &mut Input<'_>) -> Vec<String> {
    let how = input.u8();
    // More values than an entry can count, or values about as long as the longest entry, and longer.
    let many = how >= 0xF0;
    let texts = (0..how & 7).map(|_| {
        let how = input.u8();
        let unit = String::from_utf8_lossy(input.bytes(usize::from(how & 7))).into_owned();
        let len = match how >> 3 {
            31 if !many => 200_000,
            30 if !many => 65_520 + usize::from(input.u8() & 31),
            _ => unit.len(),
        };
        unit.repeat(len.checked_div(unit.len()).unwrap_or(1))
    });
    let texts: Vec<String> = texts.collect();
    vec![texts; if many { 100 } else { 1 }].concat()
}
