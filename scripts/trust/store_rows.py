"""The promises of the event store, as ``rows.py`` has those of Book."""

from __future__ import annotations

from rows import Row

STORE_ROWS = [
    Row(
        "kill -9 while appending or compacting",
        "K; nothing twice",
        (
            "nostr_store::a_process_killed_at_any_moment_of_its_appends_loses_nothing_committed",
            "nostr_store::"
            "a_process_killed_at_any_moment_of_compacting_loses_nothing_and_doubles_nothing",
        ),
    ),
    Row(
        "power loss at any call",
        "K; no event hidden by one that was lost",
        (
            "nostr_store::every_short_history_survives_every_crash",
            "nostr_store::longer_histories_by_chance_survive_every_crash_of_their_last_step",
            "nostr_store::no_event_is_hidden_by_one_that_a_power_cut_took",
            "nostr_wal::every_crash_leaves_all_that_was_acknowledged_since_a_checkpoint",
            "fuzz_corpus::histories_of_an_event_store_with_crashes_lose_no_event",
            "power:cuts",
        ),
    ),
    Row(
        "crash at any call of a checkpoint or a compaction",
        "K; the old segments or the new ones, never both",
        (
            "nostr_store::a_checkpoint_survives_a_crash_at_every_call",
            "nostr_store::a_compaction_survives_a_crash_at_every_call",
        ),
    ),
    Row(
        "any call fails, in any way; fsync fails once",
        "E or P; nothing acknowledged is lost",
        (
            "nostr_store::whatever_call_fails_and_however_nothing_acknowledged_is_lost",
            "nostr_store::what_a_failed_sync_left_in_the_cache_is_written_again",
            "power:full",
            "power:shim",
        ),
    ),
    Row(
        "a byte flipped, a page lost, lengths that lie",
        "named with its place; the other events are read",
        (
            "nostr::every_flipped_byte_is_found_in_its_record",
            "nostr::a_lost_page_costs_its_record_alone",
            "nostr::a_damaged_count_or_length_is_named_with_both_values",
        ),
        "without the optional checksum, a flip in a page is found by the event's id only",
    ),
    Row(
        "manifest missing, wrong or older; a segment missing",
        "made again from its copy or the segments; R where events are missing",
        (
            "nostr_store::a_manifest_that_is_missing_wrong_or_older_is_made_again",
            "nostr_store::a_missing_segment_is_named_with_the_events_it_had",
        ),
    ),
    Row(
        "index damaged, stale or deleted",
        "made again; it never claims what it lacks",
        (
            "nostr_store::an_index_made_again_has_everything",
            "nostr_store::the_index_learns_flags_that_it_lacks_from_the_log",
            "nostr_index::a_cut_file_is_noticed_or_the_index_is_an_earlier_one",
            "nostr_store::an_index_older_than_the_segments_or_gone_finds_what_a_scan_finds",
            "nostr_store::"
            "a_damaged_index_of_a_store_that_died_finds_what_a_scan_finds_or_is_made_again",
        ),
    ),
    Row(
        "repair and salvage of a damaged store",
        "a loss only if it is accepted, and noted; nothing comes back or twice",
        (
            "nostr_store::a_repair_takes_damaged_pages_out_if_their_loss_is_accepted",
            "nostr_store::a_repair_asks_before_it_cuts_events_that_only_the_log_has",
            "nostr_store::a_salvage_brings_nothing_back_that_a_compaction_dropped",
        ),
    ),
    Row(
        "crash at any call of a repair or a salvage, and of what takes it up; any call fails",
        "K; what is cut is saved, a loss stays noted; source unchanged, no false event in a copy",
        (
            "nostr_store::a_repair_that_crashes_at_any_call_is_taken_up_and_loses_nothing_intact",
            "nostr_store::a_repair_of_which_any_call_fails_is_an_error_and_is_taken_up",
            "nostr_store::a_salvage_that_crashes_at_any_call_leaves_its_source_and_no_false_event",
            "nostr_store::a_salvage_of_which_any_call_fails_is_an_error_or_whole",
        ),
    ),
    Row(
        "second writer; reader between any two calls of the writer",
        "E, nothing changed; all that was written, no error",
        (
            "nostr_store::"
            "a_reader_beside_a_writer_sees_all_that_was_written_and_a_second_writer_is_refused",
        ),
    ),
    Row(
        "any bytes as segments or as the write-ahead log",
        "no intact record of a segment is missed; the log gives what was written, and all of an "
        "intact beginning; R, or goes on after it",
        (
            "fuzz_corpus::segments_of_any_pages_miss_no_intact_record",
            "fuzz_corpus::"
            "the_write_ahead_log_of_an_event_store_of_any_bytes_gives_what_was_written",
        ),
    ),
    Row(
        "any bytes as tags, any lines imported",
        "tags are read as the layout says, or refused; lines do what they do one at a time, and "
        "each bad one is named",
        (
            "fuzz_corpus::tags_of_any_entries_are_read_as_the_layout_says",
            "fuzz_corpus::any_lines_imported_do_what_they_do_one_at_a_time",
        ),
    ),
]
