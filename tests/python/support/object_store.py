"""A real S3 server on this machine, and a gate with failures before the server."""

import contextlib
import http.client
import http.server
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from doc_blocks import free_port

KEY, SECRET = "AKIDEEDBOOKTEST", "a-secret-that-no-line-may-show"
BUCKET = "bucket"

Behaviour = Literal["ok", "slow-down", "fail", "stall", "reset", "drop"]
"""The treatment of a request.

- ``"ok"``: the server answers.
- ``"slow-down"``: 503 SlowDown, as S3 throttles; the server gets nothing.
- ``"fail"``: 500 InternalError; the server gets nothing.
- ``"stall"``: no answer; the server gets nothing.
- ``"reset"``: the connection ends; the server gets nothing.
- ``"drop"``: the server acts, and the connection ends without its answer.
"""


class Request(NamedTuple):
    number: int
    method: str
    name: str


class Server:
    def __init__(self, top: Path) -> None:
        beside = Path(sys.executable).parent / "versitygw"
        program = str(beside) if beside.exists() else shutil.which("versitygw")
        if program is None:
            pytest.skip("no versitygw: scripts/s3.sh installs it with Go")
        self.objects = top / "objects"
        (self.objects / BUCKET).mkdir(parents=True)
        (top / "attributes").mkdir()
        self.port = free_port()
        words = ["--port", f"127.0.0.1:{self.port}", "--quiet"]
        words += ["posix", "--sidecar", str(top / "attributes"), str(self.objects)]
        root = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
        self._log = (top / "log").open("wb")
        self._process = subprocess.Popen(
            [program, *words], stdout=self._log, stderr=self._log, env={**os.environ, **root}
        )
        limit = time.monotonic() + 30
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            assert self._process.poll() is None and time.monotonic() < limit, (
                top / "log"
            ).read_text()
            time.sleep(0.02)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()


class Gate:
    """A proxy before the server. ``behave`` decides about each request, and may kill the client."""

    def __init__(self, port: int) -> None:
        self.requests: list[Request] = []
        self.stored: list[str] = []
        self.behave: Callable[[Request], Behaviour] = lambda request: "ok"
        self.after: Callable[[Request], None] = lambda request: None
        """Called when the server has acted, before the client gets the answer."""
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        gate = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _handle(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                gate._pass(self, body, port)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _handle

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def reset(self) -> None:
        self.requests, self.stored = [], []
        self.behave, self.after = lambda request: "ok", lambda request: None

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._server.server_address[1]}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
        }

    def close(self) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _pass(self, client: http.server.BaseHTTPRequestHandler, body: bytes, port: int) -> None:
        name = client.path.partition("?")[0].removeprefix(f"/{BUCKET}/")
        with self._lock:
            request = Request(len(self.requests), client.command, name)
            self.requests.append(request)
        behaviour = self.behave(request)
        if behaviour in ("slow-down", "fail"):
            _refuse(client, behaviour)
        elif behaviour == "stall":
            self._stopped.wait(30)
            client.close_connection = True
        elif behaviour == "reset":
            client.close_connection = True
        else:
            self._forward(client, request, body, port, answers=behaviour == "ok")

    def _forward(
        self,
        client: http.server.BaseHTTPRequestHandler,
        request: Request,
        body: bytes,
        port: int,
        answers: bool,
    ) -> None:
        server = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        with contextlib.closing(server):
            server.putrequest(
                client.command, client.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in client.headers.items():
                server.putheader(name, value)
            server.endheaders(body)
            answer = server.getresponse()
            data = answer.read()
        if request.method == "PUT" and answer.status == 200:
            with self._lock:
                self.stored.append(request.name)
        self.after(request)
        if not answers:
            client.close_connection = True
            return
        with contextlib.suppress(OSError):  # the client may be dead
            client.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                    client.send_header(name, value)
            length = answer.getheader("content-length") if request.method == "HEAD" else None
            client.send_header("content-length", length or str(len(data)))
            client.end_headers()
            client.wfile.write(data)


def _refuse(client: http.server.BaseHTTPRequestHandler, behaviour: Behaviour) -> None:
    status, code = {"slow-down": (503, "SlowDown"), "fail": (500, "InternalError")}[behaviour]
    text = f"<Error><Code>{code}</Code><AWSAccessKeyId>{KEY}</AWSAccessKeyId></Error>".encode()
    client.send_response_only(status)
    client.send_header("content-length", str(len(text)))
    client.end_headers()
    if client.command != "HEAD":
        client.wfile.write(text)


@contextlib.contextmanager
def serving(top: Path) -> Iterator[Gate]:
    server = Server(top)
    gate = Gate(server.port)
    try:
        yield gate
    finally:
        gate.close()
        server.close()
