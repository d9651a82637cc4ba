"""The promises: each fault, what comes of it, and the tests that prove it.

Outcomes. **K** every acknowledged-durable deed is kept, byte for byte. **T** a torn tail is dropped
and reported. **R** opening for write is refused with a typed error, files unchanged, reading and
salvage possible. **E** a typed error, state unchanged, handle usable. **P** the handle is poisoned.

A test is named ``target::name``; ``py:`` is a file under ``tests/python``; ``power:`` is a part of
``scripts/power.sh``. A row without tests is published as not proved.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One promise of Book."""

    fault: str
    outcome: str
    tests: tuple[str, ...]
    note: str = ""


ROWS = [
    Row(
        "kill -9 at any instruction",
        "K, T",
        (
            "processes::a_writer_killed_at_any_moment_loses_nothing_acknowledged",
            "processes::a_process_killed_at_a_system_call_loses_nothing_acknowledged",
            "py:test_demo.py",
        ),
    ),
    Row(
        "power loss: any subset of unsynced sectors and directory changes",
        "K, T",
        ("crash::every_short_history_survives_every_crash", "power:cuts"),
    ),
    Row(
        "file extended but data missing (zeros, stale bytes)",
        "T above the mark, R below",
        (
            "crash::every_short_history_survives_every_crash",
            "answers::every_sector_and_every_two_lost_to_zeros",
            "answers::every_sector_and_all_after_it_stale",
        ),
    ),
    Row(
        "bit flip in the middle",
        "R, never a truncation",
        ("answers::every_single_bit_flipped",),
        "without a mark, a flip inside a payload is found by reading and `verify`, not by opening",
    ),
    Row(
        "bit flip in the last deed",
        "R below the mark, else T",
        ("answers::every_single_bit_flipped",),
    ),
    Row(
        "cut at every byte",
        "K up to the cut; below the mark R",
        ("answers::a_log_cut_at_every_byte",),
    ),
    Row(
        "length huge, 0, below the minimum, off by one; length trailer lies",
        "E or R; memory at most what is left to read",
        (
            "allocation::hostile_lengths_never_reserve_more_than_there_is_to_read",
            "limits::the_shortest_deed_has_an_empty_jam_and_a_length_below_four_is_no_deed",
        ),
    ),
    Row(
        "a payload that contains whole deeds, outer deed torn",
        "T at the outer start, the inner one never surfaces",
        (
            "recovery::deeds_inside_a_torn_deed_never_surface_above_the_mark",
            "recovery::deeds_inside_a_deed_with_broken_framing_never_surface",
            "recovery::without_a_mark_a_torn_deed_that_holds_deeds_is_refused",
        ),
    ),
    Row(
        "header damaged or missing",
        "R",
        (
            "limits::a_damaged_header_is_refused_for_writing_and_salvaged",
            "limits::a_file_shorter_than_the_header_is_refused_but_an_empty_one_is_a_new_log",
        ),
        "a flip in `fir_d` without a mark, outside a directory `0iN`, cannot be noticed: the"
        " layout has no checksum over its header",
    ),
    Row(
        "mark or index stale, damaged, foreign, deleted",
        "ignored; ahead of the file: R",
        (
            "log::a_sidecar_with_any_byte_damaged_is_ignored",
            "log::a_sidecar_cut_emptied_or_deleted_is_ignored",
            "log::a_stale_sidecar_is_made_up_for",
            "log::a_sidecar_of_another_log_is_ignored",
            "recovery::a_mark_ahead_of_the_file_is_refused_and_says_what_is_lost",
        ),
    ),
    Row(
        "log removed or emptied under its mark",
        "R",
        ("log::a_log_removed_under_its_mark_is_not_created_again",),
    ),
    Row(
        "fsync fails once, then works",
        "P, all waiters fail",
        (
            "faults::after_a_failed_sync_everything_is_refused_until_it_is_opened_again",
            "faults::what_a_failed_sync_left_in_the_cache_is_written_again_when_opening",
            "lib::a_failed_sync_fails_all_later_ones",
        ),
    ),
    Row(
        "ENOSPC, EDQUOT, EFBIG, EAGAIN, EINTR, short write, write of 0",
        "gone on with, or E and rolled back, or P",
        (
            "faults::every_call_fails_in_every_way_once_and_for_ever",
            "faults::an_append_that_was_rolled_back_does_not_come_back",
            "processes::a_write_or_sync_that_fails_is_an_error_rolled_back_or_poison",
            "files::a_full_disk_is_an_error_and_not_the_end",
            "power:full",
            "power:shim",
        ),
    ),
    Row(
        "read error in the middle",
        "E, never taken for the end",
        (
            "faults::a_reader_gives_all_or_an_error",
            "faults::a_check_gives_the_truth_or_an_error",
        ),
    ),
    Row(
        "create, rename or directory fsync fails",
        "old state complete, E",
        (
            "faults::a_failed_creation_leaves_nothing_in_the_way",
            "faults::metadata_is_replaced_whole_or_not_at_all",
            "processes::a_creation_that_was_interrupted_is_begun_anew",
        ),
    ),
    Row(
        "second writer, other process or same process, through links too",
        "E with the holder",
        (
            "log::a_second_writer_in_this_process_is_refused_whatever_it_calls_the_log",
            "log::a_writer_in_another_process_is_named_and_its_death_frees_the_log",
            "log::the_sidecar_removed_under_a_writer_does_not_let_a_second_one_in",
        ),
    ),
    Row(
        "fork while open",
        "the child refuses, the parent is unaffected",
        (
            "log::a_forked_child_is_refused_and_its_parent_unaffected",
            "py:test_threads.py",
        ),
    ),
    Row(
        "reader while a writer appends",
        "a prefix that ends at a deed's edge, never an error",
        ("log::a_reader_beside_a_writer_sees_a_prefix_and_no_error", "py:test_book_follow.py"),
    ),
    Row(
        "file truncated or replaced under reader or writer",
        "E or P, never a crash of the process",
        (
            "log::a_file_cut_under_a_reader_is_an_error",
            "log::a_file_cut_removed_or_replaced_under_a_writer_poisons_it",
            "lib::a_store_after_a_foreign_truncation_is_an_error_not_a_crash",
        ),
        "unless `faulthandler` is enabled after the first append",
    ),
    Row(
        "KeyboardInterrupt in the middle of an append",
        "raised before the first byte or after the commit",
        ("py:test_signals.py",),
    ),
    Row(
        "interpreter exit, garbage collection without close",
        "K for synced deeds, no deadlock",
        ("py:test_signals.py", "py:test_threads.py"),
    ),
    Row(
        "panic in a callback or in a group leader",
        "waiters woken with an error, P; syncs in the background go on",
        (
            "lib::a_panicking_leader_fails_the_waiters",
            "wal_keep::syncs_in_the_background_go_on_after_a_hook_that_panicked",
            "py:test_book_mend.py",
        ),
    ),
    Row(
        "crash during recovery, again and again",
        "the same result as one recovery",
        (
            "crash::every_short_history_survives_every_crash",
            "crash::names_left_by_a_killed_creator_are_made_durable",
            "faults::a_recovery_that_fails_leaves_what_it_found",
        ),
    ),
    Row(
        "crash at any step of a repair",
        "old or new state, never neither",
        (
            "faults::a_recovery_that_fails_leaves_what_it_found",
            "recovery::spec_recovery_and_repair_cut_below_the_mark_after_saving",
        ),
    ),
    Row(
        "read-only media",
        "reading works, opening for write E",
        (
            "log::a_read_only_directory_is_read_and_not_written",
            "log::a_read_only_file_system_is_read_and_not_written",
            "power:readonly",
        ),
    ),
    Row(
        "symlink, FIFO, device, directory in place of a log",
        "E quickly, no hang",
        (
            "log::what_is_no_regular_file_is_refused_in_place_of_the_log",
            "files::what_is_no_regular_file_is_refused_in_place_of_the_metadata",
            "log::what_is_no_regular_file_is_refused_in_place_of_the_lock",
        ),
    ),
    Row(
        "events beyond 2^31 bytes; event numbers near 2^64",
        "K; E",
        (
            "limits::event_numbers_end_before_they_overflow",
            "limits::an_event_over_two_gibibytes",
        ),
        "the event over 2 GiB runs with `DEEDBOOK_SLOW=1` only",
    ),
    Row("clock backwards", "no effect on order", (), "no code reads a clock to order records"),
]
