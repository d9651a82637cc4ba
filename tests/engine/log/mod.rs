//! What every log format promises, by tests that run for each of them.

#![allow(dead_code)]

mod beside;
mod bookmarks;
mod carried;
mod large;
mod limits;
#[cfg(unix)]
mod live;
mod marks;
mod noted;
mod opens;
#[cfg(unix)]
mod places;
mod properties;
mod sidecar;

use crate::support::common;
use crate::support::formats::{book, framing, specimen, subject, wal};

/// Every format that the suites run for.
const FORMATS: [&dyn subject::Format; 4] = [&book::BOOK, &wal::SINGLE, &wal::TINY, &book::SLOTS];
/// The same for logs of many megabytes.
const LARGE: [&dyn subject::Format; 4] = [&book::BOOK, &wal::SINGLE, &wal::SEGMENTS, &book::SLOTS];

/// Those of whose records each has a checksum. In the layout `slots` a batch has one, so that a changed byte
/// is seen by it, or not at all; and what of a batch is not there takes the whole batch, back to the sync
/// before. `tests/book/slots` and `tests/engine/answers/slots.rs` judge that.
fn with_sums() -> impl Iterator<Item = &'static dyn subject::Format> {
    LARGE.into_iter().filter(|format| format.framing() != framing::Framing::Slots)
}

/// One of them by its name.
fn format_named(name: &str) -> &'static dyn subject::Format {
    LARGE.into_iter().find(|format| format.name() == name).expect("a format of these suites")
}

/// This binary once more, in a role that a test gave it: `ROLE:FORMAT`.
#[test]
#[cfg(unix)]
fn child() {
    let Some((role, path)) = common::role() else { return };
    let (role, name) = role.split_once(':').unwrap();
    let (format, at) = (format_named(name), subject::At::disk(path));
    match role {
        "fork" => live::fork(format, &at),
        "orphan" => live::orphan(format, &at),
        "try" => live::attempt(format, &at),
        "hold" => places::hold(format, &at),
        _ => unreachable!("{role}"),
    }
}
