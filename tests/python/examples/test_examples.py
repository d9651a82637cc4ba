"""The programs of examples/python do what their first paragraph says, as a user starts them."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from deedbook import Ledger, Wal
from endpoint import Endpoint
from live import line, program
from places import EXAMPLES

pytestmark = [
    pytest.mark.skipif(not EXAMPLES.exists(), reason="examples are not in this checkout"),
    pytest.mark.skipif(os.name != "posix", reason="ends the programs with signals"),
]


def run(name: str, *arguments: object, code: int = 0) -> str:
    command = [sys.executable, EXAMPLES / f"{name}.py", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def started(name: str, *arguments: object) -> AbstractContextManager[subprocess.Popen[str]]:
    return program(EXAMPLES / f"{name}.py", *arguments)


def post(url: str, body: bytes) -> int:
    try:
        with urllib.request.urlopen(url, data=body, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_the_outbox_delivers_what_it_accepted(tmp_path: Path) -> None:
    pytest.importorskip("urllib3")
    spool = tmp_path / "spool"
    # The other server is down: a port that nobody listens on.
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    with started("outbox", spool, f"http://127.0.0.1:{port}", "--port", 0) as service:
        url = line(service)
        assert [post(url, b'{"order":%d}' % n) for n in range(5)] == [202] * 5
        assert post(url, b"no JSON") == 400
        service.kill()
    # It is up now, and the service starts again.
    with Endpoint() as endpoint, started("outbox", spool, endpoint.url, "--port", 0) as service:
        assert post(line(service), b'{"order": 5}') == 202
        service.send_signal(signal.SIGTERM)
        assert line(service) == "all events are delivered"
        assert service.wait(30) == 0
        assert [json.loads(event)["order"] for event in endpoint.events] == list(range(6))
    with Ledger.open(spool, "a") as ledger:
        assert not ledger.has_data()


def test_the_asyncio_service_acknowledges_and_streams_lines(tmp_path: Path) -> None:
    with started("asyncio_service", tmp_path / "log", "--port", 0) as service:
        address = ("127.0.0.1", int(line(service)))
        with (
            socket.create_connection(address) as writer,
            socket.create_connection(address) as reader,
        ):
            replies, followed = writer.makefile("rb"), reader.makefile("rb")
            writer.sendall(b"ADD one\nADD two\n")
            assert [replies.readline(), replies.readline()] == [b"0\n", b"11\n"]
            reader.sendall(b"FOLLOW 11\n")
            assert followed.readline() == b"22 two\n"
            writer.sendall(b"ADD three\n")
            assert replies.readline() == b"22\n"
            assert followed.readline() == b"35 three\n"
            writer.sendall(b"what\n")
            assert replies.readline().startswith(b"ERROR")
            service.send_signal(signal.SIGTERM)
            assert service.wait(30) == 0
            replies.close()
            followed.close()
    with Wal.open(tmp_path / "log") as wal:
        assert list(wal.payloads()) == [b"one", b"two", b"three"]


def test_the_bank_replays_its_events_after_the_snapshot(tmp_path: Path) -> None:
    bank = tmp_path / "bank"
    assert run("event_sourcing", bank, "deposit", "ada", 100) == "event 1\n"
    run("event_sourcing", bank, "snapshot")
    run("event_sourcing", bank, "withdraw", "ada", 30)
    run("event_sourcing", bank, "deposit", "bob", 5)
    refused = run("event_sourcing", bank, "withdraw", "bob", 6, code=1)
    assert refused == "refused: bob has 5, and 6 is more\n"
    assert run("event_sourcing", bank, "balances") == "ada 70\nbob 5\n"
    (bank / "snapshot.json").unlink()
    assert run("event_sourcing", bank, "balances") == "ada 70\nbob 5\n"


def test_the_tail_copies_each_record_once_across_kills(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    log, base = tmp_path / "orders", tmp_path / "orders.duckdb"
    with Wal.create(log) as wal:
        wal.append_many([b'{"id":%d,"amount":2}' % n for n in range(1000)])
        wal.sync()
    with started("tail_duckdb", log, base) as tail:
        assert line(tail).startswith("1000 records")
        tail.kill()
    with Wal.open(log, "a") as wal:
        wal.append_many([b'{"id":%d,"amount":2}' % n for n in range(1000, 1500)])
    run("tail_duckdb", log, base, "--once")
    run("tail_duckdb", log, base, "--once")
    with duckdb.connect(base) as found:
        counted = "SELECT count(*), count(DISTINCT id), sum(amount) FROM orders"
        assert found.execute(counted).fetchone() == (1500, 1500, 3000)
    with Wal.open(log) as wal:
        assert wal.consumers() == {"duckdb": wal.end}


def test_a_killed_worker_does_its_job_again(tmp_path: Path) -> None:
    log = tmp_path / "jobs"
    for job in ("one", "two", "three"):
        run("work_queue", log, "add", job)
    with started("work_queue", log, "work", "--seconds", 0.3) as worker:
        assert line(worker) == "one"
        time.sleep(0.1)  # it is in the middle of "two"
        worker.kill()
    assert run("work_queue", log, "work", "--idle", 0.5) == "two\nthree\n"
    assert run("work_queue", log, "work", "--idle", 0.1) == ""
