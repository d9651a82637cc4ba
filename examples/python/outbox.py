"""An outbox: a web service that answers at once and delivers the events later.

    python outbox.py spool http://127.0.0.1:8080/batch --port 7001
    curl --data '{"order": 1}' http://127.0.0.1:7001/events

The service answers 202 once the event is on stable storage. A sender delivers it in the background,
also after a crash or a restart, and while the other server is down. On SIGTERM the service stops
taking events and tries for ten seconds to deliver the rest. The next start delivers what remains.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import FrameType

from deedbook import Ledger
from deedbook.http import Sender, presets

EVENT_BYTES_MAX = 1 << 20


class Service(ThreadingHTTPServer):
    """All threads share a ledger, and concurrent appends share syncs."""

    def __init__(self, port: int, ledger: Ledger) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.ledger = ledger


class Handler(BaseHTTPRequestHandler):
    """POST /events stores one event."""

    timeout = 30  # seconds, for a client that sends nothing

    def do_POST(self) -> None:
        try:
            length = int(self.headers["Content-Length"] or "")
        except (TypeError, ValueError):
            return self.send_error(411)
        if not 0 < length <= EVENT_BYTES_MAX:
            return self.send_error(413)
        body = self.rfile.read(length)
        try:
            event = json.dumps(json.loads(body)).encode()  # one line, and surely JSON
        except ValueError:
            return self.send_error(400, "The body is not JSON")
        assert isinstance(self.server, Service)
        self.server.ledger.append(event)  # on stable storage when it returns
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing for each request."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("spool", help="directory of the ledger; it is created")
    parser.add_argument("url", help="where the events go, as JSON arrays")
    parser.add_argument("--port", type=int, default=7001, help="port of this service; 0 for any")
    options = parser.parse_args()

    # With "always", a power cut does not bring back sent and removed events.
    with (
        Ledger.open(options.spool, "a", durability="always") as ledger,
        Service(options.port, ledger) as service,
    ):

        def stop(_number: int, _frame: FrameType | None) -> None:
            # shutdown() waits for serve_forever() of this thread.
            threading.Thread(target=service.shutdown).start()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        sender = Sender(ledger, preset=presets.json_array(options.url), interval_seconds=0.5)
        print(f"http://127.0.0.1:{service.server_port}/events", flush=True)
        with sender:
            service.serve_forever()
        print("all events are delivered" if not ledger.has_data() else "some events still wait")
    return 0


if __name__ == "__main__":
    sys.exit(main())
