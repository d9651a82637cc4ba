"""The seeded bugs of piers: which epochs fit, the lock, and rolls."""

from __future__ import annotations

from bug import Bug
from rows import FSYNC, HEAD, KILL, POWER, READER, SEGMENT, TRUNCATION, WRITER

CHECK = "src/book/pier/check.rs"
OPEN = "src/book/pier/open.rs"
PLACES = "src/book/pier/places.rs"
PUBLISH = "src/book/pier/publish.rs"
RETAIN = "src/book/pier/retain.rs"
ROLL = "src/book/pier/roll.rs"
TRANSACT = "src/book/pier/transact.rs"

PIER_BUGS = [
    Bug(
        "pier: the epoch before a new one is neither synced nor closed",
        POWER,
        ROLL,
        "        last.book.sync()?;\n        let done = last.book.stats()?;\n"
        "        // Cursors over the pier read on.\n"
        "        last.book.close_keeping_files()?;\n",
        "        let done = last.book.stats()?;\n",
        [("book::pier", "crash::a_crash_at_any_step_of_a_roll")],
    ),
    Bug(
        "pier: a roll that failed leaves the handle closed",
        FSYNC,
        ROLL,
        "                shared.go_on(&mut parts, begun);\n",
        "",
        [("book::pier", "crash::a_call_that_fails_during_a_roll")],
    ),
    Bug(
        "pier: the name of a new epoch is not synced",
        POWER,
        ROLL,
        "    for dir in [dir, above(next)] {\n",
        "    for dir in [dir, above(next)].into_iter().skip(2) {\n",
        [("book::pier", "crash::a_crash_at_any_step")],
    ),
    Bug(
        "pier: a writer does not sync names that a dead one left",
        KILL,
        OPEN,
        '    storage.sync_dir(dir).map_err(|e| Error::io("sync the directory", dir, e))?;\n'
        "    Ok(lock)\n",
        "    Ok(lock)\n",
        [("book::pier", "crash::an_epoch_that_a_dead_writer_began")],
    ),
    Bug(
        "pier: what an interrupted roll left stays",
        TRUNCATION,
        ROLL,
        "        remove_files(storage, dir)?;\n",
        "",
        [("book::pier", "crash::a_crash_at_any_step")],
    ),
    Bug(
        "pier: a new epoch has no metadata",
        TRUNCATION,
        ROLL,
        "            store(META_NAME, &bytes)?;\n",
        "            let _ = (META_NAME, &bytes);\n",
        [("book::pier", "roll::a_new_epoch_gets")],
    ),
    Bug(
        "pier: after a failed roll the old epoch goes on beside the new one",
        FSYNC,
        ROLL,
        ".filter(|_| !begun)",
        ".filter(|_| begun || !begun)",
        [("book::pier", "crash::a_call_that_fails")],
    ),
    Bug(
        "pier: the directory of the epochs is not locked",
        WRITER,
        OPEN,
        "WriterLock::acquire(storage, &sidecar, dir, ",
        "WriterLock::of_sidecar(storage, &sidecar, ",
        [("book::pier", "roll::one_pier_has_one_writer")],
    ),
    Bug(
        "pier: a gap between epochs is accepted",
        SEGMENT,
        PLACES,
        '        Ordering::Greater => "missing",\n',
        "        Ordering::Greater => return Ok(()),\n",
        [("book::pier", "open::a_gap_is_refused")],
    ),
    Bug(
        "pier: an overlap of epochs is accepted",
        SEGMENT,
        PLACES,
        '        Ordering::Less => "in both",\n',
        "        Ordering::Less => return Ok(()),\n",
        [("book::pier", "open::an_overlap_is_refused")],
    ),
    Bug(
        "pier: a new epoch forgets the layout of the one before",
        HEAD,
        ROLL,
        "    let layout = options.layout.or(layout);\n",
        "    let (layout, _) = (options.layout, layout);\n",
        [("book::pier", "roll::a_new_epoch_has_the_layout")],
    ),
    Bug(
        "pier: an epoch is dropped and neither directory is synced",
        TRUNCATION,
        RETAIN,
        "            storage.sync_dir(&self.dir)?;\n            storage.sync_dir(&self.sidecar)\n",
        "            Ok(())\n",
        [("book::pier", "retain::a_crash_at_any_step")],
    ),
    Bug(
        "pier: an epoch goes although a consumer needs its last event",
        TRUNCATION,
        RETAIN,
        "event <= after.number);\n",
        "event < after.number);\n",
        [("book::pier", "retain::a_consumer_keeps")],
    ),
    Bug(
        "pier: what a dropped epoch knows of transactions goes with it",
        TRUNCATION,
        RETAIN,
        "desk().note_all(first.book.transactions()?)?;\n",
        "desk().note_all(Default::default())?;\n",
        [("book::pier", "transact::a_repeat_is_recognised_after_its_epoch")],
    ),
    Bug(
        "pier: an epoch is removed where it lies",
        TRUNCATION,
        RETAIN,
        "        let renamed = storage.rename(&dir, &aside);\n",
        "        let renamed =\n"
        "            remove_tree(storage, &dir, REMOVING).map_err(std::io::Error::other);\n",
        [("book::pier", "retain::a_crash_at_any_step")],
    ),
    Bug(
        "pier: epochs of a transaction come before the last one is synced and closed",
        POWER,
        PUBLISH,
        "        shared.close_last(last, number)?;\n        store(",
        "        store(",
        [("book::pier", "publish::a_crash_at_any_step")],
    ),
    Bug(
        "pier: an unsynced intent is acted on",
        POWER,
        PUBLISH,
        "        self.sync(&self.sidecar)?;\n        let begun",
        "        let begun",
        [("book::pier", "publish::a_second_crash")],
    ),
    Bug(
        "pier: opening leaves epochs of a transaction without their names",
        KILL,
        OPEN,
        "                publish::finish(options, &dir)?;\n",
        "",
        [("book::pier", "publish::a_crash_at_any_step")],
    ),
    Bug(
        "pier: the last epoch is appended to before epochs that have begun",
        FSYNC,
        PUBLISH,
        "self.go_on(epochs, is_begun);",
        "self.go_on(epochs, false);",
        [("book::pier", "publish::a_call_that_fails")],
    ),
    Bug(
        "pier: what is staged in an epoch goes with it",
        TRUNCATION,
        RETAIN,
        "parts.last().filter(|last| last.book.layout() == first.book.layout())",
        "parts.last().filter(|_| false)",
        [("book::pier", "transact::what_was_staged_in_an_epoch")],
    ),
    Bug(
        "pier: a task stages in the last epoch that it knows",
        TRUNCATION,
        TRANSACT,
        "        self.find_more()?;\n        self.on_last(|book| book.stage(",
        "        self.on_last(|book| book.stage(",
        [("book::pier", "transact::a_task_that_stages_after")],
    ),
    Bug(
        "pier: what a retention took to a later epoch is discarded by nobody",
        TRUNCATION,
        TRANSACT,
        "        self.find_more()?;\n        self.with(|epochs| {\n            let mut gone =",
        "        self.with(|epochs| {\n            let mut gone =",
        [("book::pier", "transact::a_reader_discards")],
    ),
    Bug(
        "pier: a follower that gave nothing is led past dropped events",
        TRUNCATION,
        "src/book/pier/follow.rs",
        "self.given.or(self.start.checked_sub(1))",
        "self.given",
        [("book::pier", "retain::a_follower_that_gave_nothing")],
    ),
    Bug(
        "pier: a check ends where a retention drops an epoch",
        READER,
        CHECK,
        "            Err(e) if e.kind() == ErrorKind::Missing => is_dropped(named.number)?,\n",
        "            Err(e) if e.kind() == ErrorKind::Missing => named.number == u64::MAX,\n",
        [("book::pier", "retain::a_check_beside_a_retention")],
    ),
]
