//! Any lines as the consumers of a write-ahead log, with a right checksum: names that a caller could not
//! give are damage, damage drops no record, and what is read is what is kept.

use deedbook::{ErrorKind, Mode, Retention};

use super::fenced::{Fenced, open_wal, payloads, sealed, write_wal};
use super::kit::Input;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (count, is_sealed) = (input.u8() % 16, input.u8() & 7 != 0);
    let disk = Fenced::new();
    let written = write_wal(&disk, count);
    let lines = input.rest();
    let bytes = if is_sealed { sealed(lines) } else { lines.to_vec() };
    disk.put(".deedbook/consumers", &bytes);
    let reader = open_wal(&disk, Mode::Read).unwrap();
    let read = reader.consumers();
    assert_eq!(payloads(&reader), written);
    match &read {
        Ok(consumers) => {
            for name in consumers.keys() {
                let is_name = |c: char| !c.is_whitespace() && !c.is_control();
                assert!(!name.is_empty() && name.chars().all(is_name), "{name:?}");
            }
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}"),
    }
    drop(reader);
    let Ok(wal) = open_wal(&disk, Mode::Append) else { return };
    let set = wal.set_consumer("fuzz", wal.head().unwrap());
    assert_eq!(set.is_ok(), read.is_ok(), "{set:?}");
    let retained = wal.retain(&Retention::new().consumed(true));
    assert_eq!(retained.is_ok(), read.is_ok(), "{retained:?}");
    // Dropping heeds them, or refuses what it cannot read: only damage keeps all.
    let dropped = wal.truncate_before(wal.end().unwrap());
    let left = payloads(&wal);
    assert!(written.ends_with(&left));
    if dropped.is_err() {
        assert_eq!(left, written);
    }
}
