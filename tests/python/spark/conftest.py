"""The tests of Spark, which packages they need, and which of them Sail passes, too.

With ``DEEDBOOK_ENGINE=sail`` the tests run in a session of Sail.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

NOT_ON_SAIL = {
    "Sail has no streams from Python": (
        "test_a_query_reads_every_record_once_over_restarts",
        "test_a_stream_writes_each_batch_once",
        "test_new_checkpoint_with_an_old_application_is_refused",
        "test_other_output_modes_are_refused",
        "test_pier_writes_append_once_across_rolls",
        "test_query_reads_three_logs_over_restarts",
        "test_slots_book_is_split_streamed_and_written",
        "test_spark_reads_and_streams_from_s3",
        "test_stream_batches_respect_max_rows_and_report_lag",
        "test_stream_consumer_keeps_unread_records",
        "test_stream_leaves_shared_spark_state_unchanged",
        "test_truncated_log_ends_or_warns_a_query",
    ),
    "Sail returns partitions in any order, and does not say how many": (
        "test_every_record_is_read_once_whatever_the_segments",
        "test_intact_deeds_are_rows_and_damage_is_one",
        "test_ledger_events_are_read_once_in_sending_order",
        "test_nostr_rows_are_typed_for_any_partitions",
        "test_path_offset_and_length_name_the_bytes",
        "test_rows_equal_python_iteration_in_order",
    ),
    "Sail finds the logs again for each query": (
        "test_frames_and_views_are_snapshots_of_first_query",
    ),
    "Sail leaves out a list of paths": (
        "test_paths_globs_and_directories_lead_to_ledgers",
        "test_several_paths_globs_and_directories",
    ),
    "Sail has tables and error classes of its own": (
        "test_create_table_error_names_a_working_alternative",
        "test_errors_have_public_names",
        "test_errors_reach_the_user",
        "test_modes_that_a_log_cannot_have_are_refused",
        "test_table_with_columns_is_refused_on_read",
    ),
    "this job, or a time as a partition, needs Spark": (
        "test_a_directory_of_parquet_files_has_one_source",
        "test_jobs_append_to_a_pier",
        "test_migrated_pier_verifies_and_is_readable_through_spark",
        "test_typed_columns_of_events_are_partitioned_by_day",
        "test_the_command_prints_what_verify_prints",
    ),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("DEEDBOOK_ENGINE") != "sail":
        return
    for reason, names in NOT_ON_SAIL.items():
        for item in items:
            if getattr(item, "originalname", item.name) in names:
                item.add_marker(pytest.mark.skip(reason=reason))


class OfSpark(pytest.Module):
    """A module of tests with the marker `spark`; skipped, with a reason, without a package."""

    def collect(self) -> Iterable[Any]:
        self.add_marker(pytest.mark.spark)
        for package in ("pyspark", "pyarrow"):
            pytest.importorskip(package, reason=f"{package} is not installed")
        return super().collect()


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> pytest.Module | None:
    """Treat the modules of Spark so, and leave the others to pytest."""
    is_of_spark = module_path.name.startswith("test_spark_")
    return OfSpark.from_parent(parent, path=module_path) if is_of_spark else None
