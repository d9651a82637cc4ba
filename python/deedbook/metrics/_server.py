"""An HTTP server with the metrics at ``/metrics``."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from deedbook._core import __version__
from deedbook.metrics._families import CONTENT_TYPE

__all__ = ["serve"]

_SECONDS_MAX = 10.0
"""So long a client may take for its request."""


def serve(make: Callable[[], str], host: str, port: int) -> ThreadingHTTPServer:
    """A server that answers ``GET /metrics`` with what ``make`` gives.

    It listens when this returns; its method ``serve_forever`` answers. Raises OSError if it cannot
    listen there.
    """

    class Handler(_Handler):
        text = staticmethod(make)

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that goes away is no error; another one is a line, not a traceback."""
            error = sys.exc_info()[1]
            if not isinstance(error, ConnectionError | TimeoutError):
                logging.getLogger("deedbook").error("a request for metrics failed: %r", error)

    return Server((host, port), Handler)


class _Handler(BaseHTTPRequestHandler):
    server_version = f"deedbook/{__version__}"
    timeout = _SECONDS_MAX
    text: Callable[[], str]

    def do_GET(self) -> None:
        """Answer with the metrics, or say where they are."""
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
