//! Batches that are staged, and batches that are refused.

use std::sync::Arc;

use arrow_buffer::{NullBuffer, OffsetBuffer};

use super::super::columns::{tag_field, text_field};
use super::*;
use crate::jobs::Transaction;
use crate::nostr::{Batches, EventStore, Include, Options};
use crate::storage::Memory;
use crate::{Mode, OnCorrupt};

fn store() -> EventStore {
    let storage = Arc::new(Memory::new());
    let options = Options { storage, index_on_disk: false, ..Options::default() };
    options.open("/events", Mode::Create).unwrap()
}

fn events() -> Vec<Event> {
    let tags: [&[&[&str]]; 3] = [&[], &[&["e", "a", ""], &[], &["title", "é"]], &[&["t"]]];
    let made = (0u8..).zip(tags).map(|(number, tags)| {
        let tags = tags.iter().map(|tag| tag.iter().map(ToString::to_string).collect());
        let mut event = Event {
            id: Id([0; 32]),
            pubkey: [number; 32],
            created_at: u32::MAX - u32::from(number),
            kind: [1, 9999, 40_000][usize::from(number)],
            tags: tags.collect(),
            content: "x".repeat(usize::from(number) * 3000),
            sig: [number; 64],
        };
        event.id = event.canonical_id();
        event
    });
    made.collect()
}

fn all(store: &EventStore) -> Vec<Event> {
    let walk = store.iter(Include::All, OnCorrupt::Raise).unwrap();
    walk.map(|found| found.unwrap().event).collect()
}

/// The events as the store writes them.
fn batch() -> RecordBatch {
    let store = store();
    store.append_many(&events()).unwrap();
    let walk = store.iter(Include::All, OnCorrupt::Raise).unwrap();
    Batches::new(walk, Batches::DEFAULT, 100, 1 << 20).unwrap().next().unwrap().unwrap()
}

fn committed(batches: &[RecordBatch]) -> Vec<Event> {
    let store = store();
    let mut stage = store.stage("job", 0, 0).unwrap();
    batches.iter().for_each(|batch| stage.push_batch(batch).unwrap());
    let parts = [stage.finish().unwrap()];
    store.commit_staged(&Transaction { job: "job".into(), id: None }, &parts).unwrap();
    all(&store)
}

fn with(batch: &RecordBatch, name: &str, array: ArrayRef) -> RecordBatch {
    let (schema, mut arrays, _) = batch.clone().into_parts();
    arrays[schema.index_of(name).unwrap()] = array;
    let names = schema.fields().iter().map(|field| field.name().clone());
    RecordBatch::try_from_iter_with_nullable(
        names.zip(arrays).map(|(name, array)| (name, array, true)),
    )
    .unwrap()
}

fn refusal(batch: &RecordBatch) -> String {
    let mut stage = store().stage("job", 0, 0).unwrap();
    let error = stage.push_batch(batch).unwrap_err();
    assert_eq!((error.format(), error.durable()), (Some(FORMAT), Some(Durable::No)));
    error.to_string()
}

#[test]
fn exported_batches_and_their_slices_are_staged() {
    let batch = batch();
    assert_eq!(committed(std::slice::from_ref(&batch)), events());
    // Lists of a part begin in the middle of their items.
    assert_eq!(committed(&[batch.slice(1, 2), batch.slice(0, 1), batch.slice(0, 0)]), {
        let [first, second, third] = <[Event; 3]>::try_from(events()).unwrap();
        [second, third, first]
    });
}

#[test]
fn plain_types_and_any_column_order_are_taken() {
    let events = events();
    let bytes = |of: &dyn Fn(&Event) -> Vec<u8>| -> ArrayRef {
        Arc::new(BinaryArray::from_iter_values(events.iter().map(of)))
    };
    let mut plain = batch();
    for (name, array) in [
        ("id", bytes(&|event| event.id.0.to_vec())),
        ("pubkey", bytes(&|event| event.pubkey.to_vec())),
        ("sig", bytes(&|event| event.sig.to_vec())),
        ("kind", Arc::new(Int64Array::from_iter_values(events.iter().map(|e| e.kind.into())))),
        (
            "created_at",
            Arc::new(Int64Array::from_iter_values(events.iter().map(|e| e.created_at.into()))),
        ),
    ] {
        plain = with(&plain, name, array);
    }
    let reversed: Vec<_> = (0..7).rev().collect();
    assert_eq!(committed(&[plain.project(&reversed).unwrap()]), events);
}

#[test]
fn a_misshapen_batch_names_column_and_row() {
    let batch = batch();
    let three = [0i64, 1, 2];
    let micros = |of: [i64; 3]| TimestampMicrosecondArray::from(of.to_vec());
    let blob = |of: [&[u8]; 3]| -> ArrayRef { Arc::new(BinaryArray::from_iter_values(of)) };
    let kinds = |of: [Option<i32>; 3]| -> ArrayRef { Arc::new(Int32Array::from(of.to_vec())) };
    let cases: [(&str, ArrayRef, &str); 11] = [
        ("id", blob([&[0; 32], &[0; 31], &[0; 32]]), "row 0: id: "),
        ("pubkey", blob([&[0; 33], &[0; 31], &[0; 32]]), "row 0: column pubkey: 33 bytes, 32"),
        (
            "sig",
            Arc::new(FixedSizeBinaryArray::try_from_iter([[0u8; 63]; 3].iter()).unwrap()),
            "column sig is FixedSizeBinary(63), may be FixedSizeBinary(64) or Binary",
        ),
        ("kind", kinds([Some(1), None, None]), "row 1: column kind: null"),
        (
            "kind",
            kinds([Some(65_536), None, None].map(|kind| kind.or(Some(0)))),
            "row 0: column kind: 65536, may be 0 to 65535",
        ),
        ("kind", Arc::new(StringArray::from(vec!["1"; 3])), "column kind is Utf8, may be Int32"),
        ("created_at", Arc::new(micros(three)), "column created_at is Timestamp(µs), may be"),
        (
            "created_at",
            Arc::new(micros([1, 0, 0]).with_timezone("UTC")),
            "row 0: column created_at: 1 microseconds, whole seconds needed",
        ),
        (
            "created_at",
            Arc::new(micros([-SECOND, 0, 0]).with_timezone("UTC")),
            "row 0: column created_at: -1, may be 0 to 4294967295",
        ),
        ("tags", Arc::new(StringArray::from(vec!["[]"; 3])), "column tags is Utf8, may be List"),
        ("content", blob([b"a", b"b", b"c"]), "column content is Binary, may be Utf8"),
    ];
    for (name, array, wanted) in cases {
        let refused = refusal(&with(&batch, name, array));
        assert!(refused.contains(wanted), "{name}: {refused}");
    }
    let missing = refusal(&batch.project(&[0, 1]).unwrap());
    assert!(missing.contains("column content is missing, there are: id, pubkey"), "{missing}");
}

#[test]
fn nulls_within_tags_are_refused() {
    let batch = batch();
    let list = |field, ends: &[usize], items: ArrayRef, nulls: Option<Vec<bool>>| -> ArrayRef {
        let ends = OffsetBuffer::from_lengths(ends.iter().copied());
        let nulls = nulls.map(NullBuffer::from);
        Arc::new(ListArray::try_new(field, ends, items, nulls).unwrap())
    };
    let nullable =
        |field: arrow_schema::FieldRef| Arc::new(field.as_ref().clone().with_nullable(true));
    let texts = |last| -> ArrayRef { Arc::new(StringArray::from(vec![Some("e"), last])) };
    for (text, tags, wanted) in [
        (None, None, "row 0: column tags: tag 1: text 0 is null"),
        (Some("x"), Some(vec![true, false]), "row 0: column tags: tag 1 is null"),
    ] {
        let tags = list(nullable(text_field()), &[1, 1], texts(text), tags);
        let of = DataType::List(nullable(text_field()));
        let field = Arc::new(tag_field().as_ref().clone().with_data_type(of));
        let events = list(nullable(field), &[2, 0, 0], tags, None);
        let refused = refusal(&with(&batch, "tags", events));
        assert!(refused.contains(wanted), "{refused}");
    }
    let events = list(tag_field(), &[0, 0, 0], batch_of_no_tags(), Some(vec![true, true, false]));
    let refused = refusal(&with(&batch, "tags", events));
    assert!(refused.contains("row 2: column tags: null"), "{refused}");
}

fn batch_of_no_tags() -> ArrayRef {
    let texts = Arc::new(StringArray::from(Vec::<&str>::new()));
    Arc::new(ListArray::try_new(text_field(), OffsetBuffer::new_empty(), texts, None).unwrap())
}
