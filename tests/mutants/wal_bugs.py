"""The seeded bugs that only write-ahead logs can have: head, segments, truncation, consumers."""

from __future__ import annotations

from bug import Bug
from rows import (
    AGAIN,
    FLIP,
    HEAD,
    LENGTH,
    PANIC,
    PLACE,
    POWER,
    READER,
    REPLACED,
    SEGMENT,
    TRUNCATION,
)

ASK = "src/wal/ask.rs"
CONSUMERS = "src/wal/consumers.rs"
POSITIONS = "src/sidecar/consumers.rs"
CUT = "src/wal/cut.rs"
FILES = "src/wal/files.rs"
FORMAT = "src/wal/format.rs"
INSPECT = "src/wal/inspect.rs"
RECORD = "src/wal/record.rs"
BACKGROUND = "src/background.rs"
RETAIN = "src/wal/retain.rs"
SETTLE = "src/log/settle.rs"
TRUNCATE = "src/wal/truncate.rs"

WAL_BUGS = [
    Bug(
        "wal: checksums are not compared",
        FLIP,
        RECORD,
        "        if crc != stored {\n",
        "        if false && crc != stored {\n",
        [("wal::damage", "segments_missing")],
    ),
    Bug(
        "wal: the limit of a length is not checked",
        LENGTH,
        RECORD,
        "        if length > self.record_bytes_max {\n",
        "        if false && length > self.record_bytes_max {\n",
        [("lib", "record")],
    ),
    Bug(
        "wal: a zero header is a length",
        FLIP,
        RECORD,
        "        let possible = length <= self.record_bytes_max && (crc, length) != (0, 0);\n",
        "        let possible = length <= self.record_bytes_max && crc as u64 <= u64::MAX;\n",
        [("engine::answers", "survivors::zeros_in_a_damaged_payload")],
    ),
    Bug(
        "wal: of a copied log only the tail is synced",
        POWER,
        SETTLE,
        "        let whole = found.mark.is_none_or(|mark| mark.file != id);\n",
        "        let whole = false;\n",
        [("engine::crash", "durable::wal_segments::a_copied_log durable::wal_tiny::a_copied_log")],
    ),
    Bug(
        "wal: a log in pieces is cut before its mark is durable",
        AGAIN,
        SETTLE,
        "    let in_pieces = cut_begun || (cut && !place.single);\n",
        "    let in_pieces = false;\n",
        [("engine::crash", "wal_single::every_short wal_segments::every_short")],
    ),
    Bug(
        "wal: an index keeps its numbers when a prefix was dropped since",
        TRUNCATION,
        "src/log/find_end.rs",
        "            let first = by_file.or((mark.first + mark.records)"
        ".checked_sub(extent.records));\n",
        "            let first = Some(0u64);\n",
        [("wal::truncation", "ordinals_agree")],
    ),
    Bug(
        "wal: records dropped in front are counted as lost at the end",
        TRUNCATION,
        "src/log/conclude.rs",
        "    (mark.start == extent.start).then(|| mark.records.saturating_sub(extent.records))\n",
        "    Some(mark.records.saturating_sub(extent.records))\n",
        [("wal::truncation", "records_that_were_dropped")],
    ),
    Bug(
        "wal: a missing log is created again below its mark",
        REPLACED,
        FORMAT,
        "place.load_mark(storage)?.0.filter(|mark| mark.end > 0) {\n",
        "place.load_mark(storage)?.0.filter(|mark| mark.end == u64::MAX) {\n",
        [("engine::log", "sidecar::a_log_removed_under")],
    ),
    Bug(
        "wal: what never was a log is cut as a torn tail",
        PLACE,
        INSPECT,
        "    if known || !nothing {\n",
        "    if known || !nothing || *data_end > 0 {\n",
        [("wal::regressions", "a_file_that_never_was")],
    ),
    Bug(
        "wal: segments are cut by a size that nothing proves",
        SEGMENT,
        INSPECT,
        "    if known || !cuts || base == 0 {\n",
        "    if known || !cuts || base < u64::MAX {\n",
        [("wal::segment_sizes", "a_segment_size_guessed")],
    ),
    Bug(
        "wal: the head is always taken for 0",
        HEAD,
        INSPECT,
        "                    return self.with_head(&indices, head, segment_bytes);\n",
        "                    return self.with_head(&indices, 0, segment_bytes);\n",
        [("wal::truncation", "ordinals_agree")],
    ),
    Bug(
        "wal: a lost head is not made up for by the mark",
        HEAD,
        INSPECT,
        "        if let Some(mark) = self.mark.filter(|mark| mark.start > 0)\n",
        "        if let Some(mark) = self.mark.filter(|mark| mark.start == u64::MAX)\n",
        [("wal::damage", "a_damaged_head")],
    ),
    Bug(
        "wal: a lost head that the mark knows is not stored again",
        HEAD,
        FORMAT,
        "        if more.head_lost {\n",
        "        if more.head_lost && extent.start == u64::MAX {\n",
        [("wal::damage", "a_damaged_head")],
    ),
    Bug(
        "wal: the head marker is not synced",
        TRUNCATION,
        FILES,
        "    replace(&*options.storage, &path, &encode_head_marker(head), options.file_mode)\n",
        """    let _ = options.storage.remove(&path);
    options
        .storage
        .create_new(&path, options.file_mode)
        .and_then(|file| crate::storage::write_full(&*file, &encode_head_marker(head), 0))
""",
        [("engine::crash", "wal_segments::every_short")],
    ),
    Bug(
        "wal: a segment in the middle of a wrong size is accepted",
        SEGMENT,
        FILES,
        "len > segment_bytes || (len < segment_bytes && from.last() != Some(&index)) {\n",
        "len > segment_bytes {\n",
        [("wal::damage", "segments_missing")],
    ),
    Bug(
        "wal: a missing segment is accepted",
        SEGMENT,
        FILES,
        "        if found.gap.is_some() || index != found.extent.next {\n",
        "        if found.gap.is_some() {\n",
        [("wal::damage", "segments_missing")],
    ),
    Bug(
        "wal: what follows a missing segment is left out",
        SEGMENT,
        FILES,
        "            found.extent.orphans.push(index);\n",
        "",
        [("engine::answers", "segments::every_segment_missing")],
    ),
    Bug(
        "wal: segments that come back below the head are kept",
        SEGMENT,
        FORMAT,
        "        if more.stale.is_empty() {\n",
        "        if more.stale.len() < usize::MAX {\n",
        [("wal::own", "segments_that_come_back")],
    ),
    Bug(
        "wal: an intent to empty a log is any log's",
        REPLACED,
        INSPECT,
        "frame.crc == intent.first_sum,",
        "true || frame.crc == intent.first_sum,",
        [("wal::intent", "a_leftover_intent")],
    ),
    Bug(
        "wal: an intent is not ended by the next opening",
        TRUNCATION,
        INSPECT,
        "            Left::Intent(intent) if is_ours(",
        "            Left::Intent(intent) if place.is_tail && is_ours(",
        [("wal::intent", "a_cut_of_all_records")],
    ),
    Bug(
        "wal: another log's intent stays beside this one",
        TRUNCATION,
        FORMAT,
        "        if more.cut_begun || more.foreign_cut {\n",
        "        if more.cut_begun {\n",
        [("wal::intent", "a_leftover_intent")],
    ),
    Bug(
        "wal: segments are removed before the head is stored",
        TRUNCATION,
        TRUNCATE,
        "        let marker = head_marker(&*self.common.storage, &self.place)?;\n",
        """        segments.remove_below(head / bytes).map_err(|e| io("remove segments", e))?;
        let marker = head_marker(&*self.common.storage, &self.place)?;
""",
        [("engine::crash", "wal_segments::every_short")],
    ),
    Bug(
        "wal: a prefix is dropped with unsynced records after it",
        TRUNCATION,
        TRUNCATE,
        "        self.sync_file(&extent).map_err(broken)?;\n",
        "",
        [("wal::own", "records_that_come_while_a_truncation_syncs")],
    ),
    Bug(
        "wal: the mark of a new head is not synced",
        TRUNCATION,
        TRUNCATE,
        "        self.sync_mark()?;\n        Ok(kept.end)\n",
        "        Ok(kept.end)\n",
        [("wal::own", "after_a_dropped_prefix_and_a_power_cut")],
    ),
    Bug(
        "wal: what is not durable is dropped",
        TRUNCATION,
        TRUNCATE,
        "        if end <= durable {\n",
        "        if end <= durable || durable < u64::MAX {\n",
        [("wal::own", "what_a_truncation_refuses")],
    ),
    Bug(
        "wal: no intent before a cut",
        TRUNCATION,
        TRUNCATE,
        """        intent.store(&self.options, &self.place.sidecar).map_err(|e| {
            match Intent::load(&*self.common.storage, &self.place.sidecar) {
                Ok(Left::Absent) => refuse(e),
                _ => broken(e),
            }
        })?;
""",
        "        let _ = (intent, Left::Absent);\n",
        [("wal::own", "a_cut_end_never_comes_back")],
    ),
    Bug(
        "wal: the mark is not lowered before a cut",
        TRUNCATION,
        TRUNCATE,
        "        let lowered = "
        "MarkFile::reset(&*self.common.storage, &self.place.sidecar, &mark);\n",
        """        let _ = mark;
        let lowered = MarkFile::open(&*self.common.storage, &self.place.sidecar);
""",
        [("wal::own", "a_cut_end_never_comes_back")],
    ),
    Bug(
        "wal: a cut is not synced before its intent goes",
        TRUNCATION,
        TRUNCATE,
        "        self.sync_file(&kept).map_err(broken)?;\n        Intent::clear",
        "        Intent::clear",
        # That the enumerator of crashes can fail.
        [("engine::crash", "wal_tiny::every_short")],
    ),
    Bug(
        "wal: a truncation does not cut the index",
        REPLACED,
        TRUNCATE,
        "        self.index().cut(kept.end);\n",
        "",
        [("wal::own", "an_index_ends_where")],
    ),
    Bug(
        "wal: a cut is not counted on the writer's handle",
        REPLACED,
        TRUNCATE,
        "        self.cuts.fetch_add(1, Ordering::AcqRel);\n",
        "",
        [("wal::own", "a_follower_of_the_writers_handle")],
    ),
    Bug(
        "wal: a consumer stays above a cut end",
        TRUNCATION,
        TRUNCATE,
        "        self.consumers().lower(kept.end).map_err(&refuse)?;\n",
        "",
        [("wal::keep", "a_consumer_above_a_cut")],
    ),
    Bug(
        "wal: a consumer stays above the end that a crash left",
        POWER,
        CONSUMERS,
        "        self.consumers().lower(end)\n",
        "        self.consumers().lower(end.max(u64::MAX))\n",
        [("wal::keep", "an_opening_lowers_consumers")],
    ),
    Bug(
        "wal: consumers lowered for a cut that was refused stay lowered",
        TRUNCATION,
        TRUNCATE,
        "match self.consumers().put_back(&consumers, kept.end) {\n",
        "match self.consumers().put_back(&consumers, u64::MAX) {\n",
        [("wal::truncation", "a_refused_cut")],
    ),
    Bug(
        "wal: a forced truncation leaves consumers below the head",
        TRUNCATION,
        TRUNCATE,
        "            shared.consumers().raise(lsn.0)?;\n",
        "",
        [("engine::answers", "edges::a_prefix_dropped_with_force")],
    ),
    Bug(
        "wal: a dry run of a truncation says what the truncation would refuse",
        TRUNCATION,
        CUT,
        "                self.check_consumers(lsn)?;\n",
        "",
        [("wal::own", "what_a_truncation_refuses_is_refused")],
    ),
    Bug(
        "wal: what a writer was asked to drop is asked for ever",
        TRUNCATION,
        RETAIN,
        "            self.forget_asked()?;\n",
        "",
        [("wal::keep", "a_running_writer_drops_what_it_is_asked_to")],
    ),
    Bug(
        "wal: a writer without rules does not look at what it is asked to drop",
        TRUNCATION,
        RETAIN,
        "        if given.is_none() && self.asked()?.is_none() {\n",
        "        if given.is_none() {\n",
        [("wal::keep", "a_running_writer_drops_what_it_is_asked_to")],
    ),
    Bug(
        "wal: a consumer is set without the lock",
        TRUNCATION,
        CONSUMERS,
        "        let _changing = self.lock_consumers()?;\n",
        "        drop(self.lock_consumers()?);\n",
        [("wal::own", "consumers_that_two_threads")],
    ),
    Bug(
        "wal: a reader sets a consumer while records are dropped",
        READER,
        POSITIONS,
        "            lock_within(storage, sidecar, wait)\n",
        "            lock_within(storage, sidecar, wait).map(drop)?;\n"
        "            let memory = crate::storage::Memory::new();\n"
        '            lock_within(&memory, std::path::Path::new("/"), wait)\n',
        [("wal::keep", "a_reader_that_asks")],
    ),
    Bug(
        "wal: a reader sets a consumer where records were dropped",
        READER,
        CONSUMERS,
        "            shared.follow_head()?;\n            let extent",
        "            let extent",
        [("wal::keep", "a_reader_keeps")],
    ),
    Bug(
        "wal: a consumer's records are dropped",
        TRUNCATION,
        CONSUMERS,
        "            Some((name, needs)) if *needs < lsn.0 => {\n",
        "            Some((name, needs)) if *needs < lsn.0 && lsn.0 == u64::MAX => {\n",
        [("wal::keep", "truncation_never_passes")],
    ),
    Bug(
        "wal: an open writer drops nothing by itself",
        TRUNCATION,
        FORMAT,
        "        log.keep_to_retention();\n",
        "        let _ = log;\n",
        [("wal::keep", "a_writer_drops_by_itself")],
    ),
    Bug(
        "wal: opening drops nothing by itself",
        TRUNCATION,
        FORMAT,
        "        wal.shared.keep_to_retention();\n",
        "",
        [("wal::keep", "a_writer_drops_by_itself")],
    ),
    Bug(
        "wal: a writer that did not get the lock does not try it again",
        TRUNCATION,
        RETAIN,
        "            Ok(false) => last.store(segment, Ordering::Release),\n",
        "            Ok(false) => {}\n",
        [("wal::keep", "a_writer_whose_retention_waits")],
    ),
    Bug(
        "wal: a reader that missed a cut sets its consumer above the end",
        TRUNCATION,
        CONSUMERS,
        "            shared.check_uncut()?;\n",
        "",
        [("wal::keep", "a_reader_that_missed_a_cut")],
    ),
    Bug(
        "wal: opening lowers consumers that a reader is setting",
        TRUNCATION,
        CONSUMERS,
        "        let _lowering = self.lock_consumers()?;\n",
        "",
        [("wal::keep", "an_opening_lowers_consumers")],
    ),
    Bug(
        "wal: an opening that cut asks for consumers without their lock",
        POWER,
        POSITIONS,
        " > end) || was_cut)",
        " > end) || (false && was_cut))",
        [("wal::keep", "an_opening_that_cuts_waits")],
    ),
    Bug(
        "wal: a hook that panics ends the syncs in the background",
        PANIC,
        BACKGROUND,
        "            match catch_unwind(AssertUnwindSafe(|| sync(&shared))) {\n",
        "            match std::thread::Result::Ok(sync(&shared)) {\n",
        [("wal::keep", "syncs_in_the_background")],
    ),
    Bug(
        "wal: less than a millisecond is asked for as none",
        TRUNCATION,
        ASK,
        "age.as_nanos().div_ceil(1_000_000)",
        "(age.as_nanos() / 1_000_000)",
        [("lib", "an_age_is_stored")],
    ),
]
