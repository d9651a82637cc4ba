"""The messages and files of ``deedbook spark`` if Spark does not start."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deedbook import Wal
from deedbook._cli import main
from deedbook._cli.signals import Terminated

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("py4j", reason="pyspark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("pandas", reason="pandas is not installed")

from py4j.protocol import Py4JError
from pyspark.errors import PySparkRuntimeError

from deedbook import _spark_session as _session

PARSED = "Could not parse Master URL: 'foo://x'"
TRACE = f"""An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: org.apache.spark.SparkException: {PARSED}
\tat org.apache.spark.SparkContext$.createTaskScheduler(SparkContext.scala:3204)
\tat org.apache.spark.SparkContext.<init>(SparkContext.scala:576)
"""
"""The bridge's message."""
NO_JAVA = PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
FAILURES = [(Py4JError(TRACE), PARSED), (NO_JAVA, "Spark does not start; it needs Java 17")]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def wal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log; temporary files go next to it."""
    with Wal.create(tmp_path / "wal") as opened:
        opened.append(b"one")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "wal"


def failing(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def session(*args: Any, **options: Any) -> Iterator[None]:
        raise error
        yield

    monkeypatch.setattr(_session, "session", session)


@pytest.mark.parametrize(("error", "said"), FAILURES)
def test_failed_spark_session_prints_one_line(
    wal: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch, error: Any, said: str
) -> None:
    failing(error, monkeypatch)
    assert main(["spark", "verify", str(wal), "--master", "foo://x"]) == 2
    told = capfd.readouterr().err
    (log,) = (wal.parent / "temporary").iterdir()
    assert told.startswith(f"deedbook: spark verify: {said}") and told.endswith(f"{log}\n")
    assert told.count("\n") == 1 and len(told) < 400


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (Terminated(), 143)])
def test_stopped_spark_job_leaves_no_spark_log(
    wal: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    failing(error, monkeypatch)
    assert main(["spark", "verify", str(wal)]) == code
    assert os.listdir(wal.parent / "temporary") == []


@pytest.mark.spark
def test_unknown_spark_master_prints_one_line(wal: Path) -> None:
    command = [sys.executable, "-m", "deedbook", "spark", "verify", str(wal)]
    done = subprocess.run(
        [*command, "--master", "foo://x"], capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and len(done.stderr) < 400
    assert "internal error" not in done.stderr and "spark verify: " in done.stderr
