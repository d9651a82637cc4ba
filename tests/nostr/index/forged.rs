//! An index that somebody else made.
//!
//! A reviewer changed a length in an index file, and the checksum to match: "memory allocation of 141733920784 bytes
//! failed". The process ended, and a server that embeds the store would end, too.

use deedbook::nostr::{Id, Index};

use super::damage::{changed, made};
use crate::support::prelude::*;
use crate::support::store::events::{copy, files_below};

fn damage_of(dir: &Path) -> String {
    let error = Index::open(dir).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    error.message().to_owned()
}

#[test]
fn an_index_from_another_place_is_not_opened() {
    let place = tempfile::tempdir().unwrap();
    let [own, copied, moved] = ["own", "copied", "moved"].map(|name| place.path().join(name));
    fs::rename(made(4).keep(), &own).unwrap();
    copy(&own, &copied);
    assert!(damage_of(&copied).contains("made at another place"));
    fs::remove_file(copied.join("made-here")).unwrap();
    assert!(damage_of(&copied).contains("made at another place"));
    assert!(!Index::recreate(&copied).unwrap().contains(&Id([0; 32])).unwrap());
    assert!(Index::open(&copied).unwrap().covered().unwrap().is_none());
    fs::rename(&own, &moved).unwrap();
    assert!(Index::open(&moved).unwrap().covered().unwrap().is_some());
}

/// fjall allocates memory before the check of a checksum: one flipped bit is enough.
#[test]
fn forged_index_length_allocates_no_huge_memory() {
    let own = made(4);
    let (mut tables, mut journals) = (0, 0);
    for file in files_below(own.path()) {
        let bytes = fs::read(&file).unwrap();
        let at = if file.parent().unwrap().ends_with("tables") {
            tables += 1;
            bytes.windows(4).rposition(|part| part == b"TOC!").unwrap() + 4
        } else if file.extension().is_some_and(|name| name == "jnl") {
            journals += 1;
            // After the start of a batch and the key's length comes the value's length.
            13 + 1 + 1 + 1 + 8 + 2
        } else {
            continue;
        };
        let scratch = changed(own.path(), &file, |bytes| bytes[at + 3] ^= 0x80);
        let why = damage_of(scratch.path());
        assert!(
            why.contains("entries of its table of contents") || why.contains("a value of"),
            "{why}"
        );
    }
    assert!(tables > 1 && journals > 0, "{tables} tables, {journals} journals");
}
