"""The promises of the write-ahead log, as ``rows.py`` has those of Book."""

from __future__ import annotations

from rows import Row

HISTORIES = ("crash::every_short_history_survives_every_crash",)
FAILING = ("faults::every_call_fails_in_every_way_once_and_for_ever",)

WAL_ROWS = [
    Row(
        "power loss: any subset of unsynced sectors and directory changes",
        "K, T",
        (*HISTORIES, "power:cuts"),
    ),
    Row(
        "crash at any step of a truncation at either end, of the n-th one too",
        "old or new state; nothing dropped comes back",
        (
            "wal_own::a_crash_at_any_step_of_any_dropping_of_a_prefix_leaves_the_old_or_the_new_log",
            "wal_own::a_cut_end_never_comes_back_under_appends_of_the_same_size",
            "wal_own::segments_go_oldest_first_at_the_front_and_newest_first_at_the_end",
            "wal_own::segments_that_come_back_below_the_head_are_not_read_and_go_again",
        ),
    ),
    Row(
        "crash during recovery, again and again",
        "the same result as one recovery",
        (
            *HISTORIES,
            "crash::names_left_by_a_killed_creator_are_made_durable",
            "wal_regressions::a_truncation_that_recovery_ends_is_durable_before_its_intent_goes",
            "wal_regressions::segments_reserved_ahead_that_come_back_behind_a_gap_are_torn",
            "faults::a_recovery_that_fails_leaves_what_it_found",
        ),
    ),
    Row(
        "a consumer above the end that a truncation or a crash left",
        "lowered before anything is appended",
        (
            "wal_regressions::no_crash_leaves_a_consumer_above_records_that_it_never_saw",
            "wal_keep::a_consumer_above_a_cut_needs_what_is_appended_there",
            "wal_keep::a_consumer_above_what_a_crash_left_needs_what_is_appended_there",
        ),
    ),
    Row(
        "a torn tail with intact records after its first damage",
        "T at the first damage, for every reader",
        ("wal_regressions::a_torn_tail_ends_at_its_first_damage_for_all_who_look",),
    ),
    Row(
        "end cut or prefix dropped under a reader",
        "reported; what is left is read on",
        (
            "wal_readers::a_reader_of_a_log_whose_end_was_cut_says_so",
            "wal_readers::a_reader_goes_on_behind_a_prefix_that_was_dropped",
            "py:test_stateful_wal.py",
        ),
    ),
    Row(
        "positions beyond 2^32",
        "K",
        (
            "wal_scale::records_lie_across_and_behind_four_gibibytes",
            "wal_scale::a_single_file_of_more_than_four_gibibytes_is_read_and_appended_to",
        ),
    ),
    Row(
        "appends during a sync of one segment after the other",
        "K by the next sync",
        (
            "crash::what_is_appended_during_a_sync_is_durable_after_the_next_one",
            "wal_own::what_any_thread_was_told_survives_a_power_cut",
            "lib::a_write_that_a_sync_overtakes_is_covered_by_the_next_sync",
        ),
    ),
    Row(
        "a payload that contains whole records, outer record torn",
        "T at the outer start, the inner one never surfaces",
        ("crash::records_inside_a_torn_record_never_surface", *HISTORIES),
    ),
    Row(
        "head marker damaged or missing",
        "made up for by the mark, or R",
        ("wal_own::a_lost_head_marker_is_made_up_for_or_the_log_is_refused",),
    ),
    Row(
        "a record beyond a smaller limit",
        "R, never a truncation",
        ("wal_own::a_record_beyond_the_limit_is_not_cut_as_torn",),
    ),
    Row(
        '`recovery="acknowledged"`',
        "everything acknowledged and nothing else",
        ("wal_own::recovery_to_the_acknowledged_keeps_all_of_it_and_no_more", *HISTORIES),
    ),
    Row(
        "fsync fails once, then works; eight waiters",
        "P, all waiters fail",
        (
            "faults::after_a_failed_sync_everything_is_refused_until_it_is_opened_again",
            "faults::a_failed_sync_fails_all_eight_waiters",
            "wal_regressions::a_cut_whose_sync_failed_is_made_again",
        ),
    ),
    Row(
        "any call fails: EIO, ENOSPC, EDQUOT, EFBIG, EAGAIN, EINTR, short write, write of 0; also"
        " in the second half of a record that spans segments",
        "gone on with, or E and rolled back, or P",
        (
            *FAILING,
            "faults::an_append_that_was_rolled_back_does_not_come_back",
            "faults::an_append_that_cannot_be_rolled_back_poisons",
            "faults::interrupted_reads_and_writes_are_repeated",
            "power:full",
            "power:shim",
        ),
    ),
    Row(
        "read error in the middle",
        "E, never taken for the end",
        (
            "faults::a_reader_gives_all_or_an_error",
            "wal_regressions::a_truncation_that_was_refused_says_that_nothing_changed",
        ),
    ),
    Row(
        "creation fails",
        "nothing in the way of the next one",
        ("faults::a_failed_creation_leaves_nothing_in_the_way",),
    ),
    Row(
        "a disk that lies",
        "right records, or R",
        ("faults::a_disk_that_lies_never_makes_wrong_records",),
    ),
]
