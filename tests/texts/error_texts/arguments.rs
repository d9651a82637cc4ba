//! Arguments outside of their domain.

use deedbook::Batches;
use deedbook::jobs::Identity;
use deedbook::wal::Layout;

use super::*;

pub fn all(texts: &mut Texts) {
    let mut here = texts.situation("words, paths and options beyond their limits");
    here.refused("durability", "often".parse::<Durability>());
    here.refused("durability", "interval:0".parse::<Durability>());
    here.refused("recovery", "some".parse::<Recovery>());
    here.refused("identity", "16".parse::<Identity>());
    here.refused("column of a book", Batches::<BookFormat>::schema_of(&["mig"]));
    here.refused("column of a wal", Batches::<WalFormat>::schema_of(&["event"]));

    here.refused("empty, book", Book::open(""));
    here.refused("zero byte", Book::open(Path::new("/log/a\0b")));

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
    here.refused("deed_bytes_max of 3", book(|options| options.deed_bytes_max = 3));
    here.refused("the last epoch", book(|options| options.epoch = Some(u64::MAX)));
    here.refused(
        "record_bytes_max of 2^32",
        wal(|options| options.record_bytes_max = Some(1 << 32)),
    );
    here.refused(
        "segments of nothing",
        wal(|options| options.layout = Some(Layout::Segmented { segment_bytes: 0 })),
    );
}
