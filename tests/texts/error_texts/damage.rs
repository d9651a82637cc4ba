//! Damaged logs, whichever way they are read.

use crate::error_texts::FORMATS;
use crate::error_texts::every::walked;
use crate::support::formats::book::BOOK;
use crate::support::formats::views::{broken, copy_in_place};
use crate::support::prelude::*;
use crate::support::texts::Texts;

type Change = fn(&Specimen<'_>, &mut Vec<u8>);

const CHANGES: [(&str, Change); 6] = [
    ("a byte of record 3 changed", |specimen, space| {
        space[specimen.edges[2] + specimen.format.framing().head() + 3] ^= 1;
    }),
    ("the length of record 2 changed", |specimen, space| {
        space[specimen.edges[1] + specimen.format.framing().length().start] ^= 3;
    }),
    ("record 2 is zeros", |specimen, space| {
        space[specimen.edges[1]..specimen.edges[2]].fill(0);
    }),
    ("the last record is cut short", |specimen, space| {
        space.truncate(specimen.edges[3] + specimen.format.framing().head() + 5);
    }),
    ("the last two records are cut off", |specimen, space| {
        space.truncate(specimen.edges[2]);
    }),
    ("all of it is rubbish", |specimen, space| {
        let start = specimen.edges[0];
        space[start..].fill(0xa5);
    }),
];

pub fn all(texts: &mut Texts) {
    for format in FORMATS {
        for (what, change) in CHANGES {
            let (_, _, at) = broken(format, &plain(4, 40), Beside::Closed(4), change);
            read_every_way(texts, format!("{}: {what}, closed", format.name()), format, &at);
        }
    }
    let (what, change) = CHANGES[4];
    let (_, _, at) = broken(&BOOK, &plain(4, 40), Beside::Closed(4), change);
    copy_in_place(&BOOK, &at);
    read_every_way(texts, format!("book: {what}, a copy"), &BOOK, &at);
}

fn read_every_way(texts: &mut Texts, name: String, format: &dyn Format, at: &At) {
    let mut here = texts.situation(name);
    match format.read(at) {
        Err(error) => drop(here.error("open", &error)),
        Ok(log) => {
            here.tried("cursor", walked(log.forward(None, None, false)));
            here.tried("cursor that skips", walked(log.forward(None, None, true)));
            let first = format.first_ordinal();
            let second = format.ordinal_after(first, 40);
            here.tried("read record 3", log.read(format.ordinal_after(second, 40)));
            let parts = log.splits(1 << 20, None, None, false).unwrap_or_default();
            for part in parts {
                here.tried("split", walked(part));
            }
        }
    }
    match format.verify(at, MANUAL) {
        Ok(report) => here.damages("verify", &report.damages),
        Err(error) => here.error("verify", &error),
    };
    let to = format.path_in(Path::new("/copy"));
    at.storage.create_dir(to.parent().unwrap()).unwrap();
    match format.salvage(at, &to, MANUAL) {
        Ok(report) => here.damages("salvage", &report.damages),
        Err(error) => here.error("salvage", &error),
    };
    // Changes the log, where nothing is lost by that.
    here.tried("repair", format.repair(at, MANUAL));
    here.tried("append to", format.open(at, Mode::Append, MANUAL));
}
