//! A writer, and others that open its store meanwhile.

use std::sync::Arc;

use deedbook::nostr::Options;
use deedbook::storage::sim::Sim;
use deedbook::{Durability, ErrorKind, Mode};

use crate::judge::look;
use crate::known::Known;
use crate::support::mix;
use crate::world::{DIR, Run};

fn on(run: &Run, disk: &Sim) -> Options {
    run.options.clone().storage(Arc::new(disk.clone()))
}

/// A second writer is refused between any two steps, and changes nothing.
fn refused(run: &Run, what: &str) {
    for mode in [Mode::Append, Mode::Create] {
        let before = run.disk.fingerprint();
        let error = on(run, &run.disk).open(DIR, mode).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked, "{what}: {error:?}");
        assert_eq!(run.disk.fingerprint(), before, "{what}: a writer that was refused wrote");
    }
}

/// A reader opens the store as it is between any two calls of the writer.
#[test]
fn a_reader_beside_a_writer_sees_all_that_was_written_and_a_second_writer_is_refused() {
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
    println!("{steps} steps, {readers} readers");
    assert!(readers > 10 * steps);
}
