//! Every error as its reader sees it, in `tests/data/error_texts.txt`: a text that changed shows.
//!
//! `DEEDBOOK_WRITE_TEXTS=1 cargo test --all-features --test error_texts` writes the file anew. A new
//! text in `src` needs a situation here that meets it, or a line in `unmet.rs` that says why there
//! is none.

// Paths and symbolic links are those of Unix.
#![cfg(unix)]
#![allow(dead_code)]

mod arguments;
mod damage;
mod disk;
mod every;
mod faults;
mod literals;
mod live;
mod of_book;
mod of_layouts;
mod of_lmdb;
mod of_nostr_transactions;
mod of_nostr_wal;
mod of_parts;
mod of_piers;
mod of_segments;
mod of_transactions;
mod of_wal;
mod unmet;

use std::fs;
use std::path::Path;

use crate::support::formats::{book, subject, wal};
use crate::support::texts;
use texts::{Texts, differences};

/// Every format and layout that the situations of all are tried on.
const FORMATS: [&dyn subject::Format; 3] = [&book::BookFormat, &wal::SINGLE, &wal::TINY];
const FILE: &str = "tests/data/error_texts.txt";
const SAID_FIRST: &str = "\
# Every error that the tests can meet: the situation; then the call and the kind of its error; then
# the text. DEEDBOOK_WRITE_TEXTS=1 cargo test --all-features --test error_texts writes this file.
";

fn all() -> Texts {
    let mut texts = Texts::default();
    arguments::all(&mut texts);
    every::all(&mut texts);
    disk::all(&mut texts);
    damage::all(&mut texts);
    live::all(&mut texts);
    of_book::all(&mut texts);
    of_layouts::all(&mut texts);
    of_parts::all(&mut texts);
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

/// One test, because both halves need all the texts, and these take seconds to meet.
#[test]
fn every_error_says_what_the_file_says_and_every_text_is_met() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let texts = all();
    let met = format!("{SAID_FIRST}{}", texts.shown());
    let file = root.join(FILE);
    if std::env::var_os("DEEDBOOK_WRITE_TEXTS").is_some() {
        fs::write(&file, &met).unwrap();
    }
    let written = fs::read_to_string(&file).unwrap();
    let changed = differences(&written, &met);
    assert!(
        changed.is_empty(),
        "texts of errors changed: look for users of the old ones (tests, README, docs, \
         tests/mutants), then DEEDBOOK_WRITE_TEXTS=1 writes {FILE} anew\n\n{changed}"
    );
    let unmet = literals::unmet(root, &met);
    assert!(unmet.is_empty(), "no situation meets these texts:\n{}", unmet.join("\n"));
}
