"""The seeded bugs of migrations from LMDB: what is brought, compared, gone on with, left alone."""

from __future__ import annotations

from bug import Bug
from rows import FLIP, HEAD, KILL, READER, WRITER

COPY = "src/book/lmdb/copy.rs"
READ = "src/book/lmdb/read.rs"
METADATA = "src/book/lmdb/metadata.rs"
PIER_METADATA = "src/book/pier/metadata.rs"
TRIP = "src/book/lmdb/trip.rs"

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
        [("book::lmdb", "an_environment_becomes_a_book")],
    ),
    Bug(
        "lmdb: what was written is not compared with the source",
        FLIP,
        COPY,
        "source.compare(self.view(), written, ErrorKind::Corrupt, &mut |_| Ok(()))?;\n",
        "source.count(written, &mut |_| Ok(()))?;\n",
        [("book::lmdb", "an_event_that_lies_otherwise")],
    ),
    Bug(
        "lmdb: what the destination holds is not compared with the source",
        KILL,
        COPY,
        "source.compare(self.view(), held, ErrorKind::AlreadyExists, noted)?;\n",
        "source.count(held, noted)?;\n",
        [("book::lmdb", "a_destination_with_other_events")],
    ),
    Bug(
        "lmdb: a migration goes on an event too early",
        KILL,
        COPY,
        "        copied.events = copied.found;\n        let wanted",
        "        copied.events = copied.found.saturating_sub(1);\n        let wanted",
        [("book::lmdb", "an_interrupted_migration")],
    ),
    Bug(
        "lmdb: a lock file is written beside the source",
        WRITER,
        READ,
        "        let flags = EnvFlags::READ_ONLY | EnvFlags::NO_LOCK;\n",
        "        let flags = EnvFlags::READ_ONLY;\n",
        [("book::lmdb", "an_environment_becomes_a_book")],
    ),
    Bug(
        "lmdb: a source that is written meanwhile is taken for a whole one",
        WRITER,
        READ,
        "    if now == before {\n",
        "    if now == before || now != before {\n",
        [("book::lmdb", "an_environment_that_is_written_meanwhile")],
    ),
    Bug(
        "lmdb: a field that the metadata lacks becomes 0",
        HEAD,
        METADATA,
        "    if held.is_empty() || missing.is_empty() {\n",
        "    if held.is_empty() || !missing.is_empty() || missing.is_empty() {\n",
        [("book::lmdb", "metadata_that_lacks_a_field")],
    ),
    Bug(
        "export to lmdb: all chunks but the first are dropped",
        KILL,
        COPY,
        "                writer.append(first, chunk.iter())?;\n",
        "                if first == 1 {\n"
        "                    writer.append(first, chunk.iter())?;\n"
        "                }\n",
        [("book::lmdb", "an_export_of_many_chunks")],
    ),
    Bug(
        "export to lmdb: a damaged book is brought up to the damage, without a word",
        FLIP,
        "src/book/lmdb/trip.rs",
        "                refuse_corrupt(&book)?;\n",
        "                let _ = refuse_corrupt;\n",
        [("book::lmdb", "a_damaged_book_does_not_go_back")],
    ),
    Bug(
        "export to lmdb: the last event of a chunk is dropped, and not compared",
        KILL,
        COPY,
        "                writer.append(first, chunk.iter())?;\n",
        "                let wanted = chunk.events.len();\n"
        "                chunk.events.truncate(wanted.max(2) - 1);\n"
        "                writer.append(first, chunk.iter())?;\n",
        [("book::lmdb", "an_export_of_many_chunks")],
        also=(
            (
                "source.compare(self.view(), written, ErrorKind::Corrupt, &mut |_| Ok(()))?;\n",
                "source.count(written, &mut |_| Ok(()))?;\n",
            ),
            (
                "                Ok(chunk.events.len() as u64)\n",
                "                Ok(wanted as u64)\n",
            ),
        ),
    ),
    Bug(
        "lmdb: the metadata of a migration is not saved",
        HEAD,
        "src/book/lmdb/trip.rs",
        "        if log.meta != Meta::default() {\n",
        "        if log.meta == Meta::default() {\n",
        [("book::lmdb", "an_environment_becomes_a_book")],
    ),
    Bug(
        "pier: a save changes the last epoch's copy of the metadata alone",
        HEAD,
        PIER_METADATA,
        "        save_top(&self.dir, meta)?;\n",
        "",
        [("book::lmdb", "what_lmdb_holds_is_the_piers")],
    ),
    Bug(
        "pier: metadata that differs from its copy is given without a word",
        HEAD,
        PIER_METADATA,
        "        self.check_same(part, own, copy)?;\n",
        "",
        [("book::lmdb", "metadata_that_differs_is_an_error")],
    ),
    Bug(
        "pier: a save overwrites a field that differs and that it does not name",
        HEAD,
        PIER_METADATA,
        "        self.check_same(part, meta.or(own), meta.or(copy))?;\n",
        "",
        [("book::lmdb", "metadata_that_differs_is_an_error")],
    ),
    Bug(
        "pier: a data.mdb that cannot be read is taken for a missing one",
        HEAD,
        METADATA,
        '        Err(e) => return Err(Error::io("open the environment", &path, e).of(LMDB)),\n',
        "        Err(_) => return Ok(None),\n",
        [("book::lmdb", "an_environment_that_cannot_be_read")],
    ),
    Bug(
        "pier: what may be half of another process's save is reported at once",
        READER,
        PIER_METADATA,
        "                Err(error) if tries < TRIES && is_half(error.kind()) => {\n",
        "                Err(error) if tries == TRIES && is_half(error.kind()) => {\n",
        [("book::lmdb", "a_save_by_another_process")],
    ),
    Bug(
        "lmdb: events that came since they were counted are left out",
        WRITER,
        TRIP,
        "    if source.view().bounds()? == log.events {\n",
        "    if true || source.view().bounds()? == log.events {\n",
        [("book::lmdb", "source::a_later_epoch_that_grows")],
    ),
]
