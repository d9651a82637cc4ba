//! The results of all ways to read a log, which must agree.

use deedbook::book::{Book, Deed, Layout};
use deedbook::report::Verdict;
use deedbook::{Error, ErrorKind, Result};
use deedbook::{Mode, OnCorrupt};

use super::kit::{Event, World, end_of_deed};

/// Number, byte, mug and jam.
pub type Seen = (Option<u64>, u64, u32, Vec<u8>);

/// The results of a reader.
#[derive(Debug)]
pub struct View {
    pub layout: Layout,
    pub deeds: Vec<Seen>,
    /// The kind of the error at which reading ended.
    pub failed: Option<ErrorKind>,
    /// The deeds read past damage, if damage before all deeds (in the header) prevents reading.
    pub past_header: Option<Vec<Event>>,
    pub verdict: Verdict,
}

impl View {
    pub fn events(&self) -> Vec<Event> {
        events(&self.deeds)
    }
}

pub fn events(deeds: &[Seen]) -> Vec<Event> {
    deeds.iter().map(|(_, _, mug, jam)| (*mug, jam.clone())).collect()
}

/// All deeds from `next`, and the error at the end.
fn drain<C>(
    cursor: Result<C>,
    next: impl Fn(&mut C) -> Result<Option<Deed<&[u8]>>>,
) -> (Vec<Seen>, Option<ErrorKind>) {
    let mut deeds = Vec::new();
    let mut cursor = match cursor {
        Ok(cursor) => cursor,
        Err(error) => return (deeds, Some(error.kind())),
    };
    loop {
        match next(&mut cursor) {
            Ok(Some(deed)) => deeds.push((deed.event, deed.offset, deed.mug, deed.jam.to_vec())),
            Ok(None) => return (deeds, None),
            Err(error) => return (deeds, Some(error.kind())),
        }
    }
}

/// Check for whole deeds of the log, in order.
fn assert_whole(layout: Layout, log: &[u8], deeds: &[Seen]) {
    let mut end = if layout == Layout::Slots { 8192 } else { 16 };
    for (_, offset, mug, jam) in deeds {
        assert!(*offset >= end, "deed at {offset}, the last one ended at {end}");
        let whole = end_of_deed(layout, log, *offset, *mug, jam);
        end = whole.unwrap_or_else(|| panic!("no deed of {mug}, {jam:?} at byte {offset}"));
    }
}

/// Read a log in every way. `honest`: the sidecar is not forged, so counts agree, too. `None`: the
/// log refuses reading.
pub fn look(world: &World, honest: bool) -> Option<View> {
    let before = world.files();
    let log = world.log();
    let verified = world.check();
    let opened = world.options.open(&world.dir, Mode::Read);
    let kinds = (verified.as_ref().err().map(Error::kind), opened.as_ref().err().map(Error::kind));
    // Verify accepts a directory's name that contradicts the header.
    let misnamed = world.is_numbered() && kinds == (None, Some(ErrorKind::Corrupt));
    assert!(kinds.0 == kinds.1 || misnamed, "verify and open differ: {kinds:?}");
    let (Ok(verified), Ok(book)) = (verified, opened) else {
        assert!(misnamed || rescued(world).is_err());
        assert_eq!(before, world.files(), "looking changed something");
        return None;
    };

    let (deeds, failed) = drain(book.cursor(.., OnCorrupt::Raise), deedbook::Cursor::next);
    assert_whole(book.layout(), &log, &deeds);
    let first = deeds.first().and_then(|(event, ..)| *event);
    for (i, (event, ..)) in deeds.iter().enumerate() {
        assert_eq!(*event, first.and_then(|first| first.checked_add(i as u64)));
    }
    let (past, failed_past) = drain(book.cursor(.., OnCorrupt::Skip), deedbook::Cursor::next);
    assert_whole(book.layout(), &log, &past);
    assert!(past.starts_with(&deeds), "skipping damage skips intact deeds");
    let len = book.len().unwrap();
    let recovery = book.recovery();
    let leading = failed.is_some() && book.cursor(.., OnCorrupt::Raise).is_err();
    assert!(!leading || deeds.is_empty());
    let past_header = leading.then(|| events(&past));
    let layout = book.layout();
    let view = View { layout, failed, past_header, verdict: recovery.verdict, deeds };
    let deeds = &view.deeds;

    // Backwards.
    let (mut back, back_failed) = drain(book.cursor_back(..), deedbook::Reverse::next);
    back.reverse();
    assert_whole(book.layout(), &log, &back);

    // By number, and in parts.
    let mut some: Vec<usize> = vec![0, 1, deeds.len() / 2, deeds.len().saturating_sub(1)];
    some.dedup();
    for i in some {
        if let Some((Some(event), _, mug, jam)) = deeds.get(i) {
            match book.read(*event) {
                Ok(read) => assert!(!honest || (read.mug, &read.jam) == (*mug, jam), "{event}"),
                Err(error) => assert!(!honest, "deed {event} was there: {error}"),
            }
        }
    }
    for split_bytes in [1, 70_000, u64::MAX] {
        let Ok(splits) = book.splits(split_bytes, ..) else {
            assert!(!honest || failed.is_some());
            continue;
        };
        let (mut parts, mut failed) = (Vec::new(), None);
        for split in splits {
            let cursor = Book::read_split(&split, &world.options, .., OnCorrupt::Raise, true);
            let (part, error) = drain(cursor, deedbook::Cursor::next);
            parts.extend(part);
            failed = failed.or(error);
            if failed.is_some() {
                break;
            }
        }
        if honest && view.failed.is_none() {
            assert_eq!((&parts, failed), (deeds, None), "splits of {split_bytes}");
        }
    }

    if honest {
        if failed.is_none() {
            assert_eq!(deeds.len() as u64, len);
            assert_eq!((&back, back_failed), (deeds, None), "backwards differs");
        }
        assert!(failed_past.is_none() || failed.is_some());
        assert!(verified.records >= deeds.len() as u64);
        assert_eq!(verified.durable_end, recovery.durable_end);
        match verified.verdict {
            Verdict::Clean => {
                assert_eq!((view.failed, verified.records), (None, len));
                assert_eq!(view.verdict, Verdict::Clean);
            }
            Verdict::Open | Verdict::Torn => {
                assert_eq!((view.failed, verified.records), (None, len), "{verified:?}")
            }
            Verdict::Corrupt => {}
        }
    }
    // Salvage copies the deeds counted by verify, and deeds that may lie inside damaged deeds, to a
    // clean log.
    match rescued(world) {
        Ok((events, uncertain)) => {
            let number = events.len() as u64;
            // A forged mark changes a reader's numbers, but not the results of salvage.
            if honest {
                let proved = number - uncertain;
                assert!((proved..=number).contains(&verified.records), "verify and salvage differ");
                assert!(events.starts_with(&view.events()), "salvage left intact deeds out");
                let mut events = events.iter();
                let mut copied =
                    |(_, _, mug, jam): &Seen| events.any(|e| e == &(*mug, jam.clone()));
                assert!(past.iter().all(&mut copied), "salvage left deeds out that readers give");
            }
        }
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::TooLarge | ErrorKind::NotALog), "{error:?}")
        }
    }
    drop(book);
    assert_eq!(before, world.files(), "looking changed something");
    Some(view)
}

/// Salvage into another file system and read the copy. Returns the deeds and the number of
/// uncertain deeds.
pub fn rescued(world: &World) -> Result<(Vec<Event>, u64)> {
    let target = std::path::Path::new("/salvaged");
    let twin = world.after_death();
    let report = twin.options.salvage(&twin.dir, target)?;
    let book = twin.options.open(target, Mode::Read)?;
    let (deeds, failed) = drain(book.cursor(.., OnCorrupt::Raise), deedbook::Cursor::next);
    assert_eq!((failed, deeds.len() as u64), (None, report.records));
    assert_eq!(report.runs.iter().map(|run| run.records).sum::<u64>(), report.records);
    let unproved = report.runs.iter().filter(|run| !run.proved).map(|run| run.records);
    assert_eq!(unproved.sum::<u64>(), report.uncertain);
    Ok((events(&deeds), report.uncertain))
}
