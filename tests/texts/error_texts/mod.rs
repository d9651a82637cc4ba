//! Every error as its reader sees it, in `snapshots/error_texts.snap`: the snapshot shows each changed text.
//!
//! A text has parts: a place, a reason, a remedy. The snapshot has each part once with each kind of error, in the first
//! situation that meets it, without numbers and paths. To write the snapshots again, run `INSTA_UPDATE=always cargo
//! test --all-features --test texts`; `git diff` then shows the changes. A new text in `src` needs a situation here, or
//! a line in `tests/repository/test_error_texts.py` with the reason why none exists.

// Paths and symbolic links are Unix's.
#![cfg(unix)]

mod arguments;
mod damage;
mod disk;
mod every;
mod faults;
mod live;
mod of_book;
mod of_layouts;
mod of_lmdb;
mod of_nostr_transactions;
mod of_nostr_wal;
mod of_piers;
mod of_segments;
mod of_transactions;
mod of_wal;

use crate::support::common::crc32;
use crate::support::formats::book::BOOK;
use crate::support::formats::subject::Event;
use crate::support::formats::views::{broken, copy_in_place};
use crate::support::formats::wal::{SINGLE, TINY, head_marker};
use crate::support::prelude::*;
use crate::support::texts::{Situation, Texts};
use every::{cut, events, on, walked};

/// The formats with different texts: a book, and a write-ahead log in segments.
const FORMATS: [&dyn Format; 2] = [&BOOK, &TINY];

fn all() -> Texts {
    let mut texts = Texts::default();
    arguments::all(&mut texts);
    every::all(&mut texts);
    disk::all(&mut texts);
    damage::all(&mut texts);
    live::all(&mut texts);
    of_book::all(&mut texts);
    of_layouts::all(&mut texts);
    of_book::payloads(&mut texts);
    of_piers::all(&mut texts);
    of_lmdb::all(&mut texts);
    of_wal::all(&mut texts);
    of_segments::all(&mut texts);
    of_transactions::all(&mut texts);
    of_nostr_wal::all(&mut texts);
    of_nostr_transactions::all(&mut texts);
    faults::all(&mut texts);
    texts
}

/// A single test, because each part of a text is shown once.
#[test]
fn every_error_text_matches_its_snapshot() {
    let mut settings = insta::Settings::new();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    // Insta shows this before the differences.
    settings.set_description(
        "A text changed: look for users of the old one in tests, README and docs.",
    );
    settings.bind(|| insta::assert_snapshot!("error_texts", all().shown()));
}
