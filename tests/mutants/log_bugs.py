"""The seeded bugs of the engine, `src/log`: every format has them, so every format's tests are run.

`make models` finds one more, a durable end that is not lowered with a cut.
"""

from __future__ import annotations

from bug import Bug, Tests
from rows import (
    ADVICE,
    AGAIN,
    FLIP,
    FORK,
    FSYNC,
    FULL,
    HEAD,
    KILL,
    LAST_FLIP,
    LENGTH,
    NESTED,
    OVERFLOW,
    POWER,
    READER,
    REPAIR,
    REPLACED,
    TRUNCATION,
    WRITER,
)

CRASH: Tests = [("crash", "::{subject}::"), ("crash", "{subject}::every_short")]
FAULTS: Tests = [("faults", "::{subject}::"), ("faults", "{subject}::every_call")]

APPEND = "src/log/append.rs"
CURSOR = "src/log/cursor.rs"
DURABLE = "src/log/durable.rs"
FIND_END = "src/log/find_end.rs"
FOLLOW = "src/log/follow.rs"
OPEN = "src/log/open.rs"
READ = "src/log/read.rs"
REFRESH = "src/log/refresh.rs"
REPAIRING = "src/log/repair.rs"
RESYNC = "src/log/resync.rs"
SETTLE = "src/log/settle.rs"
VERIFY = "src/log/verify.rs"

SYNCED = "            self.sync_file(&extent)?;\n            // Durable now"
LOCK = "        let mut lock = WriterLock::acquire(storage, &place.sidecar, common.file_mode)?;\n"
LOOK = "F::inspect(&options, &place, Access::Write, depth)"
ROLLED_BACK = (
    "            self.file.set_len(state.extent.end)?;\n            self.file.sync_data()?;\n"
    "            state.file_end = state.extent.end;\n            Ok(())\n"
)

DURABLE_BUGS = [
    Bug(
        "acknowledge before the sync",
        POWER,
        DURABLE,
        SYNCED,
        "            // Durable now",
        CRASH,
    ),
    Bug(
        "the mark is written before the sync",
        POWER,
        DURABLE,
        SYNCED,
        f"            self.store_mark(extent.mark(file_id), false)?;\n{SYNCED}",
        CRASH,
        slow=True,
    ),
    Bug(
        "a sync acknowledges how far the log reaches after the fsync",
        POWER,
        DURABLE,
        SYNCED,
        SYNCED.replace("?;\n", "?;\n            let extent = self.state().extent;\n"),
        [("crash", "durable::{subject}::what_is_appended_during_a_sync")],
    ),
    Bug(
        "closing does not wait for a sync under way",
        POWER,
        DURABLE,
        "            result = self.commits.exclusive(|| self.cut_and_sync());",
        "            result = self.commits.check().and_then(|()| self.cut_and_sync().map(drop));",
        [("closing", "")],
    ),
    Bug(
        "closing does not sync",
        POWER,
        DURABLE,
        "        self.sync_file(&extent)?;\n        self.durable_records",
        "        self.durable_records",
        CRASH,
        slow=True,
    ),
    Bug(
        "a leader does not ask whether another thread's sync failed",
        FSYNC,
        DURABLE,
        "        self.commits.check_rollback()?;\n",
        "",
        [("closing", ""), ("commits", "")],
    ),
    Bug(
        "a failed background sync is swallowed",
        FSYNC,
        DURABLE,
        "            && let Err(error) = shared.sync_to(end)\n",
        "            && shared.file.sync_data().is_ok()\n"
        "            && let Err(error) = shared.sync_to(end)\n",
        [("faults", "background::{subject}::")],
    ),
    Bug(
        "a replaced log is synced and acknowledged",
        REPLACED,
        DURABLE,
        "        match self.file.is_unlinked()? {",
        "        match false {",
        [("log", "live::a_file_cut_removed")],
    ),
]

APPEND_BUGS = [
    Bug(
        "a failed write is not rolled back",
        FULL,
        APPEND,
        ROLLED_BACK,
        "            state.file_end = state.extent.end;\n            Ok(())\n",
        [("faults", "rollback::{subject}::"), *FAULTS],
    ),
    Bug(
        "a rolled back append is not synced away",
        FULL,
        APPEND,
        ROLLED_BACK,
        ROLLED_BACK.replace("            self.file.sync_data()?;\n", ""),
        [("faults", "rollback::{subject}::"), *FAULTS],
    ),
    Bug(
        "a rollback fills up with zeros what another process cut",
        REPLACED,
        APPEND,
        "            self.check_not_truncated(state)?;\n            self.file.set_len",
        "            self.file.set_len",
        [("faults", "rollback::{subject}::a_rollback_does_not_fill_up")],
    ),
    Bug(
        "a poisoned handle still takes appends",
        FSYNC,
        APPEND,
        "        shared.check_poisoned()?;\n",
        "",
        [("faults", "poison::{subject}::after_a_failed_sync"), *FAULTS],
    ),
    Bug(
        "the first checksum of a log that begins with a batch is forgotten",
        LAST_FLIP,
        APPEND,
        "            extent.first_sum = batch.first_sum;\n",
        "            extent.first_sum = 0;\n",
        [("crash", "torn::{subject}::a_loss_below"), ("crash", "{subject}::every_short")],
    ),
    Bug(
        "a batch is written in one piece, its first head with the rest",
        READER,
        APPEND,
        "        if batch.records == 1 {\n",
        "        if batch.records >= 1 {\n",
        [("answers", "findings::a_reader_never_gives")],
    ),
    Bug(
        "the first head of a batch is written first",
        READER,
        APPEND,
        "            self.write(state, part(bytes, head..), offset + head as u64)?;\n"
        "            self.write(state, part(bytes, ..head), offset)?;\n",
        "            self.write(state, part(bytes, ..head), offset)?;\n"
        "            self.write(state, part(bytes, head..), offset + head as u64)?;\n",
        [("answers", "findings::a_reader_never_gives")],
    ),
    Bug(
        "the mark stays closed while a writer appends",
        KILL,
        APPEND,
        "        if !state.mark_is_open {\n            self.open_mark(state);\n        }\n",
        "",
        [("answers", "drift::a_writer_that_goes_on")],
    ),
    Bug(
        "small batches close no block of the index",
        ADVICE,
        APPEND,
        "        self.close_block(state, ordinal + batch.records, state.extent.end);\n",
        "",
        [("regressions", "a_log_of_small_batches")],
    ),
    Bug(
        "event numbers overflow",
        OVERFLOW,
        APPEND,
        "        let fits = next.filter(|next| next.checked_add(count).is_some());",
        "        let fits = next.filter(|next| next.wrapping_add(count) < u64::MAX);",
        [("limits", "event_numbers_end"), ("numbers", "")],
    ),
    Bug(
        "a batch for a limit above the log's is taken",
        LENGTH,
        APPEND,
        "        self.appending.check_len(batch.payload_len_max)"
        ".map_err(|e| e.at(&self.place.log))?;\n",
        "",
        [("log", "limits::a_batch_with_a_higher_limit")],
    ),
]

OPEN_BUGS = [
    Bug(
        "opening looks before it has the lock",
        WRITER,
        OPEN,
        LOCK,
        f"        let early = {LOOK}.ok();\n{LOCK}",
        [("crash", "openers::{subject}::an_opening")],
        also=(
            (
                f"        let mut found = {LOOK}?;\n",
                "        let mut found = match early {\n            Some(found) => found,\n"
                f"            None => {LOOK}?,\n        }};\n",
            ),
        ),
    ),
    Bug(
        "the log's own file is not locked",
        WRITER,
        OPEN,
        "            lock.add_log(storage, &place.log)?;\n",
        "",
        [("log", "places::the_sidecar_removed"), ("log", "places")],
    ),
    Bug(
        "a log in a directory is locked by its sidecar alone",
        WRITER,
        OPEN,
        "            lock.add_log(storage, &place.dir)?;\n",
        "",
        [("log", "places::the_sidecar_removed"), ("wal_places", "")],
    ),
    Bug(
        "a directory may hold logs of two formats",
        WRITER,
        OPEN,
        "                refuse_other_format(storage, &place.dir, F::NAME)?\n",
        "",
        [("wal", "a_directory_holds"), ("answers", "edges::a_log_of_another_format")],
    ),
    Bug(
        "a saved tail is opened for writing",
        REPAIR,
        OPEN,
        "        if place.is_tail {\n",
        "        if false {\n",
        [("answers", "repair::a_saved_tail")],
    ),
    Bug(
        "a closed mark is taken for open",
        KILL,
        OPEN,
        "            mark_is_open: !mark.is_some_and(|mark| mark.closed),\n",
        "            mark_is_open: true,\n",
        [("answers", "drift::a_writer_that_goes_on")],
    ),
    Bug(
        "a forked child may write",
        FORK,
        "src/log/mod.rs",
        "        self.fork_generation != fork_generation()\n",
        "        self.fork_generation == u64::MAX && fork_generation() == 0\n",
        [("log", "live::a_forked_child")],
    ),
    Bug(
        "recovery does not cut the index",
        ADVICE,
        "src/log/index.rs",
        "    index.cut(extent.end.max(known));\n",
        "",
        [("log", "sidecar::an_index_says_nothing"), ("crash", "index::book::an_index_ends")],
    ),
]

SETTLE_BUGS = [
    Bug(
        "names of a killed creator are not synced",
        AGAIN,
        SETTLE,
        "    if !was_closed {\n",
        "    if was_closed {\n",
        [("crash", "durable::{subject}::names_left_by")],
    ),
    Bug(
        "what opening found is acknowledged without a sync",
        KILL,
        SETTLE,
        "    if cut || unmarked || cut_begun {\n",
        "    if cut || cut_begun {\n",
        CRASH,
    ),
    Bug(
        "the tail left by a failed sync is not written again",
        FSYNC,
        SETTLE,
        "    if found.mark.is_some() && from < extent.end {\n",
        "    if found.mark.is_some() && from < extent.start {\n",
        [("faults", "poison::{subject}::what_a_failed_sync_left")],
    ),
    Bug(
        "the mark is lowered after the cut",
        TRUNCATION,
        SETTLE,
        "    let in_pieces = cut_begun || (cut && !place.single);\n",
        """    if cut {
        found.space.file.set_len(extent.end).map_err(|e| fail("cut the tail", e))?;
        let last = extent.end.saturating_sub(1).max(extent.start);
        found.format.sync_from(&*found.space.file, last).map_err(|e| fail("sync", e))?;
    }
    let in_pieces = cut_begun || (cut && !place.single);
""",
        [("crash", "mend::{subject}::"), ("crash", "{subject}::every_short")],
    ),
    Bug(
        "the tail is not saved before it is cut",
        FLIP,
        SETTLE,
        "        report.saved_to = save_tail(storage, file, base, common.file_mode, end)?;\n",
        "        let _ = (save_tail, file, base, end);\n",
        [("answers", "findings::a_torn_tail_is_saved")],
    ),
    Bug(
        "the saved tail is not synced before the cut",
        REPAIR,
        "src/mend.rs",
        '    copy.sync_data().map_err(|e| fail("save the tail", &path, e))?;\n',
        "",
        [("crash", "mend::{subject}::")],
    ),
    Bug(
        "a cut whose sync failed is not made again",
        FSYNC,
        SETTLE,
        "    if cut || !was_closed {\n",
        "    if cut {\n",
        [("wal_regressions", "a_cut_whose_sync_failed")],
    ),
    Bug(
        "recovery to the acknowledged keeps the rest",
        KILL,
        SETTLE,
        "        findings.extent = Extent::of_mark(&mark);\n",
        "",
        [("crash", "durable::{subject}::recovery_to"), ("crash", "{subject}::every_short")],
    ),
    Bug(
        "damage is not refused",
        FLIP,
        SETTLE,
        "    refuse_damage::<F>(&found.findings, common.recovery, log)?;\n",
        "",
        [("crash", "torn::{subject}::"), ("crash", "{subject}::every_short")],
    ),
]

FIND_END_BUGS = [
    Bug(
        "interior damage is cut off like a torn tail",
        FLIP,
        FIND_END,
        "            next.is_some() || gap.is_some() || self.is_beyond_limit",
        "            gap.is_some() || self.is_beyond_limit",
        [("recovery", "without_a_mark"), ("log", "sidecar"), ("answers", "matrix")],
    ),
    Bug(
        "the end below the mark is accepted",
        LAST_FLIP,
        FIND_END,
        "        findings.verdict = Verdict::Corrupt;\n"
        "        findings.durable_end = Some(mark.end);\n",
        "        findings.durable_end = Some(mark.end);\n",
        [("log", "sidecar::a_mark_ahead")],
    ),
    Bug(
        "a mark counts whatever the log holds at its end",
        ADVICE,
        FIND_END,
        "        Ok(frame.sum() == mark.last_sum && scanner.position() == mark.end)\n",
        "        let _ = frame;\n        Ok(scanner.position() == mark.end)\n",
        [("log", "sidecar::a_log_with_borders_like"), ("log", "sidecar")],
    ),
    Bug(
        "a foreign mark is taken for the log's own",
        ADVICE,
        FIND_END,
        "    let same_start = !comparable || extent.first_sum == mark.first_sum;\n",
        "    let same_start = !comparable || extent.records > 0;\n",
        [("log", "sidecar::a_sidecar_of_another_log"), ("log", "sidecar")],
    ),
    Bug(
        "what follows a closed mark is judged as if it were open",
        KILL,
        FIND_END,
        "        let mut findings = match mark.closed {\n",
        "        let mut findings = match mark.closed && mark.end == u64::MAX {\n",
        [("answers", "findings::a_closed_mark"), ("log", "sidecar")],
    ),
    Bug(
        "a closed mark says that nothing after it was acknowledged",
        KILL,
        FIND_END,
        "        findings.unacknowledged_from = Some(mark.end).filter(|_| !mark.closed);\n"
        "        Ok(findings)\n",
        "        findings.unacknowledged_from = Some(mark.end);\n        Ok(findings)\n",
        [("answers", "findings::a_closed_mark"), ("answers", "findings drift")],
    ),
    Bug(
        "a record beyond the limit is torn",
        LENGTH,
        FIND_END,
        "            let beyond_limit = self.is_beyond_limit(&extent, stop.as_ref())?;\n",
        "            let beyond_limit = false;\n",
        [("log", "limits::a_log_with_longer_records"), ("wal_own", "a_record_beyond")],
    ),
    Bug(
        "a torn record that holds records is corrupt above the mark",
        NESTED,
        FIND_END,
        "            false => self.conclude_torn(extent, stop, from.end)?,\n",
        "            false => self.conclude_carefully(extent, stop, MarkUse::Used, from.end)?,\n",
        [("crash", "torn::{subject}::records_inside")],
    ),
    Bug(
        "impossible counts in a mark are counted with",
        ADVICE,
        FIND_END,
        "    let possible = mark.filter(is_possible::<F>);\n",
        "    let possible = mark.filter(|mark| is_possible::<F>(mark) || mark.end > 0);\n",
        [("regressions", "impossible_counts"), ("log", "properties::any_mark")],
    ),
]

RESYNC_BUGS = [
    Bug(
        "records inside a torn record surface above the mark",
        NESTED,
        RESYNC,
        "        true => None,\n        false => search.next(why)?,\n",
        "        true => search.next(why)?,\n        false => search.next(why)?,\n",
        [("crash", "torn::{subject}::records_inside_a_torn_record_never_surface_after")],
    ),
    Bug(
        "records inside a damaged one come before its own length",
        NESTED,
        RESYNC,
        "        if let Some(offset) = claimed.filter(|_| fits) {\n",
        "        if let Some(offset) = claimed.filter(|_| fits && rescue) {\n",
        [("answers", "edges::a_record_inside"), ("answers", "matrix::a_record_that_holds")],
    ),
    Bug(
        "a length that leads over a known border is believed",
        FLIP,
        RESYNC,
        "self.claimed_end(at)?.filter(|&claimed| claimed <= limit);",
        "self.claimed_end(at)?.filter(|&claimed| claimed <= limit || limit > 0);",
        [("answers", "findings blocks drift"), ("answers", "matrix")],
    ),
    Bug(
        "a chain of records that breaks counts as proof",
        NESTED,
        RESYNC,
        "            let broken = Chain { proved: false, end, ordinal: None };\n",
        "            let broken = Chain { proved: true, end, ordinal: None };\n",
        [("answers", "edges findings drift"), ("answers", "matrix::a_record_that_holds")],
    ),
    Bug(
        "a rescue takes nothing that is not proved",
        FLIP,
        RESYNC,
        "            if rescue || chain.proved {\n",
        "            let _ = rescue;\n            if chain.proved {\n",
        [("answers", "matrix"), ("answers", "")],
    ),
    Bug(
        "a rescue does not look inside a damaged record",
        FLIP,
        RESYNC,
        "        (true, Some(outer)) if outer.encloses =>",
        "        (true, Some(outer)) if outer.encloses && outer.offset == 0 =>",
        [("answers", "matrix::a_record_that_holds"), ("answers", "")],
    ),
    Bug(
        "reading does not go on at a known border",
        FLIP,
        RESYNC,
        "        Ok(self.border.map(at_border))\n",
        "        let _ = at_border;\n        Ok(None)\n",
        [("answers", "blocks segments"), ("answers", "")],
    ),
    Bug(
        "a record that begins at a border is not proved by it",
        NESTED,
        RESYNC,
        "                if end == border.offset {\n",
        "                if end == border.offset && records > 0 {\n",
        [("wal_regressions", "an_intact_record_at_a_border"), ("answers", "blocks segments")],
    ),
    Bug(
        "damage before the acknowledged end is made up for by what lies after it",
        NESTED,
        RESYNC,
        "        let until = acknowledged.map_or(reach, |from| from.min(reach));\n",
        "        let until = acknowledged.map_or(reach, |from| from.max(reach));\n",
        [("answers", "drift::records_in_a_torn"), ("answers", "")],
    ),
]

READ_BUGS = [
    Bug(
        "damage that is passed over is not noted",
        FLIP,
        CURSOR,
        "        self.damages.extend(found.damage);\n",
        "",
        [("log", "sidecar"), ("answers", "edges findings")],
    ),
    Bug(
        "damage after the last record is not raised at the end",
        LAST_FLIP,
        CURSOR,
        "            Some(damage) if self.on_corrupt == OnCorrupt::Raise"
        " => Err(self.corrupt(&damage)),\n",
        "",
        [("answers", "edges::a_lost_end"), ("answers", "findings segments")],
    ),
    Bug(
        "a byte inside a payload is a record's beginning",
        NESTED,
        READ,
        "        match at == offset {\n",
        "        match at >= offset {\n",
        [("wal_damage", "an_lsn_inside"), ("wal_regressions", "")],
    ),
    Bug(
        "a reader does not notice that the end was cut",
        REPLACED,
        REFRESH,
        "        if self.mode != Mode::Read || extent.records == 0 {\n",
        "        if self.mode != Mode::Read || extent.records < 1 << 40 {\n",
        [("wal_readers", ""), ("answers", "drift::a_reader_notices")],
    ),
    Bug(
        "a reader stays at the head that it saw first",
        REPLACED,
        REFRESH,
        "            Some(head) if head > known.start => head,\n",
        "            Some(u64::MAX) => u64::MAX,\n",
        [("wal_readers", "")],
    ),
    Bug(
        "a reader believes a foreign mark",
        ADVICE,
        REFRESH,
        "                frame.sum() == mark.last_sum && scanner.position() == mark.end\n",
        "                let _ = frame;\n                true\n",
        [("crash", "openers::{subject}::a_reader")],
    ),
    Bug(
        "a follower on the writer's handle waits on after a cut",
        REPLACED,
        FOLLOW,
        "        if cuts == self.cuts {\n",
        "        if cuts == self.cuts || shared.mode != Mode::Read {\n",
        [("wal_own", "a_follower_of_the_writers_handle")],
    ),
    Bug(
        "a follower takes records in the payload of a long one for damage",
        NESTED,
        FOLLOW,
        "damage.next_intact.is_some() && damage.next_proved",
        "damage.next_intact.is_some()",
        [("follow", "a_follower_waits_for_a_long_deed")],
    ),
    Bug(
        "damage in the middle is not told as lost",
        FLIP,
        VERIFY,
        "    let lost = durable_end.is_some_and(|end| prefix.end < end);\n",
        "    let lost = findings.mark == crate::sidecar::MarkUse::Lost;\n",
        [("crash", "torn::{subject}::damage_below")],
    ),
    Bug(
        "a check forgets the loss that a repair noted",
        REPAIR,
        VERIFY,
        "        loss,\n        damages,\n",
        "        loss: loss.filter(|loss| loss.offset == u64::MAX),\n        damages,\n",
        [("answers", "repair::a_loss_at")],
    ),
    Bug(
        "a salvage copies a batch again that it copied",
        FLIP,
        "src/log/salvage.rs",
        "            batch.clear();\n",
        "",
        [("log", "large::a_salvage")],
    ),
    Bug(
        "a repair cuts intact records unasked",
        REPAIR,
        REPAIRING,
        "    if report.cut_records > 0 && !repair.force {\n",
        "    if report.cut_records == u64::MAX && !repair.force {\n",
        [("answers", "repair::a_repair_that_would")],
    ),
    Bug(
        "a repair does not note what is missing",
        REPAIR,
        REPAIRING,
        "        loss.store(storage, &place.sidecar, common.file_mode)?;\n",
        "        let _ = loss;\n",
        [("answers", "repair::a_loss_at")],
    ),
    Bug(
        "a repair accepts a loss unasked",
        REPAIR,
        REPAIRING,
        "        if !repair.accept_loss {\n",
        "        if repair.dry_run {\n",
        [("answers", "repair::a_loss_at")],
    ),
    Bug(
        "a repair of a damaged header goes on",
        HEAD,
        REPAIRING,
        "        findings.damage.as_ref().filter(|damage| damage.offset < findings.extent.start)\n",
        "        findings.damage.as_ref().filter(|damage| damage.offset == u64::MAX)\n",
        [("regressions", "verify_calls"), ("limits", "a_damaged_header"), ("answers", "findings")],
    ),
]

LOG_BUGS = [
    *DURABLE_BUGS,
    *APPEND_BUGS,
    *OPEN_BUGS,
    *SETTLE_BUGS,
    *FIND_END_BUGS,
    *RESYNC_BUGS,
    *READ_BUGS,
]
