"""A sender on threads."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from deedbook._errors import ClosedError, ForkedError
from deedbook.http._clients.urllib3 import Transport
from deedbook.http._flow.flow import Flow
from deedbook.http._flow.pace import log
from deedbook.http._flow.stats import Drained, SenderStats
from deedbook.http._flow.steps import Send, Step, Wait, Worker, perform
from deedbook.http._settings import Options, settings, shown_url

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from deedbook.http._dead import DeadLetters
    from deedbook.http.presets import Preset
    from deedbook.transient import DataStore

# Seconds for threads to end after the end of their connections.
_GRACE_SECONDS = 2.0


class Sender:
    """Sends the events of a store to a URL, each at least once, and removes the accepted events.

    ``with Sender(store, url) as sender:`` sends in the background, by threads; `drain` and
    `send_once` send on demand. An event leaves the store only after the server answered 2xx, or
    after it is a dead letter on stable storage. Options, with their defaults:

    - ``preset``: the needs of an endpoint (`deedbook.http.presets`); the options below come first.
    - ``envelope`` (the store's): header, footer, separator around the events.
    - ``headers``: headers of each request, in addition to Content-Type (JSON) and User-Agent.
    - ``dead_letters`` (``.deedbook/dead-letters`` in the store's ``path``; ``dead-letters-BASE``
      for another ``base`` than "events"): a folder, or a `DeadLetters`.
    - ``key_header`` ("Idempotency-Key"): carries the batch's id, the same for each attempt, also
      after a restart; None: not sent.
    - ``limits`` (none): a `Limits`; larger batches are sent in parts.
    - ``policy``: a `Policy` of statuses and delays.
    - ``rates`` (none): a `Rates`.
    - ``compression`` (None): "gzip", "zstd", or "auto", which follows an answer's Accept-Encoding.
      After an answer 415, the server gets gzip, then plain bodies.
    - ``concurrency`` (1): requests at a time; with more than 1, batches may arrive out of order.
    - ``interval_seconds`` (5): how long events may wait in a batch that is not full.
    - ``request_seconds`` (300): how long one attempt may take, from connecting to the answer.
    - ``connect_seconds`` (10), ``read_seconds`` (30): how long to wait for a connection, and for
      the server to take or give the next byte.
    - ``ssl_context``: for https, instead of the system's certificates.

    InvalidArgumentError names the wrong option, ImportError the package to install. Threads may
    share a sender; after a fork the child's refuses every call (ForkedError).
    """

    def __init__(
        self,
        store: DataStore,
        url: str | None = None,
        *,
        preset: Preset | None = None,
        **options: Unpack[Options],
    ) -> None:
        self._settings = settings(store, url, preset, options)
        self._flow = Flow(self._settings)
        self._transport = Transport(self._settings)
        self._changed = threading.Condition()
        self._flow.tell = self._changed.notify_all
        self._threads: list[threading.Thread] = []
        self._wanted = False  # whether to send in the background
        self._draining = False  # whether the threads are those of a drain
        self._closed = False
        self._empty = False
        self._pid = os.getpid()

    @property
    def dead_letters(self) -> DeadLetters:
        """The folder of the events that the endpoint refuses."""
        return self._settings.dead_letters

    def start(self) -> None:
        """Send in the background from now on. A second call does nothing."""
        with self._locked():
            self._wanted = True
            if not self._threads and not self._draining:  # else the drain's end starts them
                self._start(patient=True)

    def flush(self) -> None:
        """Send the stored events now, without waiting for the result.

        Delayed attempts begin now, unless the server asked for the delay.
        """
        with self._locked():
            self._flow.ask_drain()
            self._changed.notify_all()

    def drain(self, timeout_seconds: float | None = None) -> Drained:
        """Send until the store is empty, or the time is over; return the counts.

        The result is true if nothing waits and nothing was refused: `Drained` has the counts.
        Refused events no longer wait, but lie in `dead_letters`. Nobody waits for the files that
        other stores write or are sending.

        `IoError` if waiting cannot help: the endpoint refuses the sender, or the store or the dead
        letters fail. The store keeps the events. A drain does not start sending in the background.
        Drains without background sending run one after the other.
        """
        end = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        with self._locked():
            # A drain ends its own threads, so another drain must not rely on them.
            alone = self._changed.wait_for(
                lambda: not self._draining or self._closed, timeout_seconds
            )
            if self._closed:
                raise ClosedError("the sender is closed")
            before = self._flow.tally.values
            if not alone:
                return self._flow.drained(before, empty=False)
            here = self._draining = not self._threads
        try:
            with self._changed:
                ticket = self._flow.ask_drain()
                if here:
                    self._start(patient=False)
                self._changed.notify_all()
                left = None if end is None else end - time.monotonic()
                self._changed.wait_for(lambda: self._is_over(ticket), left)
                drained = self._flow.is_drained(ticket)
                if self._flow.problem is not None and not drained:
                    raise self._flow.error()
                return self._flow.drained(before, empty=drained)
        finally:
            if here:
                self._end_drain()

    def send_once(self) -> bool:
        """Try once to send the oldest batch; return whether the batch was sent and removed.

        False also if the store is empty, or while a request of a late drain still runs. `IoError`
        if the endpoint refuses the sender; an error of the store or the dead letters is raised
        unchanged.
        """
        with self._locked():
            if not self._threads:
                self._flow.open(patient=True)
        sent = self._drive(self._flow.once())
        if not sent and self._flow.problem is not None:
            raise self._flow.error()
        return sent

    def close(self, timeout_seconds: float = 10.0) -> bool:
        """Send the stored events until the time is over, then end; whether the store is empty.

        At the end of the time, the sender ends the requests under way, and their events stay in the
        store. Without background sending, the sender sends nothing more. A second call does nothing
        and returns the same; in the child of a fork it is False.
        """
        if self._pid != os.getpid():
            return False
        with self._changed:
            if self._closed:
                return self._empty
            self._wanted = False
            deadline = time.monotonic() + timeout_seconds
            ticket = self._flow.close(self._settings.clock.monotonic() + timeout_seconds)
            threads = list(self._threads)
            self._changed.notify_all()
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0.0))
        self._end_threads()
        with self._changed:
            self._closed = True
            self._empty = self._flow.is_drained(ticket)
            self._changed.notify_all()
        if not threads:
            self._empty = not self._settings.store.has_data()
        self._transport.close()
        return self._empty

    def stats(self) -> SenderStats:
        """Counts of the events sent, retried, refused and dropped so far, also after `close`."""
        self._check_process()
        with self._changed:
            return self._flow.snapshot()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "sending" if self._threads else "idle"
        return f"<Sender to {shown_url(self._settings.url)}, {state}>"

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """The lock, for calls that need an open sender."""
        self._check_process()
        with self._changed:
            if self._closed:
                raise ClosedError("the sender is closed")
            yield

    def _check_process(self) -> None:
        if self._pid != os.getpid():  # the lock may be held for ever by a thread that is not here
            raise ForkedError("the sender was made before a fork; make one in each process")

    def _is_over(self, ticket: int) -> bool:
        return self._flow.is_drained(ticket) or self._flow.problem is not None or self._closed

    def _start(self, *, patient: bool) -> None:
        self._flow.open(patient)
        for number in range(self._settings.concurrency):
            thread = threading.Thread(
                target=self._run,
                args=(self._flow.worker(),),
                name=f"deedbook-http-{number}",
                daemon=True,
            )
            self._threads.append(thread)
            thread.start()

    def _end_threads(self) -> None:
        """End the threads, and requests under way."""
        with self._changed:
            self._flow.stop()
            self._changed.notify_all()
            threads, self._threads = self._threads, []
        self._transport.abort()
        deadline = time.monotonic() + _GRACE_SECONDS
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0.0))
        with self._changed:
            released = self._flow.release()
        for step in released:
            perform(self._settings, step)

    def _end_drain(self) -> None:
        """End the threads of a drain, and begin the threads requested meanwhile."""
        try:
            self._end_threads()
        finally:
            with self._changed:
                self._draining = False
                self._changed.notify_all()
                if self._wanted and not self._closed:
                    self._start(patient=True)

    def _run(self, worker: Worker) -> None:
        try:
            self._drive(worker)
        except BaseException as error:
            log.critical("a thread of %r ended: %r", self, error)
            with self._changed:
                self._flow.problem, self._flow.cause = f"a thread ended: {error!r}", None
                self._changed.notify_all()
            raise

    def _drive(self, worker: Worker) -> bool:
        """Carry out the steps of a worker. Holds the lock only while the worker decides."""
        with self._changed:
            try:
                return self._answer(worker)
            finally:
                worker.close()

    def _answer(self, worker: Worker) -> bool:
        outcome: Any = None
        failure: Exception | None = None
        while not self._closed:  # then the store may be closed, too
            try:
                step = worker.send(outcome) if failure is None else worker.throw(failure)
            except StopIteration as end:
                return bool(end.value)
            outcome = failure = None
            if isinstance(step, Wait):
                seconds = step.seconds
                if seconds is not None:
                    seconds = self._settings.clock.wait_seconds(seconds)
                self._changed.wait(seconds)
                continue
            self._changed.release()
            try:
                outcome = self._perform(step)
            except Exception as error:
                failure = error
            finally:
                self._changed.acquire()
        return False

    def _perform(self, step: Step) -> Any:
        if isinstance(step, Send):
            return self._transport.send(step.prepared, step.headers)
        return perform(self._settings, step)
