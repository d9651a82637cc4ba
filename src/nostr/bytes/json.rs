//! Events as JSON: the reader checks every field, and the writer makes JSON and the canonical form.
//!
//! An event's id is the hash of the canonical form `[0,PUBKEY,CREATED_AT,KIND,TAGS,CONTENT]`
//! without white space (NIP-01). The form uses NIP-01's seven escapes and keeps other control
//! characters verbatim, although JSON forbids them. Some serializers write `\u0001` instead, and
//! some ids are hashes of their output. [`Event::check_id`] accepts both.

use super::format::FORMAT;
use std::fmt;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use sha2::{Digest, Sha256};

use crate::error::{Error, ErrorKind, Result};
use crate::ground::slice::part;

use super::event::{Event, EventRef, Id};
use super::hex::{self, NotHex};

/// The search for escapes reads text in blocks of so many bytes.
const BLOCK_BYTES: usize = 32;

/// The known fields of an event's JSON. The reader skips other fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Id,
    Pubkey,
    CreatedAt,
    Kind,
    Tags,
    Content,
    Sig,
    Other,
}

impl Field {
    fn name(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Pubkey => "pubkey",
            Self::CreatedAt => "created_at",
            Self::Kind => "kind",
            Self::Tags => "tags",
            Self::Content => "content",
            Self::Sig => "sig",
            Self::Other => "unknown field",
        }
    }
}

impl Event {
    /// Parse an event from a JSON object and check every field. The check of the id covers the id's
    /// form only. Fields unknown to NIP-01 are skipped.
    ///
    /// # Errors
    ///
    /// The text names the field, what is wrong with it, and the column.
    pub fn from_json(text: &[u8]) -> Result<Self> {
        let mut partial = Partial::default();
        let mut json = serde_json::Deserializer::from_slice(text);
        let read = json.deserialize_map(&mut partial).and_then(|event| json.end().map(|()| event));
        let wrong = |message| Error::new(ErrorKind::InvalidArgument, message).of(FORMAT);
        let event = read.map_err(|e| {
            let reason = placed(&e);
            wrong(match partial.current {
                Some(field) => format!("{}: {reason}", field.name()),
                None => reason,
            })
        })?;
        // The parser does not check the encoding of skipped fields.
        match std::str::from_utf8(text) {
            Ok(_) => Ok(event),
            Err(e) => {
                let (field, column) = (Field::Other.name(), e.valid_up_to() + 1);
                Err(wrong(format!("{field}: not UTF-8 at column {column}")))
            }
        }
    }

    /// The event as a JSON object, the fields in the order of NIP-01.
    pub fn to_json(&self) -> String {
        let mut out = Vec::new();
        self.write_json(&mut out);
        String::from_utf8(out).unwrap_or_else(|_| unreachable!("made of text"))
    }

    /// Append the event as a JSON object.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let tags = self.tags.iter().map(|tag| tag.iter());
        object(&self.fields(), tags, &self.content, &self.sig, out);
    }

    /// Compute the id from the canonical form.
    pub fn canonical_id(&self) -> Id {
        self.canonical_id_with(&mut Vec::new())
    }

    /// Compute the id from the canonical form; `scratch` is memory to reuse.
    pub fn canonical_id_with(&self, scratch: &mut Vec<u8>) -> Id {
        let tags = self.tags.iter().map(|tag| tag.iter());
        canonical(&self.fields(), tags, &self.content, Escapes::Named, scratch);
        sha256(scratch)
    }

    /// Check that the id is the hash of the canonical form.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`], with both ids.
    pub fn check_id(&self, scratch: &mut Vec<u8>) -> Result<()> {
        let tags = || self.tags.iter().map(|tag| tag.iter());
        check_id(&self.fields(), tags, &self.content, scratch)
    }

    fn fields(&self) -> Fields {
        let &Self { id, pubkey, created_at, kind, .. } = self;
        Fields { id, pubkey, created_at, kind }
    }
}

impl EventRef<'_> {
    /// Append the event as a JSON object.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let tags = self.tags.iter().map(|tag| tag.elements());
        object(&self.fields(), tags, self.content, &self.sig, out);
    }

    /// Check that the id is the hash of the canonical form.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`], with both ids.
    pub fn check_id(&self, scratch: &mut Vec<u8>) -> Result<()> {
        let tags = || self.tags.iter().map(|tag| tag.elements());
        check_id(&self.fields(), tags, self.content, scratch)
    }

    fn fields(&self) -> Fields {
        let &Self { id, pubkey, created_at, kind, .. } = self;
        Fields { id, pubkey, created_at, kind }
    }
}

/// The id and the fields of fixed size from which the id is computed.
struct Fields {
    id: Id,
    pubkey: [u8; 32],
    created_at: u32,
    kind: u16,
}

/// How to write control characters for which NIP-01 names no escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escapes {
    /// Escaped, as JSON requires.
    All,
    /// Verbatim, as NIP-01 requires.
    Named,
}

fn check_id<T, V, S>(
    fields: &Fields,
    tags: impl Fn() -> T,
    content: &str,
    scratch: &mut Vec<u8>,
) -> Result<()>
where
    T: Iterator<Item = V>,
    V: Iterator<Item = S>,
    S: AsRef<str>,
{
    canonical(fields, tags(), content, Escapes::Named, scratch);
    let found = sha256(scratch);
    if found == fields.id {
        return Ok(());
    }
    if scratch.iter().any(|&byte| byte < b' ') {
        canonical(fields, tags(), content, Escapes::All, scratch);
        if sha256(scratch) == fields.id {
            return Ok(());
        }
    }
    let message = format!("id: {}, that of the canonical form is {found}", fields.id);
    Err(Error::new(ErrorKind::InvalidArgument, message).of(FORMAT))
}

/// The error and its column. An import puts the line number in front, so the message has no number
/// for the first line.
fn placed(error: &serde_json::Error) -> String {
    let (line, column, text) = (error.line(), error.column(), error.to_string());
    match text.strip_suffix(&format!(" at line {line} column {column}")) {
        Some(what) if line == 1 => format!("{what} at column {column}"),
        _ => text,
    }
}

fn sha256(bytes: &[u8]) -> Id {
    Id(Sha256::digest(bytes).into())
}

fn canonical<T, V, S>(fields: &Fields, tags: T, content: &str, escapes: Escapes, out: &mut Vec<u8>)
where
    T: Iterator<Item = V>,
    V: Iterator<Item = S>,
    S: AsRef<str>,
{
    out.clear();
    out.extend_from_slice(b"[0,\"");
    hex::encode(&fields.pubkey, out);
    out.extend_from_slice(b"\",");
    number(fields.created_at, out);
    out.push(b',');
    number(fields.kind.into(), out);
    out.push(b',');
    lists(tags, escapes, out);
    out.push(b',');
    string(content, escapes, out);
    out.push(b']');
}

fn object<T, V, S>(fields: &Fields, tags: T, content: &str, sig: &[u8], out: &mut Vec<u8>)
where
    T: Iterator<Item = V>,
    V: Iterator<Item = S>,
    S: AsRef<str>,
{
    out.extend_from_slice(b"{\"id\":\"");
    hex::encode(&fields.id.0, out);
    out.extend_from_slice(b"\",\"pubkey\":\"");
    hex::encode(&fields.pubkey, out);
    out.extend_from_slice(b"\",\"created_at\":");
    number(fields.created_at, out);
    out.extend_from_slice(b",\"kind\":");
    number(fields.kind.into(), out);
    out.extend_from_slice(b",\"tags\":");
    lists(tags, Escapes::All, out);
    out.extend_from_slice(b",\"content\":");
    string(content, Escapes::All, out);
    out.extend_from_slice(b",\"sig\":\"");
    hex::encode(sig, out);
    out.extend_from_slice(b"\"}");
}

fn lists<T, V, S>(tags: T, escapes: Escapes, out: &mut Vec<u8>)
where
    T: Iterator<Item = V>,
    V: Iterator<Item = S>,
    S: AsRef<str>,
{
    out.push(b'[');
    for (number, tag) in tags.enumerate() {
        out.extend_from_slice(if number > 0 { b",[" } else { b"[" });
        for (number, value) in tag.enumerate() {
            out.extend_from_slice(if number > 0 { b"," } else { b"" });
            string(value.as_ref(), escapes, out);
        }
        out.push(b']');
    }
    out.push(b']');
}

fn number(number: u32, out: &mut Vec<u8>) {
    use std::io::Write;
    let _ = write!(out, "{number}"); // a Vec takes everything
}

fn string(text: &str, escapes: Escapes, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = to_escape(rest) {
        let (plain, from) = rest.split_at(at);
        out.extend_from_slice(plain);
        let byte = from.first().copied().unwrap_or_default();
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0C => out.extend_from_slice(b"\\f"),
            _ if escapes == Escapes::Named => out.push(byte),
            _ => {
                out.extend_from_slice(b"\\u00");
                hex::encode(&[byte], out);
            }
        }
        rest = part(from, 1..);
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// The first byte that may need an escape.
fn to_escape(text: &[u8]) -> Option<usize> {
    let is_one = |&byte: &u8| (byte < 0x20) | (byte == b'"') | (byte == b'\\');
    // A block has no branch, so the processor compares all bytes of the block at once.
    let blocks = text.chunks_exact(BLOCK_BYTES);
    let plain =
        blocks.take_while(|block| !block.iter().fold(false, |any, byte| any | is_one(byte)));
    let from = plain.count() * BLOCK_BYTES;
    part(text, from..).iter().position(is_one).map(|at| from + at)
}

/// The fields read so far.
#[derive(Default)]
struct Partial {
    id: Option<Bytes<32>>,
    pubkey: Option<Bytes<32>>,
    created_at: Option<u64>,
    kind: Option<u64>,
    tags: Option<Vec<Vec<String>>>,
    content: Option<String>,
    sig: Option<Bytes<64>>,
    /// The field whose value the parser is reading.
    current: Option<Field>,
}

impl<'de> Visitor<'de> for &mut Partial {
    type Value = Event;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event, A::Error> {
        while let Some(field) = map.next_key::<Field>()? {
            self.current = Some(field);
            match field {
                Field::Id => once(&mut self.id, map.next_value()?)?,
                Field::Pubkey => once(&mut self.pubkey, map.next_value()?)?,
                Field::CreatedAt => {
                    once(&mut self.created_at, map.next_value_seed(UpTo(u32::MAX.into()))?)?;
                }
                Field::Kind => once(&mut self.kind, map.next_value_seed(UpTo(u16::MAX.into()))?)?,
                Field::Tags => once(&mut self.tags, map.next_value()?)?,
                Field::Content => once(&mut self.content, map.next_value()?)?,
                Field::Sig => once(&mut self.sig, map.next_value()?)?,
                Field::Other => drop(map.next_value::<IgnoredAny>()?),
            }
            self.current = None;
        }
        fn there<T, E: de::Error>(value: &mut Option<T>, field: Field) -> Result<T, E> {
            value.take().ok_or_else(|| E::missing_field(field.name()))
        }
        Ok(Event {
            id: Id(there(&mut self.id, Field::Id)?.0),
            pubkey: there(&mut self.pubkey, Field::Pubkey)?.0,
            created_at: there(&mut self.created_at, Field::CreatedAt)? as u32,
            kind: there(&mut self.kind, Field::Kind)? as u16,
            tags: there(&mut self.tags, Field::Tags)?,
            content: there(&mut self.content, Field::Content)?,
            sig: there(&mut self.sig, Field::Sig)?.0,
        })
    }
}

fn once<T, E: de::Error>(place: &mut Option<T>, value: T) -> Result<(), E> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::custom("given twice")),
    }
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = Field;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a field")
            }

            fn visit_str<E>(self, name: &str) -> Result<Field, E> {
                Ok(match name {
                    "id" => Field::Id,
                    "pubkey" => Field::Pubkey,
                    "created_at" => Field::CreatedAt,
                    "kind" => Field::Kind,
                    "tags" => Field::Tags,
                    "content" => Field::Content,
                    "sig" => Field::Sig,
                    _ => Field::Other,
                })
            }
        }
        json.deserialize_identifier(Name)
    }
}

/// Bytes in lower-case hexadecimal.
struct Bytes<const N: usize>([u8; N]);

impl<'de, const N: usize> Deserialize<'de> for Bytes<N> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Hex<const N: usize>;
        impl<const N: usize> Visitor<'_> for Hex<N> {
            type Value = Bytes<N>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a string of {} lower-case hexadecimal digits", 2 * N)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Bytes<N>, E> {
                hex::decode(text.as_bytes()).map(Bytes).map_err(|why| match why {
                    NotHex::Length(len) => {
                        E::custom(format_args!("{len} bytes of text, {} needed", 2 * N))
                    }
                    NotHex::Digit(at) => {
                        let found = text.get(at..).and_then(|rest| rest.chars().next());
                        let found = found.unwrap_or(char::REPLACEMENT_CHARACTER);
                        let needed = "lower-case hexadecimal digits needed";
                        E::custom(format_args!("character {found:?} at {at}, {needed}"))
                    }
                })
            }
        }
        json.deserialize_str(Hex)
    }
}

/// An integer from 0 to this limit.
struct UpTo(u64);

impl<'de> DeserializeSeed<'de> for UpTo {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<u64, D::Error> {
        json.deserialize_u64(self)
    }
}

impl Visitor<'_> for UpTo {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an integer from 0 to {}", self.0)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<u64, E> {
        match number {
            number if number <= self.0 => Ok(number),
            _ => Err(E::custom(format_args!("{number}, limit {}", self.0))),
        }
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<u64, E> {
        Err(E::custom(format_args!("{number}, minimum 0")))
    }
}
