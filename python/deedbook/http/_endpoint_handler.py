"""How the test endpoint treats one request."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import socket
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from deedbook.http._encode import decompressor
from deedbook.http._received import events_in

if TYPE_CHECKING:
    from deedbook.http.endpoint import Endpoint

_BODY_BYTES_MAX: Final = 256 << 20
_ACCEPTED: Final = "gzip, zstd, identity"


@dataclass
class _Verdict:
    """What is done with a request, and what is counted of it."""

    status: int | None
    """Status to answer with; None: end the connection."""
    values: dict[str, Any] = field(default_factory=dict)
    """What the answer says."""
    headers: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    events: int = 0
    duplicate: bool = False
    stall: bool = False


class Handler(http.server.BaseHTTPRequestHandler):
    """Reads a request, checks it, and does with it what the endpoint says."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 120
    server: Any

    def do_POST(self) -> None:
        """Take a batch, or fail on request."""
        endpoint: Endpoint = self.server.endpoint
        with endpoint.serving():
            self._serve(endpoint)

    def _serve(self, endpoint: Endpoint) -> None:
        self._length = 0
        verdict = self._take(endpoint)
        # Counted before it is answered: a client that has the answer finds it in the counters.
        endpoint.note(
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            length=self._length,
            key=self.headers.get("Idempotency-Key"),
            status=verdict.status,
            events=verdict.events,
            duplicate=verdict.duplicate,
            counts=verdict.counts,
        )
        if verdict.stall:
            endpoint.ended.wait(endpoint.faults.stall_seconds)
        if verdict.status is None:
            self._hang_up()
        else:
            self._reply(verdict.status, verdict.headers, verdict.values)

    do_PUT = do_POST

    def do_GET(self) -> None:
        """What was counted so far, as JSON."""
        self._reply(200, {}, self.server.endpoint.stats().to_dict())

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: the endpoint counts."""

    def _take(self, endpoint: Endpoint) -> _Verdict:
        """Read a request, and store its events unless it is to fail."""
        behaviour = endpoint.behaviour()
        length = self._claimed()
        if length is None:
            self.close_connection = True  # where the next request begins is not known
            error = {"error": "no valid Content-Length"}
            return _Verdict(411, error, counts={"without_length": 1})
        if behaviour == "reset":
            self._length = len(self.rfile.read(length // 2))
            return _Verdict(None, counts={"failed": 1})
        body = self.rfile.read(length)
        self._length = len(body)
        if len(body) < length:
            return _Verdict(None, counts={"short": 1})
        if behaviour == "stall":
            return _Verdict(None, counts={"failed": 1}, stall=True)
        if isinstance(behaviour, int):
            retry_after = endpoint.faults.retry_after
            asked = behaviour in (429, 503) and retry_after is not None
            headers = {"Retry-After": str(retry_after)} if asked else {}
            return _Verdict(behaviour, {"error": "failed on request"}, headers, {"failed": 1})
        verdict = self._keep(endpoint, body)
        if behaviour == "drop" and verdict.status == 200:
            verdict.status, verdict.counts = None, {"failed": 1}
        return verdict

    def _keep(self, endpoint: Endpoint, body: bytes) -> _Verdict:
        """Store what is in a body, or refuse it."""
        accepted = {"Accept-Encoding": _ACCEPTED}  # RFC 7694: what requests may be encoded with
        coding = self.headers.get("Content-Encoding", "").strip().lower()
        largest = endpoint.faults.max_bytes
        most = _BODY_BYTES_MAX if largest is None else min(largest, _BODY_BYTES_MAX)
        try:
            undo = decompressor(coding, most)
        except ValueError as error:
            return _Verdict(415, {"error": str(error)}, accepted)
        try:
            body = undo(body)
            if len(body) > most:
                there = f"more than {most}" if coding in ("gzip", "zstd") else f"{len(body)}"
                return _Verdict(413, {"error": f"{there} bytes, at most {most}"})
            kind = self.headers.get("Content-Type", "")
            events = events_in(body, kind) if endpoint.parse else []
        except Exception as error:  # of the decompressor or the parser
            return _Verdict(400, {"error": f"not understood: {error}"})
        duplicate = endpoint.store(self.headers.get("Idempotency-Key"), events)
        values = {"events": len(events), "duplicate": duplicate}
        return _Verdict(200, values, accepted, events=len(events), duplicate=duplicate)

    def _claimed(self) -> int | None:
        """The Content-Length; None if there is no valid one."""
        claimed = self.headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in self.headers or len(claimed) != 1:
            return None
        text = claimed[0].strip()
        if not (text.isascii() and text.isdigit()) or int(text[:20]) > _BODY_BYTES_MAX:
            return None
        return int(text)

    def _reply(self, status: int, headers: dict[str, str], values: dict[str, Any]) -> None:
        body = b"" if status in (204, 304) else json.dumps(values).encode() + b"\n"
        with contextlib.suppress(OSError):  # the client is gone
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            for name, value in headers.items():
                self.send_header(name, value)
            if body:
                self.send_header("Content-Length", str(len(body)))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

    def _hang_up(self) -> None:
        """End the connection by a reset, so that the client sees an error, not an end."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            at_once = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
            self.connection.close()
