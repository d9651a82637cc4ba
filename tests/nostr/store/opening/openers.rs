//! A writer, and others that open the store meanwhile.

use crate::store::prelude::*;

fn on(run: &Run, disk: &Sim) -> Options {
    on_disk(&run.options, disk)
}

/// Between any two steps, opening refuses a second writer, and changes nothing.
fn refused(run: &Run, what: &str) {
    for mode in [Mode::Append, Mode::Create] {
        let before = run.disk.fingerprint();
        let error = on(run, &run.disk).open(DIR, mode).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked, "{what}: {error:?}");
        assert_eq!(run.disk.fingerprint(), before, "{what}: a writer that was refused wrote");
    }
}

/// A reader opens the store in its state between any two calls of the writer.
// Promise: store-second-writer.
#[test]
fn readers_see_everything_and_second_writer_is_refused() {
    let (mut readers, mut steps) = (0, 0);
    for (number, history) in
        ["amvdfckxr", "vmfvxaxdr", "mmfxmmfxc", "akdkvkmfxr"].into_iter().enumerate()
    {
        let durability = [Durability::Manual, Durability::Always][number % 2];
        let mut run = Run::new(durability, true);
        run.open().unwrap();
        for (at, step) in history.chars().enumerate() {
            let what = format!("{durability} {history:?}, step {at}");
            refused(&run, &what);
            let before = run.known.clone();
            run.disk.record();
            run.apply(step).unwrap();
            let during = Known::during(&before, &run.known);
            steps += 1;
            let moments = run.disk.recorded();
            let now = (&run.disk, &run.known);
            for (call, (disk, known)) in
                moments.iter().map(|moment| (moment, &during)).chain([now]).enumerate()
            {
                // Closing and opening may take hundreds of calls.
                if moments.len() > 40 && call < moments.len() && !mix(call as u64).is_multiple_of(3)
                {
                    continue;
                }
                let judged = || {
                    let reader = on(&run, disk).open(DIR, Mode::Read);
                    let reader = reader.map_err(|e| format!("opening: {e:?}"))?;
                    known.judge_beside(&look(&reader, known, "a reader")?)
                };
                judged().unwrap_or_else(|why| panic!("{what}, call {call}: {why}"));
                readers += 1;
            }
        }
        refused(&run, history);
        // The lock goes with the writer.
        run.store.take().unwrap().close().unwrap();
        on(&run, &run.disk).open(DIR, Mode::Append).unwrap().close().unwrap();
    }
    assert!(readers > 10 * steps, "{steps} steps, {readers} readers");
}

/// Copy the files of one disk to another. A reader may have the segment open, so write into the same file.
fn finish(disk: &Sim, as_on: &Sim) {
    let before = listed(disk, Path::new(DIR));
    for (path, bytes) in listed(as_on, Path::new(DIR)) {
        if path == Path::new(FIRST) {
            let file = disk.open(&path, Access::Write).unwrap();
            assert_eq!(file.write_at(&bytes, 0).unwrap(), bytes.len());
        } else if before.get(&path) != Some(&bytes) {
            // The directory of a new log file.
            let _ = disk.create_dir(path.parent().unwrap());
            write(disk, path.to_str().unwrap(), &bytes);
        }
    }
}

/// A reader looked for the end of the segment during the write of a long event, and found damage. At the second look
/// the event was whole, so the reader kept the damage as real: every walk ended there.
#[test]
fn event_completed_during_a_readers_opening_is_intact() {
    let disk = Sim::new();
    let on = options(&disk, Durability::Manual).segment_bytes(40 * 4096);
    let store = open(&on);
    store.append_many(&[note(0), note(1)]).unwrap();
    let expected = [note(0), note(1), event(9, 4, 0, &[], &"long ".repeat(2000))];
    store.append(&expected[2]).unwrap();
    store.sync().unwrap();
    let logged = disk.kill();
    store.checkpoint().unwrap();
    let emptied = disk.kill();
    let whole = read(&logged, FIRST).len();
    for (after, missing) in
        [&logged, &emptied].into_iter().flat_map(|after| [3000, 4096, 8192].map(|by| (after, by)))
    {
        let mut seen = 0;
        for call in 0.. {
            let begun = logged.kill();
            changed(&begun, FIRST, |bytes| bytes.truncate(whole - missing));
            let (calls, from, to) = (AtomicU64::new(0), begun.clone(), after.kill());
            let storage = watched(Arc::new(begun.clone()), move |seen| {
                if seen == Seen::Calling && calls.fetch_add(1, Ordering::Relaxed) == call {
                    finish(&from, &to);
                }
            });
            let what = format!("{missing} bytes come before call {call}");
            let reader = on.clone().storage(storage).open(DIR, Mode::Read);
            let reader = reader.unwrap_or_else(|e| panic!("{what}: {e:?}"));
            let walk = reader.iter(Include::All, OnCorrupt::Raise).unwrap();
            let found: Result<Vec<Event>, _> = walk.map(|one| one.map(|one| one.event)).collect();
            let found = found.unwrap_or_else(|e| panic!("{what}: {e:?}"));
            // The reader sees all earlier events, with or without the new event.
            assert!(found == expected[..2] || found == expected, "{what}: {} events", found.len());
            seen += found.len() - 2;
            if read(&begun, FIRST).len() < whole {
                break;
            }
        }
        assert!(seen > 0, "{missing} bytes: no reader has the event");
    }
}
