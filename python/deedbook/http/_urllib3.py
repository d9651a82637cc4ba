"""Requests by urllib3, for threads."""

from __future__ import annotations

import contextlib
import socket
import ssl
import weakref
from typing import IO, TYPE_CHECKING, Any, cast

from deedbook.http._encode import Prepared, Readable
from deedbook.http._policy import Answer
from deedbook.http._settings import Settings

if TYPE_CHECKING:
    import urllib3

# Parts of a body that are read and sent at once: larger ones take fewer calls.
_BLOCK_BYTES = 1 << 17
# What is kept of an answer's body, and what is read of it so that the connection can be used again.
ANSWER_BYTES = 2048
_ANSWER_BYTES_READ = 1 << 16


class Transport:
    """One endpoint, and the connections to it, which threads share."""

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
        self._live: weakref.WeakSet[Any] = weakref.WeakSet()
        self._pool = _pool_class(self._live, settings.read_seconds)(
            maxsize=settings.concurrency,
            blocksize=_BLOCK_BYTES,
            ssl_context=settings.ssl_context,
        )

    def send(self, prepared: Prepared, headers: dict[str, str]) -> Answer:
        """POST a body. Whatever goes wrong is an `Answer` without a status.

        But an error of reading the body is raised: no server has to do with it.
        """
        body = _Source(prepared.rewound())
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
                return _answer(response)
            finally:
                response.release_conn()
        except Exception as error:
            if body.error is not None:
                raise body.error from None
            return Answer(None, error=_text(error), hold=_untrusted(error))

    def abort(self) -> None:
        """End the requests under way, with an error for those that wait for them."""
        for connection in list(self._live):
            connection.ended = True  # it may be connecting, and have no socket yet
            sock = getattr(connection, "sock", None)
            if sock is not None:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._pool.clear()


class _Source:
    """A body that keeps its error: urllib3 takes it for one of the connection."""

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
        body = response.read(_ANSWER_BYTES_READ, decode_content=False)
        is_whole = len(body) < _ANSWER_BYTES_READ
    except Exception:  # the status has come, and decides
        body, is_whole = b"", False
    if not is_whole:
        response.close()  # what follows would be taken for the next answer
    return Answer(response.status, headers, body[:ANSWER_BYTES])


def _pool_class(live: weakref.WeakSet[Any], send_seconds: float) -> type[urllib3.PoolManager]:
    """A PoolManager that notes its connections in ``live``, so that they can be ended.

    A server has so many seconds to take the next byte.
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

        def send(self, data: Any) -> None:
            """As of http.client, which gives all of ``data`` the time that connecting has."""
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


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
