"""The seeded bugs of migrations from LMDB: what is brought, compared, gone on with, left alone."""

from __future__ import annotations

from bug import Bug
from rows import FLIP, HEAD, KILL, WRITER

COPY = "src/book/lmdb/copy.rs"
READ = "src/book/lmdb/read.rs"
METADATA = "src/book/lmdb/metadata.rs"

LMDB_BUGS = [
    Bug(
        "lmdb: an event is left out",
        KILL,
        COPY,
        "                source.each(range, &mut |_, mug, jam| {\n"
        "                    if jam.len() < BATCH_BYTES {\n"
        "                        batch.push(mug, jam)?;\n",
        "                source.each(range, &mut |event, mug, jam| {\n"
        "                    if jam.len() < BATCH_BYTES {\n"
        "                        if event != 7 {\n"
        "                            batch.push(mug, jam)?;\n"
        "                        }\n",
        [("lmdb", "an_environment_becomes_a_book")],
    ),
    Bug(
        "lmdb: what was written is not compared with the source",
        FLIP,
        COPY,
        "source.compare(self.view(), written, ErrorKind::Corrupt, &mut |_| Ok(()))?;\n",
        "source.count(written, &mut |_| Ok(()))?;\n",
        [("lmdb", "an_event_that_lies_otherwise")],
    ),
    Bug(
        "lmdb: what the destination holds is not compared with the source",
        KILL,
        COPY,
        "source.compare(self.view(), held, ErrorKind::AlreadyExists, noted)?;\n",
        "source.count(held, noted)?;\n",
        [("lmdb", "a_destination_with_other_events")],
    ),
    Bug(
        "lmdb: a migration goes on an event too early",
        KILL,
        COPY,
        "        copied.events = copied.found;\n        let wanted",
        "        copied.events = copied.found.saturating_sub(1);\n        let wanted",
        [("lmdb", "an_interrupted_migration")],
    ),
    Bug(
        "lmdb: a lock file is written beside the source",
        WRITER,
        READ,
        "        let flags = EnvFlags::READ_ONLY | EnvFlags::NO_LOCK;\n",
        "        let flags = EnvFlags::READ_ONLY;\n",
        [("lmdb", "an_environment_becomes_a_book")],
    ),
    Bug(
        "lmdb: a source that is written meanwhile is taken for a whole one",
        WRITER,
        READ,
        "        if now == self.opened {\n",
        "        if now == self.opened || now != self.opened {\n",
        [("lmdb", "an_environment_that_is_written_meanwhile")],
    ),
    Bug(
        "lmdb: a field that the metadata lacks becomes 0",
        HEAD,
        METADATA,
        "    if held.is_empty() || missing.is_empty() {\n",
        "    if held.is_empty() || !missing.is_empty() || missing.is_empty() {\n",
        [("lmdb", "metadata_that_lacks_a_field")],
    ),
]
