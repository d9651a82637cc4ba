"""The seeded bugs of the event store."""

from __future__ import annotations

from bug import Bug
from rows import ADVICE, AGAIN, FSYNC, FULL, HEAD, KILL, POWER, TRUNCATION

APPEND = "src/nostr/append.rs"
CHECKPOINT = "src/nostr/checkpoint.rs"
COMPACTION = "src/nostr/compaction.rs"
INDEXING = "src/nostr/indexing.rs"
OPENING = "src/nostr/opening.rs"
RECOVERY = "src/nostr/recovery.rs"
SEGMENT = "src/nostr/segment.rs"
SEGMENTS = "src/nostr/segments.rs"

EVENT_STORE_BUGS = [
    Bug(
        "event store: replay appends nothing again",
        POWER,
        RECOVERY,
        "        segments.append(&[record])?;\n",
        "",
        [("nostr_store", "damage::a_wrong_or_old_header")],
    ),
    Bug(
        "event store: replay does not look whether a record is there",
        KILL,
        RECOVERY,
        "        if is_same(found.bytes, record) {\n",
        "        if false && is_same(found.bytes, record) {\n",
        [("nostr_store", "damage::a_wrong_or_old_header")],
    ),
    Bug(
        "event store: replay believes the header of the segment",
        HEAD,
        RECOVERY,
        "manifest.size_of(header.segment).and_then(|size| size.try_into().ok())",
        "Some(header.next_free)",
        [("nostr_store", "damage::a_wrong_or_old_header")],
    ),
    Bug(
        "event store: what a dead process left in the cache counts as durable",
        AGAIN,
        SEGMENTS,
        """        open.dirty = true;
        open.segment.write_again(at.offset)
""",
        """        let _ = (open, at);
        Ok(())
""",
        [("nostr_store", "stories::what_a_failed_sync")],
    ),
    Bug(
        "event store: an event is flagged before the log is synced",
        POWER,
        APPEND,
        "        if !durable || state.segments",
        "        if !durable & false || state.segments",
        [("nostr_store", "stories::no_event_is_hidden")],
    ),
    Bug(
        "event store: a flag is written when the log is durable up to an earlier one",
        POWER,
        APPEND,
        "            state.flags_asked = Lsn(",
        "            let _ = Lsn(",
        [("nostr_store", "stories::no_event_is_hidden")],
    ),
    Bug(
        "event store: a checkpoint forgets flags that wait",
        POWER,
        CHECKPOINT,
        "        state.segments.write_flags()?;\n",
        "",
        [("nostr_store", "crash::a_checkpoint_survives")],
    ),
    Bug(
        "event store: a commit leaves flags waiting",
        POWER,
        APPEND,
        "            None => self.write_flags(wal, &mut state),\n",
        "            None => Ok(drop(state)),\n",
        [("nostr_store", "stories::flags_are_seen")],
    ),
    Bug(
        "event store: walks do not see flags that wait",
        POWER,
        SEGMENT,
        "        self.waiting.get(&offset).copied()\n",
        "        self.waiting.get(&offset).copied().filter(|_| offset == 0)\n",
        [("nostr_store", "stories::flags_are_seen")],
    ),
    Bug(
        "event store: flags set by hand are not as durable as appends",
        FSYNC,
        APPEND,
        "        drop(state);\n        shared.keep_promise(wal)\n",
        "        drop(state);\n        Ok(())\n",
        [("nostr_store", "stories::flags_are_as_durable")],
    ),
    Bug(
        "event store: opening does not complete the flags of the last events",
        POWER,
        OPENING,
        "    store.complete(&tail)?;\n",
        "",
        [("nostr_store", "stories::one_version_counts")],
    ),
    Bug(
        "event store: a torn event without a checksum is taken for one",
        POWER,
        RECOVERY,
        "        checks_ids: !options.checksums,\n",
        "        checks_ids: false,\n",
        [("nostr_store", "stories::a_torn_event")],
    ),
    Bug(
        "event store: compaction drops what does not fit into a segment",
        TRUNCATION,
        COMPACTION,
        "            rest = later;\n",
        "            let _ = later;\n            rest = &[];\n",
        [("nostr_store", "stories::a_compaction_that_failed"), ("nostr_store", "crash::")],
    ),
    Bug(
        "event store: writing a flag clears that the record goes on",
        POWER,
        SEGMENT,
        "        let flags = flags.of_event() | form;\n",
        "        let _ = form;\n        let flags = flags.of_event();\n",
        [("nostr_store", "lifecycle::flags_hide")],
    ),
    Bug(
        "event store: the log says checkpoint before the segments are synced",
        POWER,
        CHECKPOINT,
        """        let written = state.segments.sync()?;
        state.index_durable()?;
        let lsn = wal.checkpoint(now())?;
""",
        """        let lsn = wal.checkpoint(now())?;
        let written = state.segments.sync()?;
        state.index_durable()?;
""",
        [("nostr_store", "crash::a_checkpoint_survives")],
    ),
    Bug(
        "event store: the manifest is swapped after the old segments are deleted",
        TRUNCATION,
        COMPACTION,
        """        self.store_manifest(state, old)?;
        state.index_moved(moved)?;
        state.segments.remove(old)?;
""",
        """        state.index_moved(moved)?;
        state.segments.remove(old)?;
        self.store_manifest(state, old)?;
""",
        [("nostr_store", "crash::a_compaction_survives")],
    ),
    Bug(
        "event store: new segments are not synced before the manifest names them",
        TRUNCATION,
        COMPACTION,
        "        targets.sync()?;\n",
        "",
        [("nostr_store", "crash::a_compaction_survives")],
    ),
    Bug(
        "event store: a compaction that failed leaves its copies",
        FULL,
        COMPACTION,
        "        if let Err(error) = targets.remove(&copies) {\n",
        "        if let Err(error) = targets.remove(&[]) {\n            drop(copies);\n",
        [("nostr_store", "stories::a_compaction_that_failed")],
    ),
    Bug(
        "event store: opening deletes segments that the manifest does not name, copies or not",
        HEAD,
        OPENING,
        "own.get(id).is_none_or(BTreeSet::is_empty)",
        "own.get(id).is_none_or(|_| true)",
        [("nostr_store", "manifest::a_manifest_that_is_missing")],
    ),
    Bug(
        "event store: the index claims to cover what it lacks",
        ADVICE,
        INDEXING,
        ".map_or(0, |from| from.end);",
        ".map_or(0, |_| open.segment.end());",
        [("nostr_store", "stories::the_index_learns")],
    ),
    Bug(
        "event store: the index does not learn flags from the log",
        ADVICE,
        OPENING,
        "    state.index_changes(&[], &tail.flagged)?;\n",
        "",
        [("nostr_store", "stories::the_index_learns")],
    ),
    Bug(
        "event store: after a compaction the index has events where they lay",
        TRUNCATION,
        INDEXING,
        "        for &(id, created_at, at) in &moved.kept {\n",
        "        for &(id, created_at, at) in moved.kept.iter().take(0) {\n",
        [("nostr_store", "lifecycle::the_newest_version")],
    ),
    Bug(
        "event store: after a compaction the index has events that went",
        TRUNCATION,
        INDEXING,
        "        for &at in &moved.gone {\n",
        "        for &at in moved.gone.iter().take(0) {\n",
        [("nostr_store", "lifecycle::the_newest_version")],
    ),
    Bug(
        "event store: names that another process left unsynced stay so",
        AGAIN,
        OPENING,
        "    sync_names(storage, &sidecar, &dir)?;\n",
        "    let _ = sync_names;\n",
        [("nostr_store", "stories::names_that_a_store")],
    ),
    Bug(
        "event store: a segment of other pages gets records made for those before",
        HEAD,
        OPENING,
        "    store.begin_pages()?;\n",
        "",
        [("nostr_store", "stories::another_size_of_pages")],
    ),
    Bug(
        "event store: an append that is there in part says that nothing is",
        FULL,
        APPEND,
        "            true => error.with_durable(Durable::Unknown),\n            false => error,\n",
        "            _ => error.with_durable(Durable::No),\n",
        [("nostr_store", "stories::an_append_that_is_there_in_part")],
    ),
    Bug(
        "event store: a checkpoint that failed is forgotten",
        FSYNC,
        CHECKPOINT,
        "        done.inspect_err(|error| state.broken = Some(error.message().to_owned()))\n",
        "        done\n",
        [("nostr_store", "stories::what_a_failed_sync")],
    ),
]
