//! Reports of readers and checks about a log under change by another program or process.

use super::*;

fn at(format: &dyn Format, memory: &Memory) -> At {
    At::memory(memory, format.path_in(Path::new(DIR)))
}

fn payloads(events: &[Event]) -> Vec<&[u8]> {
    events.iter().map(|(_, bytes)| &bytes[..]).collect()
}

/// Appends as a program without knowledge of the mark does.
fn append_as_others_do(format: &dyn Format, at: &At, count: usize) {
    let mark = format.sidecar(&at.path).join("mark");
    let before = read_file(&*at.storage, &mark);
    let writer = format.open(at, Mode::Append, MANUAL).unwrap();
    writer.append_batch(&plain(count, 40)).unwrap();
    writer.close().unwrap();
    write_file(&*at.storage, &mark, &before);
}

/// Streams of a log with appends of Urbit stopped forever at the end that our writer had closed.
#[test]
fn a_closed_mark_vouches_for_no_foreign_append() {
    for format in FORMATS {
        let memory = Memory::new();
        let at = at(format, &memory);
        format.create(&at, &plain(8, 40)).close().unwrap();
        let early = format.read(&at).unwrap();
        let begin = early.bookmark(None).unwrap();
        assert!(early.durable().unwrap().is_some(), "{}", format.name());

        append_as_others_do(format, &at, 12);
        early.refresh().unwrap();
        for log in [&early, &format.read(&at).unwrap()] {
            assert_eq!(log.durable().unwrap(), None, "{}", format.name());
            let next = log.advance(&begin, &Reach::default()).unwrap();
            assert_eq!(next.offset, log.end().unwrap(), "{}", format.name());
        }

        // Our writer syncs the log, and opens the mark before it appends.
        let writer = format.open(&at, Mode::Append, MANUAL).unwrap();
        writer.sync().unwrap();
        let synced = writer.end().unwrap();
        writer.append_batch(&plain(3, 40)).unwrap();
        early.refresh().unwrap();
        for log in [&early, &format.read(&at).unwrap()] {
            let next = log.advance(&begin, &Reach::default()).unwrap();
            assert_eq!(next.offset, synced, "{}", format.name());
        }
    }
}

/// The reader saw the closed mark, and the log with all of the first batch except the first record's head.
#[test]
fn readers_during_the_first_batch_find_no_damage() {
    for format in with_sums() {
        let (memory, events) = (Memory::new(), plain(6, 40));
        let there = at(format, &memory);
        let log = format.create(&there, &events[..2]);
        let end = log.end().unwrap() as usize;
        log.close().unwrap();
        let before = Files::of(&memory);
        let writer = format.open(&there, Mode::Append, MANUAL).unwrap();
        writer.append_batch(&events[2..]).unwrap();
        let mut during = Files::of(&memory);
        writer.close().unwrap();
        let first = during.bytes.get_mut(&format.first_file(&there.path)).unwrap();
        first[end..end + 8].fill(0);

        for at_call in 0.. {
            let calls = Arc::new(AtomicU64::new(0));
            let put = |files: &Files| {
                files.bytes.iter().for_each(|(path, bytes)| write_file(&memory, path, bytes));
            };
            let change = {
                let (calls, memory, during) = (calls.clone(), memory.clone(), during.clone());
                move |seen| {
                    if seen == Seen::Calling && calls.fetch_add(1, Ordering::Relaxed) == at_call {
                        for (path, bytes) in &during.bytes {
                            write_file(&memory, path, bytes);
                        }
                    }
                }
            };
            let at =
                At { storage: watched(there.storage.clone(), change), path: there.path.clone() };
            let what = format!("{}, call {at_call}", format.name());

            put(&before);
            let all = format.read(&at).unwrap().forward(None, None, false);
            assert!(all.error.is_none(), "{what}: {:?}", all.error);
            assert!(payloads(&all.events()) == payloads(&events[..2]), "{what}");

            put(&before);
            let spent = calls.swap(0, Ordering::Relaxed);
            let checked = format.verify(&at, MANUAL).unwrap();
            assert_ne!(checked.verdict, Verdict::Corrupt, "{what}: {checked:?}");
            if spent.max(calls.load(Ordering::Relaxed)) <= at_call {
                break;
            }
        }
    }
}

/// The index of the earlier log reached beyond the end of the log: a subtraction overflowed.
#[test]
fn readers_follow_a_log_regrown_to_its_mark() {
    for format in with_sums().filter(|format| format.segment_bytes().is_none()) {
        let (memory, events) = (Memory::new(), plain(300, 1000));
        let at = at(format, &memory);
        format.create(&at, &events).close().unwrap();
        let file = format.first_file(&at.path);
        let whole = read_file(&memory, &file);
        let edge = {
            let log = format.read(&at).unwrap();
            log.forward(None, None, false).records[100].offset as usize
        };
        write_file(&memory, &file, &whole[..edge]);
        let reader = format.read(&at).unwrap();
        assert_eq!(reader.len().unwrap(), 100, "{}", format.name());
        for part in [150, 300] {
            let end = whole.len() * part / 300;
            write_file(&memory, &file, &whole[..end]);
            let _ = reader.refresh();
        }
        let all = reader.forward(None, None, false);
        assert!(payloads(&all.events()) == payloads(&events), "{}", format.name());
        let last = all.records[299].ordinal.unwrap();
        assert!(reader.read(last).unwrap().1 == events[299].1, "{}", format.name());
    }
}
