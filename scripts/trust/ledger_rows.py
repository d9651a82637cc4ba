"""The promises of the ledger, as ``rows.py`` has those of Book.

A ledger is never opened for writing as a log is: where those refuse (**R**), it sends what is
intact and keeps the damaged file. Power cuts take what the durability option does not cover; the
default covers nothing.
"""

from __future__ import annotations

from rows import Row

CRASHES = ("ledger::every_short_history_survives_every_crash",)
FAILING = ("ledger::whatever_call_fails_and_however_nothing_acknowledged_is_lost",)

LEDGER_ROWS = [
    Row(
        "kill -9 of writers and senders at any instruction",
        "K; an event is sent once more at most for each sender killed",
        (
            "ledger::writers_killed_at_any_moment_lose_nothing_acknowledged",
            "ledger::senders_killed_at_any_moment_send_everything_at_least_once",
            "power:strace",
        ),
    ),
    Row(
        "power loss at any call of one or two stores",
        "K as far as `durability` says; order and indexes kept, nothing removed comes back",
        (
            *CRASHES,
            "ledger::an_interval_makes_durable_without_another_call_and_survives_crashes",
            "fuzz_corpus::histories_of_two_stores_with_crashes_lose_no_event",
            "power:cuts",
        ),
        "with `durability` none, what was removed may come back",
    ),
    Row(
        "names left unsynced by a store that died",
        "made durable by the next",
        (
            "ledger::names_that_a_store_left_unsynced_are_synced_by_the_next",
            "ledger::names_that_hold_the_counter_are_synced_as_well",
        ),
    ),
    Row(
        "cut at every byte, every bit flipped, sectors lost or repeated",
        "intact events are sent, the damaged file is kept",
        (
            "ledger::a_file_cut_at_every_byte_sends_the_records_before_the_cut",
            "ledger::every_single_bit_flipped_costs_one_record",
            "ledger::sectors_that_are_lost_or_repeated_never_make_a_record",
            "ledger::what_went_to_the_quarantine_can_be_salvaged",
        ),
    ),
    Row(
        "lengths that lie; whole records inside a torn one",
        "damage; the inner ones are not sent",
        (
            "ledger::lengths_that_lie_are_damage",
            "ledger::records_inside_a_torn_record_are_not_sent",
            "ledger::a_record_beyond_the_limit_goes_to_the_quarantine",
        ),
    ),
    Row(
        "any bytes as files, names, counter, settings",
        "all that look agree, looking changes nothing",
        ("fuzz_corpus::a_ledger_of_any_bytes_stands_all_saved_inputs",),
    ),
    Row(
        "a file that changes under the body that sends it",
        "E, never a shorter body",
        ("ledger::a_file_that_changes_under_its_reader_is_an_error_and_never_a_shorter_body",),
    ),
    Row(
        "any call fails: EIO, ENOSPC, EDQUOT, EFBIG, EINTR, short write, write of 0",
        "E with errno and file, or P; nothing acknowledged is lost, other files go on",
        (
            *FAILING,
            "ledger::after_a_failed_or_short_write_the_file_is_never_appended_to_again",
            "ledger::a_batch_that_is_there_in_part_says_so",
            "ledger::a_file_that_cannot_be_read_holds_up_no_other",
            "power:shim",
        ),
    ),
    Row(
        "full disk; the limit of all files",
        "E, and it goes on with space; or the oldest dropped, and counted",
        (
            "ledger::a_full_disk_gets_no_files_and_appends_go_on_once_there_is_room",
            "ledger::a_full_ledger_rejects_and_keeps_what_it_has",
            "ledger::a_full_ledger_drops_the_oldest_and_counts_them",
            "ledger::what_a_full_disk_holds_is_sent_and_makes_room",
            "power:full",
        ),
    ),
    Row(
        "fsync fails once, then works",
        "P; what is there can be sent",
        (
            "ledger::a_failed_sync_refuses_every_later_append_and_what_is_there_can_be_sent",
            "ledger::a_sync_into_a_file_that_was_removed_is_an_error",
        ),
    ),
    Row(
        "several stores, several processes",
        "no file is shared, none is removed for another, no index comes twice",
        (
            "ledger::threads_that_append_and_one_that_sends_lose_nothing_and_repeat_nothing",
            "ledger::a_file_being_written_or_leased_is_left_out_by_others",
            "ledger::a_file_that_took_the_name_of_a_removed_one_stays",
            "ledger::indexes_never_repeat_also_after_every_file_was_removed",
            "py:test_ledger.py",
        ),
    ),
    Row(
        "a server that fails, stalls, resets, answers 413, 429, 503; kills meanwhile",
        "every event arrives at least once, none is dropped silently",
        ("py:test_http_end.py", "py:test_http_flow.py", "py:test_http_sender.py"),
    ),
    Row(
        "fork while open",
        "the child refuses",
        ("ledger::a_forked_child_is_refused_and_its_parent_unaffected",),
    ),
    Row("read-only media", "looking works, appending E", ("power:readonly",)),
    Row(
        "symlink, FIFO, directory in place of a file",
        "left alone",
        ("ledger::what_is_no_regular_file_is_left_alone",),
    ),
]
