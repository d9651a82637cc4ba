"""The seeded bugs of the event store."""

from __future__ import annotations

from bug import Bug
from rows import ADVICE, AGAIN, FLIP, FSYNC, FULL, HEAD, KILL, POWER, TRUNCATION

APPEND = "src/nostr/append.rs"
BELONGING = "src/nostr/belonging.rs"
CHECKPOINT = "src/nostr/checkpoint.rs"
CHECK_LOG = "src/nostr/check_log.rs"
COMPACTION = "src/nostr/compaction.rs"
INDEXING = "src/nostr/indexing.rs"
INDEX_TABLE = "src/nostr/index/table.rs"
MANIFEST = "src/nostr/manifest.rs"
MEND_WAL = "src/nostr/mend_wal.rs"
OPENING = "src/nostr/opening.rs"
PENDING = "src/nostr/pending.rs"
RECOVERY = "src/nostr/recovery.rs"
REPAIR = "src/nostr/repair.rs"
SALVAGE = "src/nostr/salvage.rs"
SEGMENT = "src/nostr/segment.rs"
SEGMENTS = "src/nostr/segments.rs"
WALK = "src/nostr/walk.rs"

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
        "    let completed = store.complete(&tail);\n",
        "    let completed = Ok::<(), Error>(drop(tail));\n",
        [("nostr_store", "stories::one_version_counts")],
    ),
    Bug(
        "event store: an opening that cannot complete flags empties the log all the same",
        POWER,
        OPENING,
        "store.shared.state().broken = Some(error.message().to_owned())",
        "drop(error.message().to_owned())",
        [("nostr_store", "stories::an_opening_that_fails")],
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
        "event store: without checksums an event beyond the log may have a torn signature",
        POWER,
        RECOVERY,
        "self.checks_ids && (self.met || self.is_last)",
        "false",
        [("nostr_store", "what_only_a_segment_has")],
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
        BELONGING,
        "        own.retain(|_, ids| ids.is_empty());\n",
        "",
        [("nostr_store", "manifest::a_manifest_that_is_missing")],
    ),
    Bug(
        "event store: the index claims to cover what it lacks",
        ADVICE,
        INDEXING,
        ".map_or(0, |from| from.end);",
        ".map_or(0, |_| self.segments.by_id[&id].segment.end());",
        [("nostr_store", "stories::the_index_learns")],
    ),
    Bug(
        "event store: the index does not learn flags from the log",
        ADVICE,
        OPENING,
        "    state.index_changes(Batch::default(), &tail.flagged.iter().copied().collect())?;\n",
        "    let _ = Batch::default();\n",
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
    Bug(
        "event store: without manifests, copies are not looked for",
        TRUNCATION,
        BELONGING,
        "let (old, new) = doubled(segments, &copies)?;",
        "let (old, new) = (BTreeSet::new(), BTreeSet::new());\n        let _ = doubled;",
        [("nostr_store", "crash::a_compaction_that_a_crash_interrupted")],
    ),
    Bug(
        "event store: a copy goes although it holds what the others lack",
        HEAD,
        BELONGING,
        "            holds &= !role.must_stay(event) || kept.contains_key(&event.id);\n",
        "            let _ = (role, event);\n",
        [("nostr_store", "manifest::damaged_copies")],
    ),
    Bug(
        "event store: without manifests, a missing segment is not noticed",
        HEAD,
        BELONGING,
        "        if self.source != Source::Files {\n            return None;\n",
        "        if self.source != Source::Files || is_whole {\n            return None;\n",
        [("nostr_store", "manifest::a_missing_segment_is_noticed")],
    ),
    Bug(
        "event store: the manifest counts although its copy is newer",
        HEAD,
        BELONGING,
        "if !manifest.is_foreign && rank(&copy, files)",
        "if manifest.is_foreign && rank(&copy, files)",
        [("nostr_store", "manifest::an_older_manifest")],
    ),
    Bug(
        "event store: the copy counts although the manifest is newer",
        HEAD,
        BELONGING,
        " && rank(&copy, files) > rank(&manifest, files)",
        " && rank(&copy, files) != rank(&manifest, files)",
        [("nostr_store", "manifest::an_older_copy")],
    ),
    Bug(
        "event store: the manifest gets no copy",
        HEAD,
        MANIFEST,
        "        if self.copied.as_ref() != Some(&generation) {\n",
        "        if self.copied.as_ref() == Some(&generation) {\n",
        [("nostr_store", "manifest::an_older_manifest")],
    ),
    Bug(
        "event store: an expired event keeps the old segments of a compaction",
        TRUNCATION,
        BELONGING,
        "(self == Self::New || expires_at(event).is_none())",
        "(self == Self::New || expires_at(event).is_none() || true)",
        [("nostr_store", "manifest::an_expired_event")],
    ),
    Bug(
        "event store: an index does not learn of segments that join",
        ADVICE,
        OPENING,
        "(joins || belonging.may_differ_from_index())",
        "(joins && belonging.may_differ_from_index())",
        [("nostr_store", "manifest::a_segment_that_joins")],
    ),
    Bug(
        "event store: a compaction that leaves nothing looks like a loss",
        HEAD,
        COMPACTION,
        "        if targets.by_id.is_empty() {\n",
        "        if targets.by_id.is_empty() && state.segments.by_id.len() == old.len() {\n",
        [("nostr_store", "manifest::a_compaction_that_leaves_nothing")],
    ),
    Bug(
        "event store: a compaction is one step, and an error costs all of it",
        TRUNCATION,
        COMPACTION,
        "            if bytes >= step_bytes {\n",
        "            if bytes >= step_bytes && false {\n",
        [("nostr_store", "stories::a_compaction_that_fails_keeps")],
    ),
    Bug(
        "event store: a salvage brings back what a compaction dropped",
        TRUNCATION,
        SALVAGE,
        "is_saved || lacks_some || entered.lsn > logged.checkpoint",
        "is_saved || lacks_some || entered.lsn > Lsn(0)",
        [("nostr_store", "rescue::a_salvage_brings_nothing_back")],
    ),
    Bug(
        "event store: a salvage forgets flags that only the log has",
        POWER,
        SALVAGE,
        "if let Some(&flags) = logged.flags.get(&at) {",
        "if let Some(&flags) = logged.flags.get(&at).filter(|_| false) {",
        [("nostr_store", "rescue::a_salvage_takes_flags")],
    ),
    Bug(
        "event store: a repair goes on without acknowledged events unasked",
        HEAD,
        REPAIR,
        "        if !may.accept_loss {\n",
        "        if !may.accept_loss && !may.force {\n",
        [("nostr_store", "rescue::a_repair_takes_damaged_pages_out")],
    ),
    Bug(
        "event store: a repair cuts intact events unasked",
        HEAD,
        REPAIR,
        "    if report.cut_events > 0 && !may.force {\n",
        "    if report.cut_events > 0 && !may.force && !may.accept_loss {\n",
        [("nostr_store", "rescue::a_repair_asks")],
    ),
    Bug(
        "event store: a repair does not note that it went on without acknowledged events",
        HEAD,
        REPAIR,
        " }.store(storage, &sidecar, options.file_mode)?;\n",
        " };\n",
        [("nostr_store", "rescue::a_repair_takes_damaged_pages_out")],
    ),
    Bug(
        "event store: a repair cuts the log before its last checkpoint",
        TRUNCATION,
        MEND_WAL,
        "let from = checkpoint.map_or((0, 0), |(place, _)| place);",
        "let from = (0, 0);",
        [("nostr_store", "rescue::a_repair_keeps_the_last_checkpoint")],
        also=(("plan.trim = Some((lsn, offset));", "let _ = lsn;"),),
    ),
    Bug(
        "event store: a repair cuts the log before the segments are on stable storage",
        POWER,
        REPAIR,
        "    if plan.cuts() {\n        make_durable",
        "    if false {\n        make_durable",
        [("nostr_store", "mend::a_repair_that_crashes")],
    ),
    Bug(
        "event store: a repair takes for stored what opening cuts off",
        POWER,
        REPAIR,
        "stays &= Some(id) != last || u64::from(damage.end) <= checkpoint;",
        "stays |= Some(id) != last || u64::from(damage.end) <= checkpoint;",
        [("nostr_store", "rescue::a_repair_asks_before_events_go")],
    ),
    Bug(
        "event store: a repair leaves what spoke of removed files of the log",
        POWER,
        MEND_WAL,
        "    forget_removed(options, dir, plan)?;\n",
        "    let _ = forget_removed;\n",
        [("nostr_store", "mend::a_repair_that_crashes")],
    ),
    Bug(
        "event store: a deleted version that waits for the index replaces older ones",
        ADVICE,
        PENDING,
        "if at.is_none() || known.heads.get(address).copied() == at {",
        "if at.is_none() {",
        [("nostr_store", "lifecycle::what_was_deleted")],
    ),
    Bug(
        "event store: a deleted version that the index still has replaces older ones",
        ADVICE,
        INDEXING,
        "if self.segments.read(at, &mut buf)?.event.flags.is_live() {",
        "if self.segments.read(at, &mut buf).is_ok() {",
        [("nostr_store", "lifecycle::what_was_deleted")],
    ),
    Bug(
        "event store: a deletion by address misses the versions that wait for the index",
        ADVICE,
        INDEXING,
        "        waiting.flatten().copied()\n",
        "        waiting.flatten().copied().take(0)\n",
        [("nostr_store", "lifecycle::an_author_deletes")],
    ),
    Bug(
        "event store: an index with a flipped byte in the file that names its files is opened",
        FLIP,
        INDEX_TABLE,
        "        check_versions(dir)?;\n",
        "        let _ = check_versions;\n",
        [("nostr_index", "damage::a_flipped_byte")],
    ),
    Bug(
        "event store: a batch that begins amid damage reports it again",
        FLIP,
        WALK,
        "is_passing: true, ",
        "is_passing: false, ",
        [("lib", "arrow::tests::damage_across_parts")],
    ),
    Bug(
        "event store: a sync that fails beside a large compaction is passed over",
        FSYNC,
        COMPACTION,
        "                syncing.take().map_or(Ok(()), joined)?;\n",
        "                let _ = syncing.take().map_or(Ok(()), joined);\n",
        [("nostr_store", "whatever_fails_in_a_large_compaction")],
        also=(
            (
                "            syncing.map_or(Ok(()), joined)?;\n",
                "            let _ = syncing.map_or(Ok(()), joined);\n",
            ),
        ),
    ),
    Bug(
        "event store: an index that knows lost flags is taken as it is",
        POWER,
        INDEXING,
        "                && covered.flags <= self.flags_asked\n",
        "",
        [("nostr_store", "stale_index::an_index_with_flags")],
    ),
    Bug(
        "event store: the first files of the log may be missing",
        HEAD,
        MEND_WAL,
        "            && begins.0 > named.0 + 1\n",
        "            && begins.0 > named.0 + u64::from(u32::MAX)\n",
        [("nostr_store", "damage::verify_names_the_damage")],
    ),
    Bug(
        "event store: verify looks at the segments only",
        HEAD,
        CHECK_LOG,
        "            found.retain(|part| before.contains(part));\n",
        "            found.clear();\n            drop(before);\n",
        [("nostr_store", "damage::verify_names_the_damage")],
        also=(
            (
                "                    return Ok(found);\n",
                "                    return Ok(Vec::new());\n",
            ),
        ),
    ),
    Bug(
        "event store: a torn end hides files of the log that are missing",
        HEAD,
        MEND_WAL,
        "entered.offset == HEADER_BYTES as u64",
        'log.path.ends_with("wal.log")',
        [("nostr_store", "damage::verify_names_the_damage")],
    ),
]
