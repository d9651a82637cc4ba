//! Refusals of staging events and committing them.

use deedbook::nostr::{Batches, Event, Id, Include, Options};

use arrow_array::{
    ArrayRef, FixedSizeBinaryArray, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::Field;

use super::*;

const JOB: &str = "job";
const STAGED: &str = "/events/.deedbook/staged/job.0.0.1";

fn options(disk: &Sim) -> Options {
    let storage = Arc::new(disk.clone());
    Options::new().storage(storage).index_on_disk(false)
}

fn created() -> (Sim, EventStore) {
    let disk = Sim::new();
    let store = options(&disk).open("/events", Mode::Create).unwrap();
    (disk, store)
}

fn event(content_len: usize) -> Event {
    let mut event = Event {
        id: Id([0; 32]),
        pubkey: [1; 32],
        created_at: 2,
        kind: 1,
        tags: vec![vec!["t".into(), "note".into()], vec!["p".into()]],
        content: "x".repeat(content_len),
        sig: [3; 64],
    };
    event.id = event.canonical_id();
    event
}

fn staged(store: &EventStore, event: &Event) -> Part {
    let mut stage = store.stage(JOB, 0, 1).unwrap();
    stage.push(event).unwrap();
    stage.finish().unwrap()
}

pub fn all(texts: &mut Texts) {
    staging(texts);
    parts(texts);
    batches(texts);
}

fn staging(texts: &mut Texts) {
    let (disk, store) = created();
    store.close().unwrap();
    let small = options(&disk).event_bytes_max(4096);
    let store = small.open("/events", Mode::Append).unwrap();
    let mut here = texts.situation("nostr: events that are not staged");
    let mut stage = store.stage(JOB, 0, 1).unwrap();
    here.refused("push of another id", stage.push(&Event { id: Id([7; 32]), ..event(0) }));
    here.refused("push beyond the limit", stage.push(&event(5000)));
}

fn parts(texts: &mut Texts) {
    let transaction = Transaction { job: JOB.into(), id: None };
    let mut here = texts.situation("nostr: parts that cannot be committed");
    // The only entry of a staged file becomes an update of an index, or gets another key.
    let update: fn(&mut Vec<u8>) = |bytes| {
        let head = [&[3][..], &[0; 8], &[0; 8], &[0, 0, 0, 8]].concat();
        *bytes = [&head[..], &[0; 8], &[0; 8]].concat();
    };
    let other_key: fn(&mut Vec<u8>) = |bytes| bytes[100] ^= 1;
    for change in [update, other_key] {
        let (disk, store) = created();
        let mut part = staged(&store, &event(9));
        let mut bytes = read_file(&disk, Path::new(STAGED));
        change(&mut bytes);
        write_file(&disk, Path::new(STAGED), &bytes);
        (part.bytes, part.sum) = (bytes.len() as u64, crc32(&bytes));
        let wrong = store.commit_staged(&transaction, &[part]);
        here.refused("commit of what is no event, with its checksum", wrong);
    }
}

fn batch() -> RecordBatch {
    let (_, store) = created();
    store.append(&event(3)).unwrap();
    let walk = store.iter(Include::All, OnCorrupt::Raise).unwrap();
    Batches::new(walk, Batches::DEFAULT, 9, 1 << 20).unwrap().next().unwrap().unwrap()
}

fn with(batch: &RecordBatch, name: &str, array: ArrayRef) -> RecordBatch {
    let (schema, mut arrays, _) = batch.clone().into_parts();
    arrays[schema.index_of(name).unwrap()] = array;
    let fields = schema.fields().iter().zip(&arrays);
    let columns = fields.map(|(field, array)| (field.name().clone(), array.clone(), true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn list(items: ArrayRef, nulls: Option<NullBuffer>) -> ArrayRef {
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let ends = OffsetBuffer::from_lengths([items.len()]);
    Arc::new(ListArray::new(field, ends, items, nulls))
}

fn batches(texts: &mut Texts) {
    let (_, store) = created();
    let batch = batch();
    let mut here = texts.situation("nostr: batches that are not staged");
    let mut refused = |what: &str, batch: &RecordBatch| {
        let mut stage = store.stage(JOB, 0, 2).unwrap();
        here.refused(&format!("push_batch {what}"), stage.push_batch(batch));
        drop(stage);
    };
    refused("without a column", &batch.project(&[0, 1, 2, 3]).unwrap());
    let micros = |of: i64| TimestampMicrosecondArray::from(vec![of]);
    let blob = |bytes: &[u8]| -> ArrayRef {
        Arc::new(FixedSizeBinaryArray::try_from_iter([bytes].iter()).unwrap())
    };
    let text: ArrayRef = Arc::new(StringArray::from(vec!["t"]));
    let no_text: ArrayRef = Arc::new(StringArray::from(vec![None::<&str>]));
    let no_tag = list(text.clone(), Some(NullBuffer::from(vec![false])));
    let plain: ArrayRef = Arc::new(arrow_array::BinaryArray::from_vec(vec![&[0; 63]]));
    for (name, what, array) in [
        ("id", "with another id", blob(&[9; 32])),
        ("pubkey", "with keys of another size", blob(&[9; 33])),
        ("sig", "with a signature of another size", plain),
        ("created_at", "with times of no time zone", Arc::new(micros(0)) as ArrayRef),
        ("created_at", "with a part of a second", Arc::new(micros(1).with_timezone("UTC"))),
        ("created_at", "with a time before 1970", Arc::new(Int64Array::from(vec![-1]))),
        ("kind", "with a kind that is none", Arc::new(Int64Array::from(vec![70_000]))),
        ("kind", "with a null", Arc::new(Int32Array::from(vec![None]))),
        ("kind", "with a kind that is text", text.clone()),
        ("content", "with content that is a number", Arc::new(Int32Array::from(vec![1]))),
        ("tags", "with tags that are text", text),
        ("tags", "with a tag that is null", list(no_tag, None)),
        ("tags", "with a text that is null", list(list(no_text, None), None)),
    ] {
        refused(what, &with(&batch, name, array));
    }
}
