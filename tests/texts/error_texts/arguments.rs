//! Arguments outside of their domain.

use std::path::Path;

use deedbook::book::{self, Book, BookFormat};
use deedbook::jobs::Identity;
use deedbook::wal::{self, Layout, WalFormat};
use deedbook::{Batches, Durability, Mode, Recovery};

use crate::support::texts::Texts;

pub fn all(texts: &mut Texts) {
    let mut words = texts.situation("words that are not known");
    words.refused("durability", "often".parse::<Durability>());
    words.refused("durability", "interval:0".parse::<Durability>());
    words.refused("recovery", "some".parse::<Recovery>());
    words.refused("identity", "16".parse::<Identity>());
    words.refused("column of a book", Batches::<BookFormat>::schema_of(&["mig"]));
    words.refused("column of a wal", Batches::<WalFormat>::schema_of(&["event"]));

    let mut paths = texts.situation("paths that name no place");
    paths.refused("empty, book", Book::open(""));
    paths.refused("zero byte", Book::open(Path::new("/log/a\0b")));

    let mut limits = texts.situation("options beyond their limits");
    let book = |change: fn(&mut book::Options)| {
        let mut options = book::Options::default();
        change(&mut options);
        options.open("/nowhere/log", Mode::Read)
    };
    let wal = |change: fn(&mut wal::Options)| {
        let mut options = wal::Options::default();
        change(&mut options);
        options.open("/nowhere/log", Mode::Read)
    };
    limits.refused("deed_bytes_max of 3", book(|options| options.deed_bytes_max = 3));
    limits.refused("the last epoch", book(|options| options.epoch = Some(u64::MAX)));
    limits.refused(
        "record_bytes_max of 2^32",
        wal(|options| options.record_bytes_max = Some(1 << 32)),
    );
    limits.refused(
        "segments of nothing",
        wal(|options| options.layout = Some(Layout::Segmented { segment_bytes: 0 })),
    );
}
