//! Handles in a loop, and in `{:?}`.

use std::fmt::Debug;

use deedbook::nostr::Include;

use crate::support::prelude::*;
use crate::support::store::events::note;

/// The `{:?}` of a handle: a line with its path, without its contents.
fn short(shown: &dyn Debug) -> String {
    let text = format!("{shown:?}");
    assert!(text.len() < 400, "{} characters: {text:.400}", text.len());
    assert!(!text.contains("secret") && !text.contains("115, 101, 99"), "{text}");
    text
}

/// A handle in `dbg!`, or in another value, printed the bytes in its buffers.
#[test]
fn a_handle_is_shown_in_a_line() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let book = Book::create(at("book"))?;
    book.append(1, &b"secret".repeat(1000))?;
    assert!(short(&book).contains("book"));
    let mut walk = book.cursor(1.., OnCorrupt::Raise)?;
    walk.next()?;
    short(&walk);
    let mut back = book.cursor_back(1..)?;
    back.next()?;
    short(&back);
    short(&book.iter(1..)?);
    short(&book.follow(Some(1))?);
    let wal = Wal::append_to(at("wal"))?;
    wal.append(b"secret")?;
    assert!(short(&wal).contains("wal"));
    let pier = Pier::append_to(at("pier"))?;
    pier.append(1, b"secret")?;
    assert!(short(&pier).contains("pier"));
    let ledger = LedgerStore::new(LedgerConfig::lines(at("ledger"), "events"))?;
    ledger.append(b"secret")?;
    assert!(short(&ledger).contains("ledger"));
    let store = EventStore::create(at("store"))?;
    assert!(short(&store).contains("store"));
    short(&store.iter(Include::Live, OnCorrupt::Raise)?);
    Ok(())
}

/// `for deed in &book` did not compile: only `book.iter(1..)?` did.
#[test]
fn a_log_is_iterated_by_reference() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let book = Book::create(at("book"))?;
    let wal = Wal::append_to(at("wal"))?;
    let pier = Pier::append_to(at("pier"))?;
    let store = EventStore::create(at("store"))?;
    let events = [0, 1, 2].map(note);
    for (number, event) in (0..).zip(&events) {
        book.append(number, b"a")?;
        wal.append(&[number as u8])?;
        pier.append(number, b"a")?;
        store.append(event)?;
    }
    let mut mugs = Vec::new();
    for deed in &book {
        mugs.push(deed?.mug);
    }
    assert_eq!(mugs, [0, 1, 2]);
    let payloads: Vec<_> = (&wal).into_iter().map(|record| record.unwrap().payload).collect();
    assert_eq!(payloads, [[0], [1], [2]]);
    assert_eq!((&pier).into_iter().map(|deed| deed.unwrap().mug).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!((&store).into_iter().map(|found| found.unwrap().event).collect::<Vec<_>>(), events);
    // If the loop cannot begin, it returns an error once.
    wal.close()?;
    pier.close()?;
    store.close()?;
    let kinds = [
        (&wal).into_iter().map(|given| given.unwrap_err().kind()).collect::<Vec<_>>(),
        (&pier).into_iter().map(|given| given.unwrap_err().kind()).collect(),
        (&store).into_iter().map(|given| given.unwrap_err().kind()).collect(),
    ];
    assert_eq!(kinds, [[ErrorKind::Closed]; 3]);
    Ok(())
}
