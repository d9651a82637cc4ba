"""Seeded bugs of what all formats share, or have twice until they share it.

A review planted these and no test found them. The texts are those of the sources as they are now;
a bug that stands here for Book and for the write-ahead log apart (``twins``) becomes one once the
code is one. One more, a durable end that is not lowered with a cut, is found by ``make models``.
"""

from __future__ import annotations

from bug import Bug

POWER = "power loss"
FSYNC = "fsync fails once, then works"
ADVICE = "mark or index stale, damaged, foreign, deleted"
REPLACED = "file truncated or replaced under reader or writer"
TRUNCATION = "crash at any step of truncation, compaction, migration, removal"

Change = tuple[str, str, str]


def twins(
    name: str, row: str, tests: list[tuple[str, str]], book: Change, wal: Change
) -> list[Bug]:
    """The same bug in the code of either format."""
    changes = (("book", book), ("wal", wal))
    return [Bug(f"{kind}: {name}", row, *change, tests) for kind, change in changes]


SYNCED_BOOK = """            let tip = self.state().tip;
            self.sync_file(tip)?;
            // Durable now"""
SYNCED_WAL = """            let (tip, file_id) = {
                let state = self.state();
                (state.tip, state.file_id)
            };
            self.sync_file(tip)?;
            // Durable now"""
BACKGROUND = "        if end > shared.commits.durable() && shared.sync_to(end).is_err() {"
SWALLOWED = (
    "        if end > shared.commits.durable()\n"
    "            && shared.file.sync_data().is_ok()\n"
    "            && shared.sync_to(end).is_err()\n"
    "        {"
)
ROLLED_BACK = (
    "            self.check_whole(state)?;\n            self.file.set_len(state.tip.end)?;\n"
)
FILLED_UP = "            self.file.set_len(state.tip.end)?;\n"
LOST = (
    "    let lost = durable_end.is_some_and(|end| valid_end < end)"
    " || findings.mark == MarkUse::Lost;\n"
)
LOST_AT_THE_END = "    let lost = findings.mark == MarkUse::Lost;\n"
LOOK_BOOK = "look_at(&options, &dir, &log, Access::Write, depth)"
LOOK_WAL = "look_at(&options, &place, Access::Write, depth)"
LOCK_BOOK = "        let mut lock = WriterLock::acquire(storage, &sidecar, options.file_mode)?;\n"
LOCK_WAL = (
    "        let mut lock = WriterLock::acquire(storage, &place.sidecar, options.file_mode)?;\n"
)

LOG_BUGS = [
    *twins(
        "a sync acknowledges how far the log reaches after the fsync",
        POWER,
        [("crash", "durable::{subject}::what_is_appended_during_a_sync")],
        (
            "src/book/sync.rs",
            SYNCED_BOOK,
            SYNCED_BOOK.replace(
                "self.sync_file(tip)?;",
                "self.sync_file(tip)?;\n            let tip = self.state().tip;",
            ),
        ),
        (
            "src/wal/sync.rs",
            SYNCED_WAL,
            SYNCED_WAL.replace(
                "self.sync_file(tip)?;",
                "self.sync_file(tip)?;\n            let tip = self.state().tip;",
            ),
        ),
    ),
    Bug(
        "a rollback does not hold the leader up",
        FSYNC,
        "src/commit.rs",
        "        let _doubt = lock(&self.doubt);\n",
        "        drop(lock(&self.doubt));\n",
        [("faults", "poison::{subject}::a_leader_waits")],
    ),
    Bug(
        "book: opening looks before it has the lock",
        "second writer, other process or same process, through links too",
        "src/book/open.rs",
        LOCK_BOOK,
        f"        let early = {LOOK_BOOK}.ok();\n{LOCK_BOOK}",
        [("crash", "openers::{subject}::an_opening")],
        also=(
            (
                f"        let mut looked = {LOOK_BOOK}?;\n",
                "        let mut looked = match early {\n            Some(looked) => looked,\n"
                f"            None => {LOOK_BOOK}?,\n        }};\n",
            ),
        ),
    ),
    Bug(
        "wal: opening looks before it has the lock",
        "second writer, other process or same process, through links too",
        "src/wal/open.rs",
        LOCK_WAL,
        f"        let early = {LOOK_WAL}.ok();\n{LOCK_WAL}",
        [("crash", "openers::{subject}::an_opening")],
        also=(
            (
                f"        let mut looked = {LOOK_WAL}?;\n",
                "        let mut looked = match early {\n            Some(looked) => looked,\n"
                f"            None => {LOOK_WAL}?,\n        }};\n",
            ),
        ),
    ),
    *twins(
        "a failed background sync is swallowed",
        FSYNC,
        [("faults", "background::{subject}::")],
        ("src/book/background.rs", BACKGROUND, SWALLOWED),
        ("src/wal/background.rs", BACKGROUND, SWALLOWED),
    ),
    Bug(
        "wal: of a copied log only the tail is synced",
        POWER,
        "src/wal/tail.rs",
        "        let whole = looked.mark.is_none_or(|mark| mark.file != id);\n",
        "        let whole = false;\n",
        [("crash", "durable::{subject}::a_copied_log")],
    ),
    *twins(
        "a rollback fills up with zeros what another process cut",
        REPLACED,
        [("faults", "rollback::{subject}::a_rollback_does_not_fill_up")],
        ("src/book/writer.rs", ROLLED_BACK, FILLED_UP),
        ("src/wal/writer.rs", ROLLED_BACK, FILLED_UP),
    ),
    *twins(
        "the first checksum of a log that begins with a batch is forgotten",
        "bit flip in the last record",
        [("crash", "torn::{subject}::a_loss_below"), ("crash", "{subject}::every_short")],
        (
            "src/book/writer.rs",
            "            state.tip.first_sum = batch.first_sum;\n",
            "            state.tip.first_sum = 0;\n",
        ),
        (
            "src/wal/writer.rs",
            "            state.tip.first_sum = batch.first_sum;\n",
            "            state.tip.first_sum = 0;\n",
        ),
    ),
    Bug(
        "wal: a truncation does not cut the index",
        ADVICE,
        "src/wal/truncate.rs",
        "        self.index().cut(kept.end);\n",
        "",
        [("wal_own", "an_index_ends_where_a_truncation"), ("crash", "wal_large::every_short")],
    ),
    Bug(
        "book: recovery does not cut the index",
        ADVICE,
        "src/book/blocks.rs",
        "    index.cut(tip.end);\n",
        "",
        [("crash", "index::{subject}::an_index"), ("crash", "{subject}::every_short")],
    ),
    Bug(
        "offsets in the index have 32 bits",
        ADVICE,
        "src/sidecar/index.rs",
        "        offset.copy_from_slice(&self.offset.to_le_bytes());\n",
        "        offset.copy_from_slice(&u64::from(self.offset as u32).to_le_bytes());\n",
        [("wal_own", "an_index_knows_positions")],
    ),
    *twins(
        "damage in the middle is not told as lost",
        "bit flip in the middle",
        [("crash", "torn::{subject}::damage_below")],
        ("src/book/verify.rs", LOST, LOST_AT_THE_END),
        ("src/wal/verify.rs", LOST, LOST_AT_THE_END),
    ),
    Bug(
        "wal: a follower on the writer's handle waits on after a cut",
        REPLACED,
        "src/wal/follow.rs",
        "            if end < self.next {\n",
        "            if end < self.next && self.wal.shared.mode == Mode::Read {\n",
        [("wal_own", "a_follower_of_the_writers_handle")],
    ),
    Bug(
        "wal: a cut is not counted on the writer's handle",
        REPLACED,
        "src/wal/truncate.rs",
        "        self.cuts.fetch_add(1, Ordering::AcqRel);\n",
        "",
        [("wal_own", "a_follower_of_the_writers_handle")],
    ),
    *twins(
        "a reader believes a foreign mark",
        ADVICE,
        [("crash", "openers::{subject}::a_reader")],
        (
            "src/book/reader.rs",
            "        let ours = |mark: &Mark| mark.first == tip.first"
            " && mark.first_sum == tip.first_sum;\n",
            "        let ours = |mark: &Mark| mark.first == tip.first;\n",
        ),
        (
            "src/wal/refresh.rs",
            "                frame.crc == mark.last_sum && scanner.position() == mark.end\n",
            "                let _ = frame;\n                true\n",
        ),
    ),
    Bug(
        "wal: a consumer is set without the lock",
        TRUNCATION,
        "src/wal/consumers.rs",
        "        let _changing = crate::locks::lock(&self.consumers);\n",
        "        drop(crate::locks::lock(&self.consumers));\n",
        [("wal_own", "consumers_that_two_threads")],
    ),
    *twins(
        "a salvage copies a batch again that it copied",
        "bit flip in the middle",
        [("log", "large::a_salvage")],
        ("src/book/mend.rs", "            batch.clear();\n", ""),
        ("src/wal/mend.rs", "                batch.clear();\n", ""),
    ),
    Bug(
        "the search for the next record passes over the end of each block",
        "bit flip in the middle",
        "src/scan.rs",
        "        for i in 0..candidates {\n",
        "        for i in 0..candidates - if last { 0 } else { 12 } {\n",
        [("log", "large::the_next_record")],
    ),
    Bug(
        "the offset of the map has 32 bits",
        "offsets beyond 2^31 and 2^32; u64 overflow",
        "src/storage/mapped_writes.rs",
        ".offset(base)",
        ".offset(u64::from(base as u32))",
        [("disk", "small_writes_beyond_4_gib")],
    ),
    Bug(
        "a slot stays registered after its map is gone",
        REPLACED,
        "src/storage/mapped_writes.rs",
        "        self.slot.start.store(0, Ordering::Release);\n",
        "",
        [("lib", "mapped_writes")],
    ),
]
