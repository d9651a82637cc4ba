"""The seeded bugs of streams and writes of Spark, in the Python layer.

Those of the commit itself are of the core: transaction_bugs.py.
"""

from __future__ import annotations

from bug import Bug
from rows import NUMBERS, POWER, REPLACED, STAGED, STREAM, WRITER

JOBS = "python/deedbook/_jobs.py"
STREAMS = "python/deedbook/spark/_stream.py"
REFUSED = "python/deedbook/spark/_refused.py"
STEPS = "python/deedbook/spark/_steps.py"
WRITERS = "python/deedbook/spark/_writer.py"
STAGING = "python/deedbook/spark/_staging.py"
STORES = "python/deedbook/spark/_nostr.py"
PLAN = "python/deedbook/spark/_plan.py"
ASIDE = "python/deedbook/spark/jobs/_aside.py"
CHECKPOINT = "python/deedbook/spark/jobs/_stream.py"
INGEST = "python/deedbook/spark/jobs/_ingest.py"

SPARK_BUGS = [
    Bug(
        "vacuum: staging of a live job is removed",
        STAGED,
        JOBS,
        "        elif not is_alive:\n",
        "        else:\n",
        [("python", "test_transactions.py -k only_what_dead_jobs_staged")],
    ),
    Bug(
        "vacuum: a new process of an owner's id is taken for the owner",
        STAGED,
        JOBS,
        "        return _stat(int(parts[2]))[2] == parts[3]\n",
        "        return bool(_stat(int(parts[2]))[2])\n",
        [("python", "test_transactions.py -k only_what_dead_jobs_staged")],
    ),
    Bug(
        "vacuum: the batch after the last one committed is taken for dead",
        STAGED,
        JOBS,
        'int(batch["batch"]) <= done',
        'int(batch["batch"]) <= done + 1',
        [("python", "test_transactions.py -k batches_before_the_last_one")],
    ),
    Bug(
        "stream: reads beyond the durable end",
        POWER,
        STEPS,
        '        durable = options.read_until == "durable"\n',
        "        durable = False\n",
        [("python", "test_spark_stream.py -k only_what_is_durable")],
    ),
    Bug(
        "stream: another log of the same length is taken for the one before",
        REPLACED,
        STEPS,
        '"ordinal": "number", "first": "first", "before": "before"}',
        '"ordinal": "number"}',
        [("python", "test_spark_stream.py -k gone_or_another_one")],
    ),
    Bug(
        "stream: lost records are passed over",
        REPLACED,
        STREAMS,
        "        if self._options.fail_on_data_loss:\n",
        "        if not self._options.fail_on_data_loss:\n",
        [("python", "test_spark_stream.py -k gone_or_another_one")],
    ),
    Bug(
        "stream: a log that appears later begins at startingPosition",
        STREAM,
        STREAMS,
        'place = log.begin(file, "earliest", options)',
        "place = log.begin(file, options.starting_position, options)",
        [("python", "test_spark_stream.py -k is_read_from_its_first_record")],
    ),
    Bug(
        "stream: of two limits only that of rows holds",
        STREAM,
        STREAMS,
        "            return limit.max_rows, self._options.max_bytes_per_trigger\n",
        "            return limit.max_rows, None\n",
        [("python", "test_spark_stream.py -k limits_of_rows_and_bytes")],
    ),
    Bug(
        "stream: what a query has not read is not kept for it",
        STREAM,
        STREAMS,
        "        self._keep(places)\n",
        "",
        [("python", "test_spark_stream.py -k a_consumer_keeps")],
    ),
    Bug(
        "stream: a log that opens again is read from its end",
        STREAM,
        REFUSED,
        "    return {_NEVER: 1, **why} if place is None else {**place, **why}\n",
        "    return {_NEVER: 1, **why}\n",
        [("python", "test_spark_stream_refused.py -k reported_once_and_read")],
    ),
    Bug(
        "stream: a log that does not open is passed over without a word",
        STREAM,
        STREAMS,
        "                if damage is not None:\n",
        "                if False and damage is not None:\n",
        [("python", "test_spark_stream_refused.py -k reported_once_and_read")],
    ),
    Bug(
        "stream: the goal of an empty store is taken for none",
        STREAM,
        REFUSED,
        "    if place is None or _NEVER in place:\n",
        "    if not place or _NEVER in place:\n",
        [("python", "test_spark_stream_refused.py -k empty_store_ended")],
    ),
    Bug(
        "stream: a gap behind an epoch that did not open is passed over",
        STREAM,
        STREAMS,
        "any(known(places.get(path)) is None for path in found)",
        "any(path not in places for path in found)",
        [("python", "test_spark_stream_refused.py -k a_gap_behind")],
    ),
    Bug(
        "stream: a log that does not open hides lost records",
        REPLACED,
        STREAMS,
        "        if why is not None:\n            self._lost(path, place, resumed, why)\n",
        "",
        [("python", "test_spark_stream_refused.py -k another_log_is_lost")],
    ),
    Bug(
        "stream: an epoch overtakes the rest of the one before",
        STREAM,
        STREAMS,
        "            if log.in_sequence and step.more:\n",
        "            if log.in_sequence and step.more and step.rows > 0:\n",
        [("python", "test_spark_stream_order.py -k comes_before_the_next_epoch")],
    ),
    Bug(
        "stream: an epoch that was dropped unread is passed over",
        STREAM,
        STREAMS,
        "            if path not in places and not is_read:\n",
        "            if path not in places and not log.in_sequence:\n",
        [("python", "test_spark_stream_order.py -k dropped_before_it_was_read")],
    ),
    Bug(
        "stream: a store that lost what was read is gone on with",
        REPLACED,
        STORES,
        "(segment in segments and end < byte)",
        "(segment in segments and end < 0)",
        [("python", "test_spark_nostr.py -k lost_what_was_read")],
    ),
    Bug(
        "read: a gap between epochs is passed over",
        STREAM,
        PLAN,
        "        log.check(planned, options)\n",
        "",
        [("python", "test_spark_plan.py -k a_gap_or_an_overlap")],
    ),
    Bug(
        "write: the numbers of the rows are trusted",
        NUMBERS,
        STAGING,
        "context.taskAttemptId(), first) as file:\n",
        "context.taskAttemptId(), None) as file:\n",
        [("python", "test_spark_write.py -k event_numbers_are_checked")],
    ),
    Bug(
        "write: a gap within a partition's numbers is passed over",
        NUMBERS,
        STAGING,
        "        if wrong >= 0:\n",
        "        if wrong > len(numbers):\n",
        [("python", "test_spark_write.py -k event_numbers_are_checked")],
    ),
    Bug(
        "write: a write that is repeated is another one",
        NUMBERS,
        WRITERS,
        "given, options.txn_app_id, options.txn_version, options.txn_query\n",
        "given, None, None, None\n",
        [("python", "test_spark_write.py -k a_repeated_write")],
    ),
    Bug(
        "write: a batch that Spark repeats is another one",
        NUMBERS,
        WRITERS,
        "        self._target.commit(job, given, app, batchId, query)\n",
        "        self._target.commit(job, given, None, None, None)\n",
        [("python", "test_spark_write.py -k a_stream_writes_each_batch_once")],
    ),
    Bug(
        "write: the query of a batch is not noted",
        NUMBERS,
        WRITERS,
        "        self._target.commit(job, given, app, batchId, query)\n",
        "        self._target.commit(job, given, app, batchId, None)\n",
        [("python", "test_spark_write.py -k a_new_checkpoint_under_the_same_application")],
    ),
    Bug(
        "write: a batch is in the log before its plan is synced",
        POWER,
        WRITERS,
        "            sync_checkpoint(self._checkpoint, batchId)\n",
        "            pass\n",
        [("python", "test_spark_checkpoint.py -k before_it_is_in_the_log")],
    ),
    Bug(
        "write: a commit waits for no other writer",
        WRITER,
        WRITERS,
        "                if waited >= self.options.lock_timeout:\n",
        "                if waited >= 0:\n",
        [("python", "test_spark_write.py -k a_commit_waits_for_another_writer")],
    ),
    Bug(
        "job: the bad lines of files that are gone are removed",
        STAGED,
        ASIDE,
        "line not in again for line in _lines_in(file)",
        "False for _ in _lines_in(file)",
        [("python", "test_spark_aside.py -k files_that_are_gone")],
    ),
    Bug(
        "job: the bad lines of another job are removed",
        STAGED,
        ASIDE,
        "            if (opened.schema_arrow.metadata or {}).get(_OWNER) == self._owner:\n",
        "            if _OWNER in (opened.schema_arrow.metadata or {}):\n",
        [("python", "test_spark_aside.py -k lines_of_other_jobs")],
    ),
    Bug(
        "job: a batch of another log is taken for a repeat",
        NUMBERS,
        INGEST,
        "(last.query, last.version) == (query, batch)",
        "last.version == batch",
        [("python", "test_spark_ingest.py -k a_batch_of_another_log")],
    ),
    Bug(
        "job: an older copy of a checkpoint is gone on with",
        NUMBERS,
        CHECKPOINT,
        "        if committed is not None and begun < committed:\n",
        "        if committed is not None and begun < 0:\n",
        [("python", "test_spark_checkpoint.py -k a_checkpoint_and_a_target")],
    ),
    Bug(
        "job: a target that lost batches is gone on with",
        NUMBERS,
        CHECKPOINT,
        "        if ended is not None and first <= ended:\n",
        "        if ended is not None and first < 0:\n",
        [("python", "test_spark_checkpoint.py -k a_checkpoint_and_a_target")],
    ),
    Bug(
        "job: a target without its checkpoint is written a second time",
        NUMBERS,
        CHECKPOINT,
        "        if committed is not None and self.query is None:\n",
        "        if committed is not None and committed < 0:\n",
        [("python", "test_spark_checkpoint.py -k checkpoint_without_a_batch")],
    ),
]
