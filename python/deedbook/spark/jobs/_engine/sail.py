"""Sail, an engine without a JVM. Server and tasks are threads of the job's process."""

from __future__ import annotations

import os
import signal
import threading
import uuid
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Counter", "is_sail", "sail_session"]

_SESSIONS: Final[set[str]] = set()
"""The ids of the sessions of `sail_session`."""
_COUNTS: Final[dict[str, int]] = {}
_LOCK: Final = threading.Lock()


@contextmanager
def sail_session(settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session of Sail for jobs, with a server in this process. The context ends both.

    ``settings`` configure the session. Times are in UTC. Raises ImportError without the extra
    ``sail``.

    >>> from deedbook.spark import jobs
    >>> with jobs.sail_session() as sail:  # doctest: +SKIP
    ...     jobs.verify(sail, "events.book")
    """
    # Sail reads both when it starts. The default prints a line for each session.
    os.environ.setdefault("RUST_LOG", "error")
    os.environ["SAIL_MODE"] = "local"  # tasks elsewhere would add to no counter of this process
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"pyspark\.")
    from pysail.spark import SparkConnectServer  # type: ignore[import-not-found]
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    server = SparkConnectServer(port=0)
    server.start(background=True)
    try:
        _, port = server.listening_address
        spark: Any = ConnectSession.builder.remote(f"sc://127.0.0.1:{port}").create()
        _take_back_signals()
        # The client would ask a server that ended for ten minutes more.
        spark.client.set_retry_policies([])
        for key, value in {"spark.sql.session.timeZone": "UTC", **(settings or {})}.items():
            spark.conf.set(key, value)
        _SESSIONS.add(spark.session_id)
        try:
            yield spark
        finally:
            _SESSIONS.discard(spark.session_id)
            with suppress(Exception):  # after an interrupt the server may not answer
                spark.stop()
    finally:
        server.stop()


def _take_back_signals() -> None:
    """Give signals back to Python. At Ctrl-C, Sail would end its server."""
    if threading.current_thread() is not threading.main_thread():
        return  # then Python may not set them
    for number in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(number)
        if handler is not None:
            signal.signal(number, handler)


def is_sail(spark: SparkSession) -> bool:
    """Whether the session is one of `sail_session`."""
    return getattr(spark, "session_id", None) in _SESSIONS


class Counter:
    """A number that tasks add to. A task's copy has only the name."""

    def __init__(self) -> None:
        self._name = uuid.uuid4().hex
        _COUNTS[self._name] = 0

    @property
    def value(self) -> int:
        """The sum so far."""
        return _COUNTS[self._name]

    def add(self, more: int) -> None:
        """Add to the number."""
        with _LOCK:
            _COUNTS[self._name] += more
