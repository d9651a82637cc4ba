"""The promises of Spark's streams, reads and writes, as ``rows.py`` has those of Book."""

from __future__ import annotations

from rows import Row

SPARK_ROWS = [
    Row(
        "a query killed again and again, its reader or its writer",
        "each record once",
        ("py:test_spark_stream.py", "py:test_spark_write_killed.py"),
    ),
    Row(
        "power loss under a stream: records not yet durable, a batch and its plan",
        "only durable records are read; a batch is in the log after its plan is synced",
        ("py:test_spark_stream.py", "py:test_spark_checkpoint.py"),
    ),
    Row(
        "a log that is cut, gone or another one under a query",
        "E; if the loss is accepted, it is logged and the stream goes on",
        ("py:test_spark_stream.py", "py:test_spark_stream_order.py"),
    ),
    Row(
        "logs and epochs that appear later, at any pace",
        "read from their first record, each epoch after the whole of the one before",
        ("py:test_spark_stream.py", "py:test_spark_stream_order.py"),
    ),
    Row(
        "epochs or files dropped unread; a gap, an overlap",
        "E with both numbers; dropped after they were read: no error",
        ("py:test_spark_stream_order.py", "py:test_spark_plan.py"),
    ),
    Row(
        "a log replaced between planning and reading",
        "E",
        ("py:test_spark_plan.py",),
    ),
    Row(
        "a batch or a write that Spark repeats, numbers out of turn",
        "a repeat appends nothing; the others: E",
        ("py:test_spark_write.py", "py:test_spark_write_killed.py"),
    ),
    Row(
        "an executor killed, a slow attempt that another one overtakes, a task that fails",
        "each record once, nothing of a failed write",
        ("py:test_spark_write.py", "py:test_spark_write_killed.py"),
    ),
    Row(
        "the pipeline's driver, JVM, executors, workers, producers killed, also on a cluster",
        "every line is in the tables once, or in the quarantine",
        ("py:test_pipeline_chaos.py",),
    ),
    Row(
        "a checkpoint and a target of different times: older copies, one of them lost",
        "R before Spark begins",
        ("py:test_spark_checkpoint.py",),
    ),
    Row(
        "staged files of jobs that live and of jobs that died",
        "`vacuum` removes the latter only",
        ("py:test_transactions.py",),
    ),
]
