"""An HTTP server with the metrics at ``/metrics``."""

from __future__ import annotations

import logging
import socket
import sys
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from deedbook._core import __version__
from deedbook._system.hosts import is_loopback
from deedbook.metrics import CONTENT_TYPE

__all__ = ["serve"]

_SECONDS_MAX = 10.0
"""The longest time of a connection."""
_CONNECTIONS_MAX = 32
"""Further connections are closed without an answer."""
_CACHED_SECONDS = 1.0
"""Seconds for which requests get the same text: a new text needs a read of all logs."""


def serve(make: Callable[[], str], host: str, port: int) -> ThreadingHTTPServer:
    """A server that answers ``GET /metrics`` with the text of ``make``.

    The server already listens; the method ``serve_forever`` answers requests. On a loopback
    address, the server only answers requests to names of the local machine: a foreign web page
    with a name rebound to the address reads nothing. Raises OSError if the server cannot listen.
    """

    class Handler(_Handler):
        text = staticmethod(_cached(make))
        names_checked = is_loopback(host)

    return _Server((host, port), Handler)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._free = threading.BoundedSemaphore(_CONNECTIONS_MAX)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, if a thread is free."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and close the connection in time: a slow client would hold the thread."""
        timer = threading.Timer(_SECONDS_MAX, _end, (request,))
        timer.daemon = True
        timer.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            timer.cancel()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect. Report other errors in a line, without a traceback."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):
            logging.getLogger("deedbook").error("a request for metrics failed: %r", error)


def _end(request: socket.socket) -> None:
    try:
        request.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the connection is closed


def _cached(make: Callable[[], str]) -> Callable[[], str]:
    """``make`` in one thread at a time, with the text cached for a second."""
    lock = threading.Lock()
    until, text = -1.0, ""

    def cached() -> str:
        nonlocal until, text
        with lock:
            if time.monotonic() >= until:
                text = make()
                until = time.monotonic() + _CACHED_SECONDS
            return text

    return cached


def _is_own(host: str) -> bool:
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False


class _Handler(BaseHTTPRequestHandler):
    server_version = f"deedbook/{__version__}"
    timeout = _SECONDS_MAX
    text: Callable[[], str]
    names_checked: bool

    def do_GET(self) -> None:
        """Answer with the metrics, or with the address of the metrics."""
        asked = self.headers.get("Host")
        if self.names_checked and asked is not None and not _is_own(asked):
            text = "ask for this machine by localhost or by its loopback address\n"
            self._answer(HTTPStatus.MISDIRECTED_REQUEST, "text/plain", text)
            return
        if self.path.partition("?")[0] != "/metrics":
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", "the metrics are at /metrics\n")
            return
        self._answer(HTTPStatus.OK, CONTENT_TYPE, type(self).text())

    do_HEAD = do_GET

    def _answer(self, status: HTTPStatus, content_type: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: scrapes are no news."""
