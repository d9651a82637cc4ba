//! Refusals of payloads that are read and written in parts.

use std::io::{self, Read};

use deedbook::book::Options;

use super::*;

/// A reader that fails at once.
struct Broken;

impl Read for Broken {
    fn read(&mut self, _block: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("the cable is out"))
    }
}

pub fn all(texts: &mut Texts) {
    let disk = Sim::new();
    let options = Options::new().storage(Arc::new(disk.clone()));
    let book = options.open("/log", Mode::Create).unwrap();
    for jam in [&b"one"[..], b"two"] {
        book.append(0, jam).unwrap();
    }
    texts
        .situation("a payload that its reader cannot give")
        .refused("append_from", book.append_from(0, 10, &mut Broken))
        .refused("append_from", book.append_from(0, 10, &mut &b"four"[..]));
}
