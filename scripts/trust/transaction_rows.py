"""The promises of transactions, by which Spark's tasks write and one commit appends."""

from __future__ import annotations

from rows import Row

TRANSACTION_ROWS = [
    Row(
        "crash at any step of a commit",
        "finished by the next opening for writing, or never begun; no event twice",
        (
            "transactions::a_crash_at_any_step_leaves_the_transaction_to_be_finished_or_repeated",
            "transactions::a_crash_while_a_commit_is_finished_changes_nothing",
            "py:test_spark_write_killed.py",
        ),
    ),
    Row(
        "a call that fails during a commit",
        "E, nothing appended or what the next opening finishes",
        (
            "transactions::a_failing_call_leaves_nothing_or_what_can_be_finished",
            "transactions::a_commit_that_cannot_be_finished_is_given_up_on_request_only",
        ),
    ),
    Row(
        "abort after a commit had begun, or beside one",
        "nothing is removed that the commit names",
        (
            "transactions::an_abort_after_a_commit_that_had_begun_removes_nothing",
            "transactions::an_abort_beside_a_commit_takes_no_file_that_its_intent_names",
        ),
    ),
    Row(
        "a batch committed again, by another query, or out of turn",
        "a repeat appends nothing; the others: E",
        (
            "transactions::a_repeat_appends_nothing",
            "transactions::another_query_of_the_same_application_is_refused",
            "transactions::a_batch_that_is_not_the_next_is_refused",
            "transactions::a_batch_before_the_last_one_is_refused",
        ),
    ),
    Row(
        "two attempts of one task, a staged file that changed or is gone",
        "E, the log unchanged",
        (
            "transactions::both_attempts_of_a_task_are_refused",
            "transactions::a_staged_file_that_changed_leaves_the_log_as_it_was",
            "transactions::a_missing_staged_file_is_refused_before_anything_changes",
        ),
    ),
    Row(
        "files of a ledger: crash at any step, names that another program took",
        "whole files, each once; nothing replaced",
        (
            "transactions::a_store_that_goes_on_after_a_commit_died_takes_none_of_its_indexes",
            "transactions::a_file_that_another_program_created_is_not_replaced",
            "transactions::what_was_sent_before_a_commit_is_finished_is_not_sent_again",
        ),
    ),
    Row(
        "events of a store: ids that are no hash, a commit that died",
        "E; each event once, by its id",
        (
            "transactions::an_event_whose_id_is_not_its_hash_is_not_staged",
            "transactions::an_intent_that_is_found_is_finished_once_the_index_can_be_asked",
        ),
    ),
]
