//! The ledger next to transientdb's DirectoryStore, whose layout the ledger adopts, and next to plain writes.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use deedbook::Batch;
use deedbook::Durability;
use deedbook::ledger::LedgerFormat;
use deedbook::ledger::{LedgerConfig, LedgerStore, Options};
use serde_json::Value;
use transientdb::{DataStore, DirectoryConfig, DirectoryStore};

use crate::harness::{Arguments, Bench, random_bytes, timed};
use crate::rows::{BATCH, PLAIN};

const EVENT_BYTES: usize = 256;
/// Bytes of a record in addition to its payload.
const HEADER_BYTES: usize = 8;
/// The size of a file: the limit of the services for one request.
const FILE_BYTES: usize = 475_000;
/// Size of the read buffer.
const BLOCK_BYTES: usize = 64 << 10;

pub const EACH: &str = "append 256 bytes one by one";
pub const BATCHES: &str = "append batches of 1,000";
pub const FETCH: &str = "fetch and read a file of 475 KB, bytes";
pub const DURABLE: &str = "append 256 bytes one by one, each on stable storage";

pub const LEDGER: &str = "deedbook ledger";
pub const ROTATE: &str = "deedbook ledger, rotate";
pub const ENCODED: &str = "deedbook ledger, encoding counted";
pub const DIRECTORY: &str = "transientdb DirectoryStore";
pub const LINES: &str = "JSON lines, write each";
pub const COPY: &str = "read of a plain file";

/// The events, as bytes and as the values that DirectoryStore accepts.
pub struct Events {
    texts: Vec<Vec<u8>>,
    values: Vec<Value>,
    durable: usize,
}

impl Events {
    pub fn new(given: &Arguments) -> Self {
        let count = given.count(200_000);
        let values: Vec<Value> = (0..count).map(event).collect();
        let texts = values.iter().map(|value| value.to_string().into_bytes()).collect();
        Self { texts, values, durable: given.count(2000) }
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Number of events per file.
    fn per_file(&self) -> usize {
        FILE_BYTES / (EVENT_BYTES + HEADER_BYTES)
    }
}

/// An object whose JSON has `EVENT_BYTES` bytes.
fn event(number: usize) -> Value {
    let text: String = random_bytes(EVENT_BYTES, number as u64)
        .iter()
        .map(|byte| (b'a' + byte % 26) as char)
        .collect();
    let mut event = serde_json::json!({"event": "page_view", "text": "", "user": number});
    let room = EVENT_BYTES - event.to_string().len();
    event["text"] = text[..room].into();
    event
}

fn open(dir: &Path, durability: Durability) -> LedgerStore {
    let config = LedgerConfig {
        max_file_size: FILE_BYTES,
        header: Box::new(|| b"{\"batch\":[".to_vec()),
        footer: Box::new(|| b"]}".to_vec()),
        separator: b",".to_vec(),
        ..LedgerConfig::lines(dir, "events")
    };
    Options::new().durability(durability).open(config).unwrap()
}

fn open_directory(dir: &Path) -> DirectoryStore {
    DirectoryStore::new(DirectoryConfig {
        write_key: "key".into(),
        storage_location: dir.into(),
        base_filename: "events".into(),
        max_file_size: FILE_BYTES,
    })
    .unwrap()
}

/// Events that survive a crash of the process after the call; and events that are each on stable storage.
pub fn appending<'a>(bench: &mut Bench<'a>, events: &'a Events) {
    let all = events.len();
    bench.case(EACH, LINES, move |dir| {
        let mut file = File::create(dir.join("events.jsonl")).unwrap();
        timed(all, || {
            let mut line = Vec::new();
            for text in &events.texts {
                write_line(&mut file, &mut line, text);
            }
        })
    });
    for (store, durability) in [(LEDGER, Durability::None), (ROTATE, Durability::Rotate)] {
        bench.case(EACH, store, move |dir| {
            let ledger = open(dir, durability);
            timed(all, || {
                for text in &events.texts {
                    ledger.append(text).unwrap();
                }
            })
        });
    }
    bench.case(EACH, DIRECTORY, move |dir| {
        let (mut store, values) = (open_directory(dir), events.values.clone());
        timed(all, || append_values(&mut store, values))
    });
    bench.case(BATCHES, PLAIN, move |dir| {
        let mut file = File::create(dir.join("events.jsonl")).unwrap();
        let joined: Vec<Vec<u8>> =
            events.texts.chunks(BATCH).map(|part| part.join(&b'\n')).collect();
        timed(all, || {
            for part in &joined {
                file.write_all(part).unwrap();
            }
        })
    });
    bench.case(BATCHES, LEDGER, move |dir| {
        let ledger = open(dir, Durability::None);
        let batches: Vec<Batch<LedgerFormat>> = events.texts.chunks(BATCH).map(encoded).collect();
        timed(all, || {
            for batch in &batches {
                ledger.append_batch(batch).unwrap();
            }
        })
    });
    bench.case(BATCHES, ENCODED, move |dir| {
        let ledger = open(dir, Durability::None);
        timed(all, || {
            for part in events.texts.chunks(BATCH) {
                ledger.append_many(part).unwrap();
            }
        })
    });
    bench.case(BATCHES, DIRECTORY, move |dir| {
        let (mut store, values) = (open_directory(dir), events.values.clone());
        timed(all, || append_values(&mut store, values))
    });
    let few = &events.texts[..events.durable];
    bench.case(DURABLE, LINES, move |dir| {
        let mut file = File::create(dir.join("events.jsonl")).unwrap();
        timed(few.len(), || {
            let mut line = Vec::new();
            for text in few {
                write_line(&mut file, &mut line, text);
                file.sync_data().unwrap();
            }
        })
    });
    bench.case(DURABLE, LEDGER, move |dir| {
        let ledger = open(dir, Durability::Always);
        timed(few.len(), || {
            for text in few {
                ledger.append(text).unwrap();
            }
        })
    });
}

/// A line with its end in one write; `line` is reused memory.
fn write_line(file: &mut File, line: &mut Vec<u8>, text: &[u8]) {
    line.clear();
    line.extend_from_slice(text);
    line.push(b'\n');
    file.write_all(line).unwrap();
}

fn encoded(part: &[Vec<u8>]) -> Batch<LedgerFormat> {
    let mut batch = Batch::<LedgerFormat>::new(deedbook::ledger::Options::RECORD_BYTES_MAX);
    for text in part {
        batch.push(text).unwrap();
    }
    batch
}

fn append_values(store: &mut DirectoryStore, values: Vec<Value>) {
    for value in values {
        store.append(value).unwrap();
    }
}

/// A finished file as a request's body, read repeatedly from the system's memory.
pub fn fetching<'a>(bench: &mut Bench<'a>, events: &'a Events) {
    let texts = &events.texts[..events.per_file()];
    let times = (events.len() / 20).max(1);
    bench.case(FETCH, COPY, move |dir| {
        let path = dir.join("events.jsonl");
        std::fs::write(&path, texts.join(&b'\n')).unwrap();
        let read = || read_all(&mut File::open(&path).unwrap());
        timed(times * read(), || (0..times).for_each(|_| _ = read()))
    });
    bench.case(FETCH, LEDGER, move |dir| {
        let ledger = open(dir, Durability::None);
        ledger.append_many(texts).unwrap();
        let read = || {
            let mut readers = ledger.fetch(Some(1), None).unwrap().unwrap().data.unwrap();
            read_all(&mut readers[0])
        };
        timed(times * read(), || (0..times).for_each(|_| _ = read()))
    });
    bench.case(FETCH, DIRECTORY, move |dir| {
        let mut store = open_directory(dir);
        append_values(&mut store, events.values[..texts.len()].to_vec());
        let mut read = || {
            let files = store.fetch(Some(1), None).unwrap().unwrap().data.unwrap();
            read_all(&mut File::open(&files[0]).unwrap())
        };
        timed(times * read(), || (0..times).for_each(|_| _ = read()))
    });
}

/// Read to the end; returns the number of bytes.
fn read_all(from: &mut impl Read) -> usize {
    let (mut block, mut total) = (vec![0; BLOCK_BYTES], 0);
    loop {
        match from.read(&mut block).unwrap() {
            0 => return total,
            count => total += count,
        }
    }
}
