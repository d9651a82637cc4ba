"""The promises of the other layouts of Book, of piers, of migrations and of the C interface."""

from __future__ import annotations

from rows import Row

LAYOUT_ROWS = [
    Row(
        "slots: power loss or kill -9 at any call, also between the deeds and their header",
        "K, T; no deed without its header, no header without its deeds",
        (
            "crash::every_short_history_survives_every_crash",
            "slots::a_header_without_its_deeds_falls_back_to_the_older_one",
            "slots::deeds_after_the_committed_end_are_never_promoted",
            "slots::a_header_that_is_half_written_takes_nothing_from_the_appends_before_it",
            "processes::a_writer_killed_at_any_moment_loses_nothing_acknowledged",
            "processes::a_process_killed_at_a_system_call_loses_nothing_acknowledged",
            "power:cuts",
        ),
    ),
    Row(
        "slots: threads that append and sync at once, and a power cut at any moment of it",
        "K what returned; the slot that is being synced is not changed",
        (
            "models::an_append_in_slots_that_returned_survives_a_power_cut",
            "models::syncs_beside_appends_in_slots_keep_what_they_synced",
        ),
    ),
    Row(
        "slots: cut at every byte, any bit flipped, sectors lost",
        "one answer, whichever way the log is read",
        (
            "answers::a_log_in_slots_cut_at_every_byte_has_one_answer",
            "answers::a_log_in_slots_with_any_bit_flipped_has_one_answer",
            "answers::a_log_in_slots_that_lost_sectors_has_one_answer",
        ),
    ),
    Row(
        "slots: logs of the reference implementation, gone on with",
        "the bytes are those of a model of its writer",
        (
            "slots::the_model_writes_what_the_reference_wrote",
            "slots::what_is_appended_to_a_log_of_the_reference_has_its_bytes",
        ),
    ),
    Row(
        "slots: one header slot damaged, or both",
        "K by the other slot; both: R",
        (
            "slots::a_damaged_slot_leaves_the_other_to_decide",
            "slots::without_a_slot_the_log_is_refused_and_salvaged",
            "slots::committed_events_are_never_taken_for_an_empty_log",
        ),
    ),
    Row(
        "slots: a length in the first batch damaged, or all of the batch missing, and no mark",
        "damage: R; missing: an empty log, torn",
        (
            "slots::a_damaged_length_in_the_first_batch_is_damage_and_not_a_torn_batch",
            "slots::beside_a_damaged_slot_a_deed_anywhere_is_a_committed_one",
            "slots::a_first_batch_that_is_not_there_leaves_an_empty_log",
        ),
    ),
    Row(
        "slots: a bit flip in a deed, which has no checksum of its own",
        "found by `verify` through the index's block checksums",
        ("slots::verify_finds_rot_that_the_layout_itself_cannot",),
        "in a block that is complete; rot before that is not noticed",
    ),
    Row(
        "conversion: crash at any step, a call that fails, damage, a copy that differs",
        "source unchanged; a whole copy or no log; E",
        (
            "convert::a_crash_at_any_step_of_a_conversion_leaves_the_source_and_no_false_event",
            "convert::a_conversion_of_which_a_call_fails_is_an_error_or_a_copy",
            "convert::a_conversion_that_meets_damage_leaves_nothing_and_names_the_way",
            "convert::a_conversion_to_the_place_of_another_one_that_runs_is_refused",
            "convert::a_copy_that_differs_from_its_source_is_an_error_of_its_event",
            "slots::every_golden_log_is_converted_to_both_layouts",
        ),
    ),
    Row(
        "pier: crash at any step of a roll, and a second one in the next roll",
        "K; the new epoch is there whole or not at all",
        (
            "pier::a_crash_at_any_step_of_a_roll_leaves_the_pier_with_the_new_epoch_or_without",
            "pier::a_second_crash_in_the_roll_after_a_first_one_leaves_the_same",
            "pier::the_new_epoch_is_never_found_without_the_events_before_it",
            "pier::a_call_that_fails_during_a_roll_loses_nothing",
        ),
    ),
    Row(
        "pier: epochs that leave out events, overlap, or are in LMDB",
        "R, with the numbers",
        (
            "pier::a_gap_is_refused_with_its_numbers",
            "pier::an_overlap_is_refused_with_its_numbers",
            "pier::an_epoch_in_lmdb_is_refused_by_its_name",
        ),
    ),
    Row(
        "pier: metadata in LMDB and its copy; a save interrupted at any call",
        "old, new, or E with both values until the same save is done again",
        (
            "lmdb::a_save_that_is_interrupted_anywhere_is_ended_by_the_same_save",
            "lmdb::metadata_that_differs_is_an_error_with_both_values_until_one_is_saved",
            "lmdb::an_environment_that_cannot_be_read_is_no_missing_one",
        ),
    ),
    Row(
        "migration from LMDB killed at any moment, or a call that fails, run again",
        "every event once, compared with the source; the source unchanged",
        (
            "lmdb::a_migration_of_which_a_call_fails_goes_on_afterwards",
            "lmdb::an_interrupted_migration_goes_on_and_doubles_nothing",
            "lmdb::an_environment_becomes_a_book_and_the_source_stays_as_it_was",
            "py:test_lmdb.py",
        ),
    ),
    Row(
        "migration: gaps, values without a mug, partial metadata, another destination",
        "E, with the number or the field; nothing changed",
        (
            "lmdb::a_gap_is_named_with_both_numbers",
            "lmdb::a_value_without_a_mug_is_named",
            "lmdb::metadata_that_lacks_a_field_is_refused_by_the_name_of_the_field",
            "lmdb::a_destination_with_other_events_is_refused_and_stays",
            "lmdb::an_environment_that_is_written_meanwhile_is_noticed",
            "lmdb::a_damaged_book_does_not_go_back_in_part",
        ),
    ),
    Row(
        "a payload read or appended in parts: the source fails, the payload is damaged",
        "E, nothing appended; the last part is never given",
        (
            "in_parts::a_payload_that_its_reader_cannot_give_leaves_the_log_as_it_was",
            "in_parts::the_last_part_of_a_damaged_payload_is_an_error",
        ),
    ),
    Row(
        "an event of 3 GiB, written, read, verified, converted and migrated",
        "a few blocks of memory",
        ("in_parts_memory::an_event_of_any_size_needs_a_few_blocks_of_memory",),
    ),
    Row(
        "C: damaged and cut logs, wrong numbers, null pointers",
        "as Vere does; what is cut is saved and noted",
        (
            "capi::the_program_does_with_the_shared_library",
            "capi::logs_of_veres_head_are_written_read_and_mended_with_the_shared_library",
        ),
    ),
]
