//! Promises of every log format, by tests that run for each format.

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

use crate::support::common::{self, event_of};
use crate::support::formats::specimen::in_memory;
use crate::support::formats::subject::{Event, Record, refused};
use crate::support::formats::views::{WRITTEN, all_but, all_give, broken, salvages};
use crate::support::formats::{book, wal};
use crate::support::prelude::*;

const FORMATS: [&dyn Format; 4] = [&book::BOOK, &wal::SINGLE, &wal::TINY, &book::SLOTS];
const LARGE: [&dyn Format; 4] = [&book::BOOK, &wal::SINGLE, &wal::SEGMENTS, &book::SLOTS];

/// Formats with a checksum for each record. `slots` has one for a batch, so readers may miss a changed byte, and a
/// missing part costs the batch: `tests/book/slots` and `tests/engine/answers/slots.rs` judge it.
fn with_sums() -> impl Iterator<Item = &'static dyn Format> {
    LARGE.into_iter().filter(|format| format.framing() != Framing::Slots)
}

fn format_named(name: &str) -> &'static dyn Format {
    LARGE.into_iter().find(|format| format.name() == name).expect("a format of these suites")
}

/// Runs this binary again, in a role from a test: `ROLE:FORMAT`.
#[test]
#[cfg(unix)]
fn child() {
    let Some((role, path)) = common::role() else { return };
    let (role, name) = role.split_once(':').unwrap();
    let (format, at) = (format_named(name), At::disk(path));
    match role {
        "fork" => live::fork(format, &at),
        "orphan" => live::orphan(format, &at),
        "try" => live::attempt(format, &at),
        "hold" => places::hold(format, &at),
        _ => unreachable!("{role}"),
    }
}
