"""Work on one log by many tasks: parts of a log, places in it, and transactions.

This is what the connector for Spark is made of.
"""

from deedbook._core import (
    BatchStream,
    Bookmark,
    Committed,
    CommittedTransaction,
    Split,
    Stage,
    StagedJob,
    StagedPart,
    Transactions,
    parse_events,
)

__all__ = [
    "BatchStream",
    "Bookmark",
    "Committed",
    "CommittedTransaction",
    "Split",
    "Stage",
    "StagedJob",
    "StagedPart",
    "Transactions",
    "parse_events",
]
