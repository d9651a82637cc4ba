//! Damaged logs, whichever way they are read.

use super::*;

type Change = fn(&Specimen<'_>, &mut Vec<u8>);

/// A byte of record 3, the length of record 2, record 2 as zeros, the last record cut short, the last two records cut
/// off, all of it rubbish.
const CHANGES: [Change; 6] = [
    |specimen, space| space[specimen.edges[2] + specimen.format.framing().head() + 3] ^= 1,
    |specimen, space| space[specimen.edges[1] + specimen.format.framing().length().start] ^= 3,
    |specimen, space| space[specimen.edges[1]..specimen.edges[2]].fill(0),
    |specimen, space| space.truncate(specimen.edges[3] + specimen.format.framing().head() + 5),
    |specimen, space| space.truncate(specimen.edges[2]),
    |specimen, space| space[specimen.edges[0]..].fill(0xa5),
];

pub fn all(texts: &mut Texts) {
    for format in FORMATS {
        let mut here = texts.situation(format!("{}: closed, then damaged", format.name()));
        for change in CHANGES {
            let (_, _, at) = broken(format, &plain(4, 40), Beside::Closed(4), change);
            read_every_way(&mut here, format, &at);
        }
    }
    let (_, _, at) = broken(&BOOK, &plain(4, 40), Beside::Closed(4), CHANGES[4]);
    copy_in_place(&BOOK, &at);
    read_every_way(&mut texts.situation("book: a copy without its last two records"), &BOOK, &at);
}

fn read_every_way(here: &mut Situation<'_>, format: &dyn Format, at: &At) {
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
