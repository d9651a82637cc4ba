"""Requests by urllib3, for threads."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import weakref
from typing import IO, TYPE_CHECKING, Any, cast

from deedbook.http._flow.encode import Prepared, Readable
from deedbook.http._policy import Answer
from deedbook.http._settings import Settings

if TYPE_CHECKING:
    import urllib3

# The size of the pieces of a body: larger pieces need fewer calls.
_BLOCK_BYTES = 1 << 17
# The bytes to read of an answer's body, and the time after the status: the status decides.
ANSWER_BYTES = 2048
ANSWER_SECONDS = 1.0


class Transport:
    """An endpoint, and its connections. Threads share both."""

    def __init__(self, settings: Settings) -> None:
        try:
            import urllib3
        except ImportError as error:
            raise ImportError(
                "deedbook.http.Sender needs urllib3: pip install 'deedbook[http]'"
            ) from error
        self._url = settings.url
        self._timeout = urllib3.Timeout(
            connect=settings.connect_seconds, read=settings.read_seconds
        )
        self._request_seconds = settings.request_seconds
        self._live: weakref.WeakSet[Any] = weakref.WeakSet()
        self._attempts = _Attempts()
        self._pool = _pool_class(self._live, self._attempts, settings.read_seconds)(
            maxsize=settings.concurrency,
            blocksize=_BLOCK_BYTES,
            ssl_context=settings.ssl_context,
        )

    def send(self, prepared: Prepared, headers: dict[str, str]) -> Answer:
        """POST a body. A failed request is an `Answer` without a status.

        But an error of reading the body is raised, because no server caused the error.
        """
        body = _Source(prepared.rewound())
        attempt = self._attempts.current = _Attempt(self._request_seconds)
        try:
            response = self._pool.request(
                "POST",
                self._url,
                body=cast(IO[bytes], body),
                headers=headers,
                timeout=self._timeout,
                retries=False,
                redirect=False,
                preload_content=False,
            )
            try:
                attempt.ends_in(ANSWER_SECONDS)
                return _answer(response)
            finally:
                response.release_conn()
        except Exception as error:
            if body.error is not None:
                raise body.error from None
            if attempt.is_over:
                return Answer(None, error=_text(too_long(self._request_seconds)))
            return Answer(None, error=_text(error), hold=_untrusted(error))
        finally:
            attempt.close()

    def abort(self) -> None:
        """End the requests under way, with an error for their callers."""
        for connection in list(self._live):
            _end(connection)

    def close(self) -> None:
        """Close the idle connections."""
        self._pool.clear()


class _Attempt:
    """A request with a timer, because a server that sends a byte now and then never times out."""

    def __init__(self, seconds: float) -> None:
        self.connection: Any = None
        self.is_over = False
        self._timer = self._started(seconds)

    def ends_in(self, seconds: float) -> None:
        """End the request after so many seconds from now. TimeoutError if already ended."""
        self._timer.cancel()
        self._refuse_over()
        self._timer = self._started(seconds)

    def close(self) -> None:
        """The request has an answer or an error."""
        self._timer.cancel()

    def uses(self, connection: Any) -> None:
        """Note the connection to end."""
        self.connection = connection
        self._refuse_over()

    def _refuse_over(self) -> None:
        if self.is_over:
            raise TimeoutError("the request took too long")

    def _started(self, seconds: float) -> threading.Timer:
        timer = threading.Timer(seconds, self._over)
        timer.daemon = True
        timer.start()
        return timer

    def _over(self) -> None:
        self.is_over = True
        if self.connection is not None:
            _end(self.connection)


class _Attempts(threading.local):
    """The attempt of the current thread."""

    current: _Attempt | None = None


def _end(connection: Any) -> None:
    """End all waits for a connection, with an error."""
    connection.ended = True  # it may be connecting, and have no socket yet
    sock = getattr(connection, "sock", None)
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


class _Source:
    """A body that keeps its error, because urllib3 would report an error of the connection."""

    def __init__(self, body: Readable) -> None:
        self._body = body
        self.error: Exception | None = None

    def read(self, size: int = -1, /) -> bytes | None:
        try:
            return self._body.read(size)
        except Exception as error:
            self.error = error
            raise


def _answer(response: urllib3.BaseHTTPResponse) -> Answer:
    headers = {name.lower(): value for name, value in response.headers.items()}
    try:
        body = response.read(ANSWER_BYTES, decode_content=False)
        is_whole = len(body) < ANSWER_BYTES
    except Exception:  # the status has come, and decides
        body, is_whole = b"", False
    if not is_whole:
        response.close()  # what follows would be taken for the next answer
    return Answer(response.status, headers, body)


def _pool_class(
    live: weakref.WeakSet[Any], attempts: _Attempts, send_seconds: float
) -> type[urllib3.PoolManager]:
    """A PoolManager that notes its connections in ``live``, for `abort` to end.

    A server has so many seconds to read the next byte.
    """
    import urllib3.connection

    class Tracked:
        ended = False
        sock: Any

        def connect(self) -> None:
            self.ended = False
            live.add(self)
            super().connect()  # type: ignore[misc]
            if self.ended:  # meanwhile
                raise ConnectionAbortedError("the sender ended")

        def putrequest(self, *args: Any, **options: Any) -> None:
            if attempts.current is not None:
                attempts.current.uses(self)
            super().putrequest(*args, **options)  # type: ignore[misc]

        def send(self, data: Any) -> None:
            """Send with a limit for each piece; http.client has a single limit for ``data``."""
            if self.sock is None:
                self.connect()
            self.sock.settimeout(send_seconds)  # urllib3 sets it before and after
            rest = memoryview(data)
            while rest:
                rest = rest[self.sock.send(rest) :]

    class Http(Tracked, urllib3.connection.HTTPConnection):
        pass

    class Https(Tracked, urllib3.connection.HTTPSConnection):
        pass

    class HttpPool(urllib3.HTTPConnectionPool):
        ConnectionCls = Http

    class HttpsPool(urllib3.HTTPSConnectionPool):
        ConnectionCls = Https

    class Manager(urllib3.PoolManager):
        def __init__(self, **options: Any) -> None:
            super().__init__(1, **options)
            self.pool_classes_by_scheme = {"http": HttpPool, "https": HttpsPool}

    return Manager


def _untrusted(error: BaseException | None) -> bool:
    """Whether a certificate was refused: urllib3 wraps the error of the ssl module."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        inner = next((arg for arg in error.args if isinstance(arg, BaseException)), None)
        error = inner or error.__cause__
    return False


def too_long(seconds: float) -> TimeoutError:
    return TimeoutError(f"the request was not answered within request_seconds={seconds:g}")


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
