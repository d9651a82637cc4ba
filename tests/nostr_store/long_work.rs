//! Work over all events: it tells its progress, which can end it, and the index is made again.

use deedbook::nostr::{Check, Event, EventStore, Filter, Options};
use deedbook::{Error, ErrorKind, Mode, Result};

use super::support::{in_memory, note, open};

fn ended<T>() -> Result<T> {
    Err(Error::new(ErrorKind::InvalidArgument, "ended"))
}

fn is_ended<T: std::fmt::Debug>(result: Result<T>) {
    assert_eq!(result.unwrap_err().message(), "ended");
}

fn notes(store: &EventStore) -> Vec<Event> {
    let filters = Filter::parse_any(r##"{"#t": ["note"]}"##).unwrap();
    store.query(&filters).unwrap().map(|found| found.unwrap().event).collect()
}

#[test]
fn progress_is_reports_and_ends_the_work() {
    let (_, options) = in_memory();
    let store = open(&options);
    store.append_many(&(0..2500).map(note).collect::<Vec<_>>()).unwrap();
    store.checkpoint().unwrap();
    let mut reports = Vec::new();
    let mut tell = |done, total| {
        reports.push((done, total));
        Ok(())
    };
    let report = store.verify_with(Check::Id, &mut tell).unwrap();
    assert_eq!(report, store.verify(Check::Id).unwrap());
    assert!(
        reports.len() > 5 && reports.windows(2).all(|pair| pair[0].0 < pair[1].0),
        "{reports:?}"
    );
    assert_eq!(reports.last(), Some(&(report.bytes, report.bytes)));
    is_ended(store.verify_with(Check::None, &mut |_, _| ended()));

    let mut counts = Vec::new();
    let mut count = |events| {
        counts.push(events);
        Ok(())
    };
    assert_eq!(store.census_with(&mut count).unwrap(), store.census().unwrap());
    assert_eq!(counts, [1024, 2048]);
    is_ended(store.census_with(&mut |_| ended()));

    let reader = options.open("/events", Mode::Read).unwrap();
    let filters = Filter::parse_any("{}").unwrap();
    is_ended(reader.query_with(&filters, &mut ended));
    assert_eq!(notes(&reader), notes(&store));
}

#[test]
fn an_index_made_again_has_everything() {
    let directory = tempfile::tempdir().unwrap();
    for on_disk in [false, true] {
        let (_, mut options) = in_memory();
        let path = directory.path().join(on_disk.to_string());
        if on_disk {
            options = Options { small: true, ..Options::default() };
        }
        let store = options.open(&path, Mode::Create).unwrap();
        store.append_many(&(0..300).map(note).collect::<Vec<_>>()).unwrap();
        let before = notes(&store);
        assert_eq!(before.len(), 300);
        assert_eq!(store.reindex().unwrap(), 300);
        assert_eq!(notes(&store), before);
        store.append(&note(300)).unwrap();
        assert_eq!(notes(&store).len(), 301);
        store.close().unwrap();
        assert_eq!(store.reindex().unwrap_err().kind(), ErrorKind::Closed);
        let reader = options.open(&path, Mode::Read).unwrap();
        assert_eq!(reader.reindex().unwrap_err().kind(), ErrorKind::ReadOnly);
    }
}
