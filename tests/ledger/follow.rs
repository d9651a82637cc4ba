//! Following a ledger: each record once, through files, writers and senders; a file gone unread is an error.

use deedbook::ledger::{Follow, Position};

use crate::prelude::*;

const NOW: Duration = Duration::ZERO;

fn follow(options: &Options, start: Option<(u32, u64)>) -> Follow {
    let start = start.map(|(file, record)| Position { file, record });
    options.contents(DIR, Some(BASE)).unwrap().follow(start).unwrap()
}

fn rest(follow: &mut Follow) -> Vec<((u32, u64), Vec<u8>)> {
    let next = || follow.next(Duration::from_millis(120)).unwrap();
    std::iter::from_fn(next)
        .map(|(file, record)| ((file, record.number.unwrap()), record.payload))
        .collect()
}

fn payloads(follow: &mut Follow) -> Vec<Vec<u8>> {
    rest(follow).into_iter().map(|(_, payload)| payload).collect()
}

fn wait_for(follow: &mut Follow) -> Vec<u8> {
    follow.next(Duration::from_secs(20)).unwrap().expect("a record").1.payload
}

#[test]
fn a_follower_gives_each_record_once() {
    let (memory, ledger) = in_memory(200);
    let options = on(memory);
    ledger.append_many(events(0..10, 40)).unwrap();
    let mut followed = follow(&options, None);
    let found = rest(&mut followed);
    assert!(found.last().unwrap().0.0 > 1, "several files");
    assert!(found.windows(2).all(|two| two[0].0 < two[1].0));
    let mut found: Vec<_> = found.into_iter().map(|(_, payload)| payload).collect();
    for number in 10..40 {
        ledger.append(&event(number, 40)).unwrap();
        found.push(wait_for(&mut followed));
    }
    assert_eq!(found, events(0..40, 40));
    assert_eq!(followed.next(NOW).unwrap(), None);
}

#[test]
fn a_follower_begins_at_any_position() {
    let (memory, ledger) = in_memory(100_000);
    let options = on(memory);
    ledger.append_many(events(0..4, 40)).unwrap();
    assert_eq!(payloads(&mut follow(&options, Some((0, 1)))), events(1..4, 40));
    let (mut next, mut file) = (follow(&options, Some((0, 5))), follow(&options, Some((1, 0))));
    assert_eq!((next.next(NOW).unwrap(), file.next(NOW).unwrap()), (None, None));
    ledger.append_many(events(4..6, 40)).unwrap();
    assert_eq!(payloads(&mut next), events(5..6, 40));
    ledger.close().unwrap();
    let ledger = options.open(small(DIR, 1000)).unwrap();
    ledger.append(&event(6, 40)).unwrap();
    assert_eq!(payloads(&mut next), events(6..7, 40));
    assert_eq!(payloads(&mut file), events(6..7, 40));
}

/// A follower that reads one file after the other waits for the first writer, whatever the second one appends.
#[test]
fn several_writers_files_are_followed() {
    let (memory, one) = in_memory(300);
    let options = on(memory);
    let two = options.open(small(DIR, 300)).unwrap();
    one.append(b"begins").unwrap();
    let (mut followed, mut found) = (follow(&options, None), BTreeSet::new());
    assert_eq!(wait_for(&mut followed), b"begins");
    for number in 0..60 {
        let ledger = if number % 3 == 0 { &one } else { &two };
        ledger.append(&event(number, 40)).unwrap();
        assert!(found.insert(wait_for(&mut followed)), "a record came twice");
    }
    assert_eq!(found.into_iter().collect::<Vec<_>>(), events(0..60, 40));
}

#[test]
fn a_file_may_be_sent_while_read() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new();
    let ledger = options.open(small(dir.path(), 100_000)).unwrap();
    ledger.append(&event(0, 40)).unwrap();
    let mut followed = options.contents(dir.path(), None).unwrap().follow(None).unwrap();
    assert_eq!(wait_for(&mut followed), event(0, 40));
    for number in 1..20 {
        ledger.append_many(events(10 * number..10 * number + 10, 40)).unwrap();
        // The first record opens the file, and the sender removes it under the follower.
        assert_eq!(wait_for(&mut followed), event(10 * number, 40));
        assert!(!send(&ledger).is_empty());
        for n in 10 * number + 1..10 * number + 10 {
            assert_eq!(wait_for(&mut followed), event(n, 40));
        }
    }
    assert_eq!(followed.next(NOW).unwrap(), None);
}

// The engine's follower raises the same kind of error next to a cut.
#[test]
fn a_file_sent_unread_is_an_error() {
    let gone = |followed: &mut Follow| {
        let error = loop {
            match followed.next(Duration::from_secs(1)) {
                Ok(found) => assert!(found.is_some(), "the gap was not noticed"),
                Err(error) => break error,
            }
        };
        let error = refused::<()>(Err(error), ErrorKind::OutOfRange);
        assert!(error.message().contains("removed before it was read"), "{error}");
    };
    let (memory, ledger) = in_memory(1000);
    let options = on(memory);
    ledger.append(b"0").unwrap();
    // Seen and not opened; come and gone between two looks; gone before the follower began.
    let mut seen = follow(&options, None);
    send(&ledger);
    gone(&mut seen);
    let mut between = follow(&options, None);
    ledger.append(b"1").unwrap();
    send(&ledger);
    gone(&mut between);
    let start = options.contents(DIR, Some(BASE)).unwrap().follow(Some(Position::default()));
    refused(start, ErrorKind::OutOfRange);
    // Without a start, a follower begins with the files that are there.
    let mut present = follow(&options, None);
    ledger.append(b"2").unwrap();
    assert_eq!(wait_for(&mut present), b"2");
}

/// A commit claims indexes before the files get names. For a moment the files look sent.
#[test]
fn a_commit_that_crashes_anywhere_makes_no_gap() {
    let staged = |ledger: &LedgerStore| -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        for partition in 0..3 {
            let mut stage = ledger.stage("job", partition, 1)?;
            stage.push(&event(partition.into(), 0))?;
            parts.extend(stage.finish()?);
        }
        Ok(parts)
    };
    let mut never_made = 0;
    for k in 1.. {
        let disk = Sim::new();
        let ledger = on(disk.clone()).open(small(DIR, 1000)).unwrap();
        let parts = staged(&ledger).unwrap();
        disk.inject(Fault::once(k, What::Crash));
        let transaction = Transaction { job: "job".into(), id: None };
        let committed = ledger.commit_staged(&transaction, &parts);
        let disk = disk.kill();
        let options = on(disk.clone());
        let has_intent = disk
            .list(Path::new("/spool/.deedbook/jobs-events"))
            .is_ok_and(|names| names.iter().any(|name| *name == *"transaction"));
        let contents = options.contents(DIR, Some(BASE)).unwrap();
        let mut followed = match contents.follow(Some(Position::default())) {
            Ok(followed) => Some(followed),
            // The process died between the claim and the intent: no file ever gets the claimed indexes.
            Err(error) => {
                assert!(error.kind() == ErrorKind::OutOfRange && !has_intent, "call {k}: {error}");
                never_made += 1;
                None
            }
        };
        let mut found = followed.as_mut().map(payloads).unwrap_or_default();
        drop(options.open(small(DIR, 1000)).unwrap());
        let mut late = follow(&options, None);
        let all = payloads(&mut late);
        found.extend(followed.as_mut().map(payloads).unwrap_or_default());
        if followed.is_some() {
            assert_eq!(found, all, "call {k}");
        }
        assert!(all.is_empty() || all == events(0..3, 0), "call {k}");
        if committed.is_ok() {
            assert!(k > 10 && all.len() == 3 && never_made < 10, "{k} calls, {never_made}");
            break;
        }
    }
}

#[test]
fn a_follower_raises_damage_and_awaits_torn_ends() {
    let (memory, options) = memory();
    let mut damaged = file_of(&events(0..5, 40));
    let len = file_of(&events(0..2, 40)).len();
    damaged[len + 9] ^= 1;
    put(&memory, 0, &file_of(&events(0..2, 40))[..len - 3]);
    put(&memory, 1, &damaged);
    let mut followed = follow(&options, None);
    let found: Vec<_> = (0..3).map(|_| wait_for(&mut followed)).collect();
    assert_eq!(found, [event(0, 40), event(0, 40), event(1, 40)]);
    refused(followed.next(NOW), ErrorKind::Corrupt);
}

/// A store removes its file if it could not write a record, and gives the same index to the next file.
#[test]
fn an_index_that_comes_again_is_read() {
    let (memory, options) = memory();
    put(&memory, 0, b"");
    let mut followed = follow(&options, None);
    assert_eq!(followed.next(NOW).unwrap(), None);
    memory.remove(&Path::new(DIR).join("0-events")).unwrap();
    put(&memory, 0, &file_of(&events(0..2, 40)));
    assert_eq!(payloads(&mut followed), events(0..2, 40));
}
