"""The seeded bugs of writing and opening: every format has them, so every format's tests are run.

`make models` finds one more, a durable end that is not lowered with a cut.
"""

from __future__ import annotations

from bug import Bug
from rows import (
    ADVICE,
    AGAIN,
    FLIP,
    FORK,
    FSYNC,
    FULL,
    KILL,
    LAST_FLIP,
    LENGTH,
    OVERFLOW,
    POWER,
    READER,
    REPAIR,
    REPLACED,
    TRUNCATION,
    WRITER,
)

APPEND = "src/log/append.rs"
DURABLE = "src/log/durable.rs"
OPEN = "src/log/open.rs"
SETTLE = "src/log/settle.rs"

SYNCED = "            self.sync_file(&extent)?;\n            // Durable now"
LOCK = "        let mut lock = WriterLock::acquire(storage, &place.sidecar, log, timeout)?;\n"
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
        [("engine::crash", "durable::{subject}::a_mark_is_stored_only_after")],
    ),
    Bug(
        "the mark is written before the sync",
        POWER,
        DURABLE,
        SYNCED,
        f"            self.store_mark(extent.mark(file_id), false)?;\n{SYNCED}",
        [("engine::crash", "durable::{subject}::a_mark_is_stored_only_after")],
    ),
    Bug(
        "a sync acknowledges how far the log reaches after the fsync",
        POWER,
        DURABLE,
        SYNCED,
        SYNCED.replace("?;\n", "?;\n            let extent = self.state().extent;\n"),
        [("engine::crash", "durable::{subject}::what_is_appended_during_a_sync")],
    ),
    Bug(
        "closing does not wait for a sync under way",
        POWER,
        DURABLE,
        "            result = self.commits.exclusive(|| self.cut_and_sync());",
        "            result = self.commits.check().and_then(|()| self.cut_and_sync().map(drop));",
        [("engine::closing", "the_mark_of_closing_is_the_last")],
    ),
    Bug(
        "closing does not sync",
        POWER,
        DURABLE,
        "        self.sync_file(&extent)?;\n        self.durable_records",
        "        self.durable_records",
        [("engine::crash", "durable::{subject}::a_mark_is_stored_only_after")],
    ),
    Bug(
        "a leader does not ask whether another thread's sync failed",
        FSYNC,
        DURABLE,
        "        self.commits.check_rollback()?;\n",
        "",
        [("engine::faults", "poison::{subject}::a_leader_waits")],
    ),
    Bug(
        "a failed background sync is swallowed",
        FSYNC,
        DURABLE,
        "            && let Err(error) = shared.sync_to(end)\n",
        "            && shared.file.sync_data().is_ok()\n"
        "            && let Err(error) = shared.sync_to(end)\n",
        [("engine::faults", "background::{subject}::")],
    ),
    Bug(
        "a replaced log is synced and acknowledged",
        REPLACED,
        DURABLE,
        "        match self.file.is_unlinked()? {",
        "        match false {",
        [("engine::log", "live::a_file_cut_removed")],
    ),
    Bug(
        "a poisoned log closes while a record is being written",
        FSYNC,
        "src/log/durable.rs",
        "            let state = self.state();\n"
        "            self.closed.store(true, Ordering::Release);\n"
        "            drop(state);\n",
        "",
        [("engine::closing", "closing_a_poisoned_log_waits")],
    ),
    Bug(
        "closing a log with durability none leaves an open mark",
        FLIP,
        "src/log/durable.rs",
        "        if untouched {\n",
        "        if untouched || self.common.durability == Durability::None {\n",
        [("engine::log", "marks::a_log_closed_with_durability_none")],
    ),
    Bug(
        "closing takes a mark that could not be opened for a log without appends",
        FULL,
        "src/log/durable.rs",
        "            (state.extent, state.file_id, !state.mark_is_open && is_synced)\n",
        "            (state.extent, state.file_id, !state.mark_is_open)\n",
        [("engine::closing", "closing_syncs_what_was_appended")],
    ),
]

APPEND_BUGS = [
    Bug(
        "a failed write is not rolled back",
        FULL,
        APPEND,
        ROLLED_BACK,
        "            state.file_end = state.extent.end;\n            Ok(())\n",
        [("engine::faults", "rollback::{subject}::an_append_that_cannot")],
    ),
    Bug(
        "a rolled back append is not synced away",
        FULL,
        APPEND,
        ROLLED_BACK,
        ROLLED_BACK.replace("            self.file.sync_data()?;\n", ""),
        [("engine::faults", "rollback::{subject}::an_append_that_cannot")],
    ),
    Bug(
        "a rollback fills up with zeros what another process cut",
        REPLACED,
        APPEND,
        "            self.check_not_truncated(state)?;\n            self.file.set_len",
        "            self.file.set_len",
        [("engine::faults", "rollback::{subject}::a_rollback_does_not_fill_up")],
    ),
    Bug(
        "a poisoned handle still takes appends",
        FSYNC,
        APPEND,
        "        shared.check_poisoned()?;\n",
        "",
        [("engine::faults", "poison::{subject}::after_a_failed_sync")],
    ),
    Bug(
        "the first checksum of a log that begins with a batch is forgotten",
        LAST_FLIP,
        APPEND,
        "            extent.first_sum = batch.first_sum;\n",
        "            extent.first_sum = 0;\n",
        [("engine::crash", "torn::{subject}::a_loss_below")],
    ),
    Bug(
        "a batch is written in one piece, its first head with the rest",
        READER,
        APPEND,
        "        if batch.records == 1 {\n",
        "        if batch.records >= 1 {\n",
        [("engine::answers", "findings::a_reader_never_gives")],
    ),
    Bug(
        "the first head of a batch is written first",
        READER,
        APPEND,
        "            self.write(state, part(bytes, head..), offset + head as u64)?;\n"
        "            self.write(state, part(bytes, ..head), offset)?;\n",
        "            self.write(state, part(bytes, ..head), offset)?;\n"
        "            self.write(state, part(bytes, head..), offset + head as u64)?;\n",
        [("engine::answers", "findings::a_reader_never_gives")],
    ),
    Bug(
        "the mark stays closed while a writer appends",
        KILL,
        APPEND,
        "        if !state.mark_is_open {\n            self.open_mark(state);\n        }\n",
        "",
        [("engine::answers", "drift::a_writer_that_goes_on")],
    ),
    Bug(
        "small batches close no block of the index",
        ADVICE,
        APPEND,
        "        self.close_block(state, ordinal + batch.records, state.extent.end);\n",
        "",
        [("book::regressions", "a_log_of_small_batches")],
    ),
    Bug(
        "event numbers overflow",
        OVERFLOW,
        APPEND,
        "        let fits = next.filter(|next| next.checked_add(count).is_some());",
        "        let fits = next.filter(|next| next.wrapping_add(count) < u64::MAX);",
        [("book::limits", "event_numbers_end")],
    ),
    Bug(
        "a batch for a limit above the log's is taken",
        LENGTH,
        APPEND,
        "        self.appending.check_len(batch.payload_len_max)"
        ".map_err(|e| e.at(&self.place.log))?;\n",
        "",
        [("engine::log", "limits::a_batch_with_a_higher_limit")],
    ),
]

OPEN_BUGS = [
    Bug(
        "opening looks before it has the lock",
        WRITER,
        OPEN,
        LOCK,
        f"        let early = {LOOK}.ok();\n{LOCK}",
        [("engine::crash", "openers::{subject}::an_opening")],
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
        "src/log/space.rs",
        "if self.single { &self.log }",
        "if self.single { &self.sidecar }",
        [("engine::log", "places::the_sidecar_removed")],
    ),
    Bug(
        "a log in a directory is locked by its sidecar alone",
        WRITER,
        "src/log/space.rs",
        "{ &self.log } else { &self.dir }\n",
        "{ &self.log } else { &self.sidecar }\n",
        [("engine::log", "places::the_sidecar_removed")],
    ),
    Bug(
        "a directory may hold logs of two formats",
        WRITER,
        OPEN,
        "                refuse_other_format(storage, &place.dir, F::NAME)?\n",
        "",
        [("wal::places", "a_directory_holds")],
    ),
    Bug(
        "a saved tail is opened for writing",
        REPAIR,
        "src/log/space.rs",
        "        if !self.is_tail {\n",
        "        if true {\n",
        [("engine::answers", "repair::a_saved_tail")],
    ),
    Bug(
        "a closed mark is taken for open",
        KILL,
        OPEN,
        "            mark_is_open: !mark.is_some_and(|mark| mark.closed),\n",
        "            mark_is_open: true,\n",
        [("engine::answers", "drift::a_writer_that_goes_on")],
    ),
    Bug(
        "a forked child may write",
        FORK,
        "src/log/mod.rs",
        "        self.fork_generation != fork_generation()\n",
        "        self.fork_generation == u64::MAX && fork_generation() == 0\n",
        [("engine::log", "live::a_forked_child")],
    ),
    # Left out, for it changes nothing that can be seen: that recovery does not cut the index. The
    # mark vouches for no entry after its end, and a lowered one for none at all.
]

SETTLE_BUGS = [
    Bug(
        "names of a killed creator are not synced",
        AGAIN,
        SETTLE,
        "    if !was_closed {\n",
        "    if was_closed {\n",
        [("engine::crash", "durable::{subject}::names_left_by")],
    ),
    Bug(
        "what opening found is acknowledged without a sync",
        KILL,
        SETTLE,
        "    if cut || unmarked || !found.format.is_sealed(&extent) {\n",
        "    if cut || !found.format.is_sealed(&extent) {\n",
        [("engine::crash", "durable::{subject}::a_mark_is_stored_only_after")],
    ),
    Bug(
        "the tail left by a failed sync is not written again",
        FSYNC,
        SETTLE,
        "    if found.mark.is_some() && from < extent.end {\n",
        "    if found.mark.is_some() && from < extent.start {\n",
        [("engine::faults", "poison::{subject}::what_a_failed_sync_left")],
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
        [("engine::crash", "mend::{subject}::")],
    ),
    Bug(
        "the tail is not saved before it is cut",
        FLIP,
        SETTLE,
        "        report.saved_to = save_tail(storage, file, base, common.file_mode, end)?;\n",
        "        let _ = (save_tail, file, base, end);\n",
        [("engine::answers", "matrix::a_log_cut_at_every_byte")],
    ),
    Bug(
        "the saved tail is not synced before the cut",
        REPAIR,
        "src/mend.rs",
        '    copy.sync_data().map_err(|e| fail("save the tail", &path, e))?;\n',
        "",
        [("engine::crash", "mend::{subject}::")],
    ),
    Bug(
        "a cut whose sync failed is not made again",
        FSYNC,
        SETTLE,
        "    if cut || !was_closed {\n",
        "    if cut {\n",
        [("engine::faults", "poison::{subject}::a_cut_whose_sync_failed")],
    ),
    Bug(
        "recovery to the acknowledged keeps the rest",
        KILL,
        SETTLE,
        "        findings.extent = Extent::of_mark(&mark);\n",
        "",
        [("engine::crash", "durable::{subject}::recovery_to")],
    ),
    Bug(
        "a copy that is older than its mark cries loss",
        FLIP,
        SETTLE,
        "    let advice = match another && damage.next_intact.is_none() {\n",
        "    let advice = match another && false {\n",
        [("engine::answers", "edges::a_copy_that_is_older")],
    ),
    Bug(
        "damage is not refused",
        FLIP,
        SETTLE,
        "    refuse_damage(found, common.recovery, log)?;\n",
        "",
        [("engine::crash", "torn::{subject}::a_loss_below")],
    ),
]

LOG_BUGS = [*DURABLE_BUGS, *APPEND_BUGS, *OPEN_BUGS, *SETTLE_BUGS]
