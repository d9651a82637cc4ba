//! Filters of NIP-01: parse from JSON, match against an event. Pure, no I/O.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::error::{Error, ErrorKind, Result};
use crate::nostr::bytes::event::{EventRef, Id};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::bytes::hex;

/// The conditions of a query. An event must match every condition. An empty list matches no event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The accepted ids.
    pub ids: Option<BTreeSet<Id>>,
    /// The accepted public keys.
    pub authors: Option<BTreeSet<[u8; 32]>>,
    /// The accepted kinds.
    pub kinds: Option<BTreeSet<u16>>,
    /// The accepted first values by letter: the event needs a tag with this name and one of the
    /// values. Every letter must match.
    pub tags: BTreeMap<u8, BTreeSet<String>>,
    /// The first accepted second.
    pub since: Option<u64>,
    /// The last accepted second.
    pub until: Option<u64>,
    /// The number of newest events to return. [`Filter::matches`] ignores the limit.
    pub limit: Option<u64>,
}

impl Filter {
    /// Read a filter from JSON.
    ///
    /// # Errors
    ///
    /// Fails for JSON that is no filter.
    pub fn parse(json: &str) -> Result<Self> {
        match read(json)? {
            Value::Object(fields) => Self::of(&fields),
            other => Err(wrong(format!("filter: {}, an object needed", type_of(&other)))),
        }
    }

    /// Parse a filter or a list of filters. An event must match at least one filter of the list.
    ///
    /// # Errors
    ///
    /// Fails for JSON that is no filter.
    pub fn parse_any(json: &str) -> Result<Vec<Self>> {
        let one = |value: &Value| match value {
            Value::Object(fields) => Self::of(fields),
            other => Err(wrong(format!("filter: {}, an object needed", type_of(other)))),
        };
        match read(json)? {
            Value::Array(filters) => filters.iter().map(one).collect(),
            other => Ok(vec![one(&other)?]),
        }
    }

    /// Whether an event matches every condition.
    pub fn matches(&self, event: &EventRef<'_>) -> bool {
        let at = u64::from(event.created_at);
        self.since.is_none_or(|since| at >= since)
            && self.until.is_none_or(|until| at <= until)
            && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&event.kind))
            && self.authors.as_ref().is_none_or(|authors| authors.contains(&event.pubkey))
            && self.ids.as_ref().is_none_or(|ids| ids.contains(&event.id))
            && self.tags.iter().all(|(&letter, values)| has_tag(event, letter, values))
    }

    /// The first and the last second of matching events; `None` if no second matches.
    pub(super) fn times(&self) -> Option<(u32, u32)> {
        let since = u32::try_from(self.since.unwrap_or(0)).ok()?;
        let until = self.until.map_or(u32::MAX, |until| until.min(u32::MAX.into()) as u32);
        (since <= until).then_some((since, until))
    }

    fn of(fields: &Map<String, Value>) -> Result<Self> {
        let mut filter = Self::default();
        for (name, value) in fields {
            match (name.as_str(), name.as_bytes()) {
                ("ids", _) => {
                    filter.ids =
                        Some(keys(name, value)?.map(|id| id.map(Id)).collect::<Result<_>>()?)
                }
                ("authors", _) => filter.authors = Some(keys(name, value)?.collect::<Result<_>>()?),
                ("kinds", _) => filter.kinds = Some(kinds(name, value)?),
                ("since", _) => filter.since = Some(number(name, value)?),
                ("until", _) => filter.until = Some(number(name, value)?),
                ("limit", _) => filter.limit = Some(number(name, value)?),
                (_, &[b'#', letter]) if letter.is_ascii_alphabetic() => {
                    filter.tags.insert(letter, values(name, letter, value)?);
                }
                _ => return Err(wrong(format!("filter: unknown field {name:?}"))),
            }
        }
        Ok(filter)
    }
}

/// Filters joined by "or", with the number of events that each filter still wants.
#[derive(Clone, Debug)]
pub struct Wanted<'f> {
    filters: Vec<(&'f Filter, u64)>,
}

impl<'f> Wanted<'f> {
    /// Start with the limits of the filters.
    pub fn of(filters: &'f [Filter]) -> Self {
        let left = |filter: &'f Filter| (filter, filter.limit.unwrap_or(u64::MAX));
        Self { filters: filters.iter().map(left).collect() }
    }

    /// Whether a filter below its limit matches. Events must come newest first.
    pub fn takes(&mut self, event: &EventRef<'_>) -> bool {
        let mut taken = false;
        for (filter, left) in &mut self.filters {
            if *left > 0 && filter.matches(event) {
                *left -= 1;
                taken = true;
            }
        }
        taken
    }

    /// Whether every filter has reached its limit.
    pub fn is_satisfied(&self) -> bool {
        self.filters.iter().all(|&(_, left)| left == 0)
    }
}

fn has_tag(event: &EventRef<'_>, letter: u8, values: &BTreeSet<String>) -> bool {
    event.tags.iter().any(|tag| {
        tag.letter() == Some(letter) && tag.value().is_some_and(|value| values.contains(&*value))
    })
}

fn read(json: &str) -> Result<Value> {
    serde_json::from_str(json).map_err(|error| wrong(format!("filter: {error}")))
}

fn list<'v>(name: &str, value: &'v Value) -> Result<&'v [Value]> {
    let list = value.as_array().map(Vec::as_slice);
    list.ok_or_else(|| wrong(format!("filter: {name}: {}, a list needed", type_of(value))))
}

fn text<'v>(name: &str, value: &'v Value) -> Result<&'v str> {
    value.as_str().ok_or_else(|| wrong(format!("filter: {name}: {value}, a text needed")))
}

fn number(name: &str, value: &Value) -> Result<u64> {
    let message = || format!("filter: {name}: {value}, a whole number from 0 on needed");
    value.as_u64().ok_or_else(|| wrong(message()))
}

fn key(name: &str, text: &str) -> Result<[u8; 32]> {
    let message = || format!("filter: {name}: {text:?}, 64 lower-case hexadecimal digits needed");
    hex::decode(text.as_bytes()).map_err(|_| wrong(message()))
}

fn keys<'v>(
    name: &'v str,
    value: &'v Value,
) -> Result<impl Iterator<Item = Result<[u8; 32]>> + 'v> {
    Ok(list(name, value)?.iter().map(move |item| key(name, text(name, item)?)))
}

fn kinds(name: &str, value: &Value) -> Result<BTreeSet<u16>> {
    let one = |item: &Value| {
        let message = || format!("filter: {name}: {item}, a whole number from 0 to 65,535 needed");
        item.as_u64().and_then(|kind| kind.try_into().ok()).ok_or_else(|| wrong(message()))
    };
    list(name, value)?.iter().map(one).collect()
}

fn values(name: &str, letter: u8, value: &Value) -> Result<BTreeSet<String>> {
    let one = |item: &Value| {
        let value = text(name, item)?;
        if matches!(letter, b'e' | b'p') {
            key(name, value)?;
        }
        Ok(value.to_owned())
    };
    list(name, value)?.iter().map(one).collect()
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, message).of(FORMAT)
}
