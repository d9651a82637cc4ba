"""The jobs of `deedbook spark`, which Spark distributes; Sail runs some of them.

Each is a function of a session. Run again after a kill, it goes on where it was.
"""

from __future__ import annotations

from deedbook._spark_session import JobFailedError
from deedbook.spark.jobs._compact import CompactedLog, CompactReport, compact
from deedbook.spark.jobs._engine.sail import sail_session
from deedbook.spark.jobs._export import ExportReport, export
from deedbook.spark.jobs._input.import_ import EventImportReport, import_events
from deedbook.spark.jobs._input.ingest import IngestReport, ingest
from deedbook.spark.jobs._migrate import MigrateReport, migrate
from deedbook.spark.jobs._migrate_pier import (
    MigratedEpoch,
    PierMigrateReport,
    is_lmdb_pier,
    migrate_pier,
)
from deedbook.spark.jobs._verify import Verified, verify

__all__ = [
    "CompactReport",
    "CompactedLog",
    "EventImportReport",
    "ExportReport",
    "IngestReport",
    "JobFailedError",
    "MigrateReport",
    "MigratedEpoch",
    "PierMigrateReport",
    "Verified",
    "compact",
    "export",
    "import_events",
    "ingest",
    "is_lmdb_pier",
    "migrate",
    "migrate_pier",
    "sail_session",
    "verify",
]
