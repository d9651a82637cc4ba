"""The seeded bugs of transactions: staging, intent, commit, record."""

from __future__ import annotations

from bug import Bug
from rows import FLIP, FULL, KILL, OVERFLOW, POWER, WRITER

COMMIT = "src/transaction/mod.rs"
STAGING = "src/transaction/staging.rs"
RECORD = "src/transaction/record.rs"
OF_LOG = "src/log/transact.rs"
COPY = "src/log/staged.rs"
RECORDS = "src/transaction/records.rs"
OF_EVENTS = "src/nostr/transact.rs"
COLUMNS = "src/nostr/stage_arrow.rs"

# The words of the first ones are those of the promises: undo in abort, record before sync, repeat
# not recognised, an attempt's file committed twice.
TRANSACTION_BUGS = [
    Bug(
        "transaction: an abort removes what a commit needs that has begun",
        KILL,
        STAGING,
        "        if Intent::load(self)?.is_some_and(|intent| intent.transaction.job == job) {\n",
        '        if Intent::load(self)?.is_some_and(|intent| intent.transaction.job == *"") {\n',
        [("engine::transactions", "an_abort_after_a_commit_that_had_begun")],
    ),
    Bug(
        "transaction: noted before it is synced",
        POWER,
        OF_LOG,
        "        let (first, end) = appended;\n        self.sync_and_keep_to(end)?;\n",
        "        let (first, _) = appended;\n",
        [("engine::transactions", "crashes::a_crash_at_any_step")],
    ),
    Bug(
        "transaction: noted before it is appended",
        KILL,
        COMMIT,
        "    let parts = staging::in_order(parts, &transaction.job)?;\n",
        "    if let Some(id) = &transaction.id {\n        desk.note(id)?;\n    }\n"
        "    let parts = staging::in_order(parts, &transaction.job)?;\n",
        [("engine::transactions", "crashes::a_crash_at_any_step")],
    ),
    Bug(
        "transaction: a repeat is not recognised",
        KILL,
        RECORD,
        "        Ok(*version <= last.version)\n",
        "        Ok(*version < last.version)\n",
        [("engine::transactions", "a_repeat_appends_nothing")],
    ),
    Bug(
        "transaction: both attempts of a task are committed",
        KILL,
        STAGING,
        "            && (before.sequence == sequence || before.attempt != attempt)\n",
        "            && before.sequence == sequence\n            && before.attempt == attempt\n",
        [("engine::transactions", "both_attempts_of_a_task")],
    ),
    Bug(
        "transaction: an abort does not wait for a commit beside it",
        KILL,
        STAGING,
        "        check_job(job)?;\n        let _lock = self.lock()?;\n",
        "        check_job(job)?;\n",
        [("engine::transactions", "an_abort_beside_a_commit")],
    ),
    Bug(
        "transaction: the intent goes before the transaction is noted",
        KILL,
        COMMIT,
        "        if let Some(id) = &transaction.id {\n            self.note(id)?;\n        }\n"
        "        Intent::clear(self)?;\n",
        "        Intent::clear(self)?;\n"
        "        if let Some(id) = &transaction.id {\n            self.note(id)?;\n        }\n",
        [("engine::transactions", "crashes::a_crash_at_any_step")],
    ),
    Bug(
        "transaction: staged files go before the intent",
        KILL,
        COMMIT,
        "        Intent::clear(self)?;\n        // The records are there",
        "        self.remove_files(&transaction.job)?;\n        Intent::clear(self)?;\n"
        "        // The records are there",
        [("engine::transactions", "crashes::a_crash_at_any_step")],
    ),
    Bug(
        "transaction: the next opening does not finish it",
        KILL,
        "src/log/open.rs",
        "                log.finish_transaction()?;\n",
        "",
        [("engine::transactions", "crashes::")],
    ),
    Bug(
        "transaction: a commit that is finished appends all of it again",
        POWER,
        OF_LOG,
        "        let (bytes, there) = self.common_prefix(&state, &place, job, &intent.parts)?;\n",
        "        let (bytes, there) = (0, 0);\n",
        [("engine::transactions", "crashes::")],
    ),
    Bug(
        "transaction: the place stays where a power cut took the records before it",
        POWER,
        OF_LOG,
        "            place = Place::of(&state.extent, state.file_id);\n"
        "            store(place.encode())?;\n",
        "            place = Place::of(&state.extent, state.file_id);\n",
        [("engine::transactions", "a_crash_while_a_commit_is_finished")],
    ),
    Bug(
        "transaction: finished in another log",
        KILL,
        OF_LOG,
        "        if !self.is_of(&state, &place, job, &intent.parts)? {\n",
        "        if false && !self.is_of(&state, &place, job, &intent.parts)? {\n",
        [("engine::transactions", "in_another_log")],
    ),
    Bug(
        "transaction: finished in an empty log that took the place of its own",
        KILL,
        OF_LOG,
        "            return Ok(place.file.is_still(here.file));\n",
        "            return Ok(true);\n",
        [("engine::transactions", "in_another_log")],
    ),
    Bug(
        "transaction: a torn copy is dropped though what it copies is not staged any more",
        POWER,
        OF_LOG,
        "    if desk.check_parts(&intent.transaction.job, &intent.parts).is_err() {\n",
        "    if false {\n",
        [("engine::transactions", "not_staged_any_more_is_saved")],
    ),
    Bug(
        "transaction: a tail that no commit copied is not saved",
        POWER,
        OF_LOG,
        "        Ok(is_here && written <= extent.end.saturating_add(copied))\n",
        "        let _ = (written, copied);\n        Ok(is_here)\n",
        [("engine::transactions", "what_no_commit_copied_is_saved")],
    ),
    Bug(
        "transaction: a tail is not saved, whichever log had the commit",
        POWER,
        OF_LOG,
        "        Ok(is_here && written <= extent.end.saturating_add(copied))\n",
        "        let _ = is_here;\n        Ok(written <= extent.end.saturating_add(copied))\n",
        [("engine::transactions", "what_no_commit_copied_is_saved")],
    ),
    Bug(
        "transaction: parts are appended in the order of their tasks' ends",
        KILL,
        STAGING,
        "    parts.sort_by_key(|part| (part.partition, part.sequence));\n",
        "    parts.sort_by_key(|part| (part.sequence, part.partition / 9));\n",
        [("engine::transactions", "in_the_order_of_their_partitions")],
    ),
    Bug(
        "transaction: a batch after a gap is taken",
        KILL,
        RECORD,
        "        if query.is_some() && *version > last.version.saturating_add(1) {\n",
        "        if query.is_some() && *version > last.version.saturating_add(9) {\n",
        [("engine::transactions", "a_batch_that_is_not_the_next")],
    ),
    Bug(
        "transaction: a batch before the last one is taken for a repeat",
        KILL,
        RECORD,
        "        if query.is_some() && *version < last.version {\n",
        "        if false && query.is_some() && *version < last.version {\n",
        [("engine::transactions", "a_batch_before_the_last_one_is_refused")],
    ),
    Bug(
        "transaction: a batch above 0 of an unknown application is taken",
        KILL,
        RECORD,
        "                Some(query) if *version > 0 => refuse(\n",
        "                Some(query) if *version > 9 => refuse(\n",
        [("engine::transactions", "a_batch_that_is_not_the_next")],
    ),
    Bug(
        "transaction: another query of the application is taken",
        KILL,
        RECORD,
        "        if last.query != *query {\n",
        "        if false && last.query != *query {\n",
        [("engine::transactions", "another_query_of_the_same")],
    ),
    Bug(
        "transaction: a number that a record would not get is taken",
        KILL,
        COMMIT,
        "part.first.filter(|&first| first != ordinal)",
        "part.first.filter(|&first| first < ordinal)",
        [("engine::transactions", "a_number_that_a_record_would_not_get")],
    ),
    Bug(
        "transaction: a staged file's checksum is not compared",
        KILL,
        RECORDS,
        "            Scanned::End if self.sum == self.part.sum"
        " && self.records == self.part.records => {\n",
        "            Scanned::End if self.records == self.part.records => {\n",
        [("engine::transactions", "a_staged_file_that_changed")],
    ),
    Bug(
        "transaction: the first head is written first",
        KILL,
        COPY,
        "            (self.head, rest) = (head.to_vec(), body);\n"
        "            self.at += head.len() as u64;\n",
        "            (self.head, rest) = (head.to_vec(), record);\n            let _ = body;\n",
        [("engine::transactions", "crashes::a_crash_at_any_step")],
    ),
    Bug(
        "transaction: what a damaged part left is not taken back",
        KILL,
        COPY,
        "            while let Some((record, frame)) ="
        " staged.next().map_err(|e| self.take_back(state, e))? {\n",
        "            while let Some((record, frame)) = staged.next()? {\n",
        [("engine::transactions", "a_staged_file_that_changed"), ("texts::error_texts", "")],
    ),
    Bug(
        "transaction: a staged file is not synced",
        POWER,
        STAGING,
        "            .sync_data()\n            .and_then(|()| named())\n",
        "            .len()\n            .and_then(|_| named())\n",
        [("engine::transactions", "crashes::")],
    ),
    Bug(
        "transaction of events: the next opening does not finish it",
        KILL,
        "src/nostr/opening.rs",
        "Damage::Refused => store.finish_transaction().map(|()| store),",
        "Damage::Refused => Ok(store),",
        [("engine::transactions", "nostr::crashes::")],
    ),
    Bug(
        "transaction of events: noted before it is synced",
        POWER,
        OF_EVENTS,
        "appended.and_then(|()| self.commit())",
        "appended",
        [("engine::transactions", "nostr::crashes::a_crash_at_any_step")],
    ),
    Bug(
        "transaction of events: appended before the intent is stored",
        KILL,
        OF_EVENTS,
        "        store(ANYWHERE.into())?;\n        self.append_staged(job, parts)\n",
        "        let done = self.append_staged(job, parts)?;\n"
        "        store(ANYWHERE.into())?;\n        Ok(done)\n",
        [("engine::transactions", "nostr::crashes::a_crash_at_any_step")],
    ),
    Bug(
        "transaction of events: parts are not read before the intent is stored",
        KILL,
        OF_EVENTS,
        "        self.check_staged(job, parts).map_err(unchanged)?;\n",
        "        let _ = unchanged;\n",
        [("engine::transactions", "nostr::what_cannot_be_committed_whole")],
    ),
    Bug(
        "transaction of events: the intent goes after a piece that readers saw",
        FULL,
        OF_EVENTS,
        "            _ => error.with_durable(Durable::Unknown),\n",
        "            _ => error,\n",
        [("engine::transactions", "nostr::crashes::a_failure_after_the_first_piece")],
    ),
    Bug(
        "transaction of events: two threads commit at once",
        WRITER,
        OF_EVENTS,
        "        let _committing = locked(&self.shared.committing);\n        // It may",
        "        // It may",
        [("engine::transactions", "nostr::beside::threads_commit")],
    ),
    Bug(
        "transaction of events: a close does not wait for a commit",
        WRITER,
        "src/nostr/store.rs",
        "        let _committing = locked(&self.committing);\n",
        "",
        [("engine::transactions", "nostr::beside::a_close_waits")],
    ),
    Bug(
        "transaction of events: pieces grow without a limit",
        OVERFLOW,
        OF_EVENTS,
        "                    piece.clear();\n",
        "",
        [("lib", "nostr::transact::tests::events_are_given_in_pieces")],
    ),
    Bug(
        "transaction of events: ids are not checked when events are staged",
        FLIP,
        "src/nostr/records.rs",
        "        event.check_id(scratch).map_err(refused)?;\n",
        "        let _ = scratch;\n",
        [("engine::transactions", "nostr::an_event_whose_id_is_not_its_hash")],
    ),
    Bug(
        "transaction: a staged file that was given up stays",
        KILL,
        RECORDS,
        "            let _ = self.file.discard(desk);\n",
        "            let _ = desk;\n",
        [("engine::transactions", "nostr::an_event_whose_id_is_not_its_hash")],
    ),
    Bug(
        "transaction of events: a null is taken for what lies under it",
        FLIP,
        COLUMNS,
        ".filter(|_| found.null_count() > 0)",
        ".filter(|_| false)",
        [("lib", "nostr::stage_arrow::tests::")],
    ),
    Bug(
        "transaction of events: parts of seconds are cut off",
        FLIP,
        COLUMNS,
        "                if micros % SECOND != 0 {\n",
        "                if false && micros % SECOND != 0 {\n",
        [("lib", "nostr::stage_arrow::tests::a_batch_of_another_shape")],
    ),
]
