//! Events as Arrow columns: they say what the walk over events says.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, RecordBatch};
use deedbook::nostr::{
    Batches, Event, EventStore, Events, Flags, Id, Include, Location, StoredEvent,
};
use deedbook::{Error, OnCorrupt};

use super::events::event;

pub const COLUMNS: [&str; 10] =
    ["id", "pubkey", "created_at", "kind", "tags", "content", "sig", "flags", "segment", "offset"];

/// Events whose tags and contents are everything that a record can hold.
pub fn odd() -> Vec<Event> {
    let long = "é".repeat(70_000);
    let many: Vec<String> = (0..600).map(|number| number.to_string()).collect();
    let many: Vec<&str> = std::iter::once("many").chain(many.iter().map(String::as_str)).collect();
    let tags: [&[&[&str]]; 9] = [
        &[],
        &[&[]],
        &[&[""], &["", ""], &["e", ""], &["title", "é\0\u{1F600}"]],
        &[&["t", &long, "after"], &["t", "next"]],
        &[&many, &["x"], &[]],
        &[&["+"], &["\u{1}", "one"], &["\u{1}"], &["\u{80}", "two"]],
        &[&[&long]],
        &[&["p", &"ab".repeat(32), "wss://relay", "name"]],
        &[&["-"]],
    ];
    tags.iter()
        .zip(0..)
        .map(|(tags, number)| event(number as u8, u32::MAX - number, 9_999, tags, "é\n\0"))
        .collect()
}

pub fn rows(batch: &RecordBatch) -> Vec<StoredEvent> {
    let column = |at: usize| batch.column(at);
    let bytes = |at: usize, row: usize| column(at).as_fixed_size_binary().value(row).to_vec();
    let int = |at: usize, row: usize| column(at).as_primitive::<Int32Type>().value(row);
    let long = |at: usize, row: usize| column(at).as_primitive::<Int64Type>().value(row);
    let tag = |tag: &dyn Array| -> Vec<String> {
        tag.as_string::<i32>().iter().map(|text| text.unwrap().to_owned()).collect()
    };
    let row = |row: usize| {
        let times = column(2).as_primitive::<TimestampMicrosecondType>();
        assert_eq!(times.timezone(), Some("UTC"));
        let tags = column(4).as_list::<i32>().value(row);
        let event = Event {
            id: Id(bytes(0, row).try_into().unwrap()),
            pubkey: bytes(1, row).try_into().unwrap(),
            created_at: u32::try_from(times.value(row) / 1_000_000).unwrap(),
            kind: int(3, row) as u16,
            tags: tags.as_list::<i32>().iter().map(|found| tag(&*found.unwrap())).collect(),
            content: column(5).as_string::<i32>().value(row).to_owned(),
            sig: bytes(6, row).try_into().unwrap(),
        };
        let location = Location { segment: long(8, row) as u32, offset: long(9, row) as u32 };
        StoredEvent { event, location, flags: Flags(int(7, row) as u8) }
    };
    (0..batch.num_rows()).map(row).collect()
}

pub fn batches(store: &EventStore, include: Include, rows: usize, bytes: usize) -> Batches {
    let walk = store.iter(include, OnCorrupt::Raise).unwrap();
    Batches::new(walk, &COLUMNS, rows, bytes).unwrap()
}

pub fn read_all(store: &EventStore) -> Vec<StoredEvent> {
    gathered(batches(store, Include::All, 1000, 1 << 20))
}

pub fn gathered(batches: Batches) -> Vec<StoredEvent> {
    batches.flat_map(|batch| rows(&batch.unwrap())).collect()
}

pub fn as_walked(store: &EventStore, stored: &[StoredEvent]) -> Result<(), String> {
    for rows_max in [1, 4096] {
        let walk = store.iter(Include::All, OnCorrupt::Raise).map_err(|e| format!("{e:?}"))?;
        let mut found = Vec::new();
        for batch in Batches::new(walk, &COLUMNS, rows_max, 1 << 20).unwrap() {
            found.extend(rows(&batch.map_err(|e| format!("columns: {e:?}"))?));
        }
        if found != stored {
            return Err(format!("columns give {}, of {}", found.len(), stored.len()));
        }
    }
    Ok(())
}

/// The error of a damaged walk as columns, which come after the events before the damage.
pub fn error_after_rows(walk: impl Fn() -> Events) -> Error {
    let before = walk().take_while(Result::is_ok).count();
    let mut batches = Batches::new(walk(), &["id"], 1000, 1 << 20).unwrap();
    if before > 0 {
        assert_eq!(batches.next().unwrap().unwrap().num_rows(), before);
    }
    let error = batches.next().unwrap().unwrap_err();
    assert!(batches.next().is_none(), "something comes after {error}");
    error
}
