"""Metrics of each format, in Prometheus' own words, from inside and outside the writer."""

import contextlib
import json
import os
import signal
import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import Book, EventStore, Ledger, Pier, Wal, metrics
from deedbook._cli.read import metrics_server as _server
from deedbook._cli.read.metrics_server import serve
from live import ended, running
from logs import append_to
from nostr_events import SMALL, made
from shell import deedbook as command
from shell import ok

Labels = frozenset[tuple[str, str]]


def parsed(text: str) -> dict[tuple[str, Labels], float]:
    parser = pytest.importorskip("prometheus_client.parser")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }


def values(logs: Mapping[str, metrics.Source]) -> dict[str, float]:
    short = {}
    for (name, labels), value in parsed(metrics.text(logs)).items():
        more = [f"{key}={label}" for key, label in sorted(labels) if key not in ("log", "format")]
        short[" ".join([name.removeprefix("deedbook_"), *more])] = value
    return short


def test_a_wal_counts_its_appends_syncs_and_consumers(tmp_path: Path) -> None:
    with Wal.create(tmp_path / "wal", durability="manual") as wal:
        wal.append_many(b"%d" % number for number in range(100))
        wal.sync()
        wal.set_consumer("mailer", wal.head)
        wal.append(b"not durable")
        found = values({"wal": wal})
        end, stats = wal.end, wal.stats()
        unsynced = end - (wal.durable_end or 0)
        assert unsynced > 0
        assert found["unsynced_bytes"] == unsynced
        assert (found["records"], found["end"], found["bytes"]) == (101, end, end)
        assert found["consumer_position consumer=mailer"] == 0
        assert found["consumer_lag_bytes consumer=mailer"] == end
        assert found["appended_records_total"] == 101
        assert found["appends_total"] == stats.appends
        assert found["sync_seconds_count"] == stats.syncs > 0
        assert found["sync_seconds_sum"] == pytest.approx(stats.sync_seconds)
        assert found["sync_seconds_bucket le=+Inf"] == stats.syncs
        wal.sync()
        assert values({"wal": wal})["unsynced_bytes"] == 0
        # From outside: the contents, and nothing about the calls of another handle.
        outside = values({"wal": wal.path})
    assert (outside["records"], outside["consumer_lag_bytes consumer=mailer"]) == (101, end)
    assert not [name for name in outside if name.endswith("_total") or name.startswith("sync")]


def test_buckets_of_syncs_add_up(tmp_path: Path) -> None:
    with Wal.create(tmp_path / "wal", durability="always") as wal:
        for _ in range(20):
            wal.append(b"x")
        found = parsed(metrics.text({"wal": wal}))
        syncs = wal.stats().syncs
    buckets = sorted(
        (float(dict(labels)["le"]), value)
        for (name, labels), value in found.items()
        if name == "deedbook_sync_seconds_bucket"
    )
    counts = [count for _, count in buckets]
    assert counts == sorted(counts) and counts[-1] == syncs >= 20
    assert buckets[0][0] == 2e-6 and buckets[-1][0] == float("inf")


@pytest.mark.parametrize("kind", [Book, Pier])
def test_metrics_name_last_event_of_book_and_pier(tmp_path: Path, kind: type[Any]) -> None:
    with kind.create(tmp_path / "log", epoch=7, durability="manual") as log:
        log.append_many([b"a", b"b"])
        log.sync()
        if kind is Pier:
            assert log.roll() == 9
        log.append(b"c")
        found = values({"log": log})
        assert (found["end"], found["records"], found["unsynced_records"]) == (10, 3, 1)
        assert found["appended_records_total"] == log.stats().records == 3
        assert found["appended_bytes_total"] == log.stats().bytes
        assert found["files"] == (2 if kind is Pier else 1)


def test_metrics_count_unsynced_bytes_of_ledger_and_store(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger", "a", durability="manual", batch_records=3) as ledger:
        assert ledger.unsynced_bytes == 0
        ledger.append_many([b"one", b"two"])
        assert values({"x": ledger})["unsynced_bytes"] == ledger.unsynced_bytes == 2 * (8 + 3)
        ledger.sync()
        assert values({"x": ledger})["unsynced_bytes"] == 0
        ledger.append(b"three")  # finishes the file, and so syncs it
        assert ledger.unsynced_bytes == 0
        ledger.append(b"four")
        assert deedbook.report(ledger).lag_bytes == ledger.unsynced_bytes == 8 + 4
    assert "unsynced_bytes" not in values({"x": str(tmp_path / "ledger")})

    with EventStore.create(tmp_path / "store", durability="manual") as store:
        store.append(deedbook.Event(**made("one")))
        one = store.unsynced_bytes
        store.append(deedbook.Event(**made("two")))
        assert values({"x": store})["unsynced_bytes"] == store.unsynced_bytes > one > 100
        store.sync()
        assert values({"x": store})["unsynced_bytes"] == store.unsynced_bytes == 0
    with EventStore.open(tmp_path / "store") as reader:
        assert reader.unsynced_bytes == 0 and "unsynced_bytes" not in values({"x": reader})
    with pytest.raises(deedbook.ClosedError):
        _ = store.unsynced_bytes


def test_a_ledger_counts_files_and_what_it_drops(tmp_path: Path) -> None:
    options: dict[str, Any] = {"batch_bytes": 500, "max_bytes": 2000, "on_full": "drop_oldest"}
    with Ledger.open(tmp_path, "a", base="events", **options) as ledger:
        for number in range(200):
            ledger.append(b"event %d" % number)
        found, stats = values({"spool": ledger}), ledger.stats()
        # An alert on a constant 0 would never fire.
        assert not {"lost_records", "damaged"} & set(found)
        files = ledger.files
        assert found["files"] == len(files) > 1
        assert found["bytes"] == sum(file.bytes for file in files)
        assert found["dropped_records_total"] == stats.dropped_events > 0
        assert found["appended_records_total"] == stats.log.records == 200
    append_to("ledger", tmp_path, [b"one"], base="others")
    outside = parsed(metrics.text({"spool": tmp_path}))
    names = {dict(labels)["log"] for _, labels in outside}
    assert names == {"spool/events", "spool/others"}
    with Ledger.open(tmp_path, base="others") as snapshot:
        assert values({"others": snapshot})["files"] == 1


def test_an_event_store_counts_its_write_ahead_log(tmp_path: Path) -> None:
    with EventStore.create(tmp_path / "store") as store:
        report = store.import_json(SMALL)
        store.sync()
        stats, found = store.stats(), values({"store": store})
        assert stats.records >= report.stored > 0
        assert stats.syncs > 0 and stats.bytes > 0
        assert found["appended_records_total"] == stats.records
        store.checkpoint()
        after = values({"store": store})
        assert after["records"] == report.stored
        assert after["appended_records_total"] == stats.records + 1, "the checkpoint's own"
    with EventStore.open(tmp_path / "store") as reader:
        assert reader.stats().records == 0 and reader.stats().syncs == 0


def test_metrics_show_damage_loss_and_unreadable_logs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    append_to("book", tmp_path / "book", (b"%d" % number for number in range(50)))
    log = tmp_path / "book" / "book.log"
    whole = log.read_bytes()
    log.write_bytes(whole[: len(whole) // 2])
    Book.repair(tmp_path / "book", accept_loss=True)
    found = values({"book": tmp_path / "book"})
    with Book.open(tmp_path / "book") as book:
        assert book.recovery.loss is not None
        assert found["lost_records"] == book.recovery.loss.records > 0
    (tmp_path / "book" / "book.log").write_bytes(b"KOOB" + bytes(60))
    down = parsed(metrics.text({"book": tmp_path / "book", "none": tmp_path / "none"}))
    up = {dict(labels)["log"]: value for (name, labels), value in down.items() if "_up" in name}
    assert up["none"] == 0
    assert any("no metrics of none: " in record.getMessage() for record in caplog.records)


def test_a_closed_log_is_down(tmp_path: Path) -> None:
    wal = Wal.create(tmp_path / "wal")
    wal.close()
    assert values({"wal": wal}) == {"up": 0}
    with pytest.raises(TypeError, match="a log or a path is needed, not int"):
        metrics.text({"wal": 3})  # type: ignore[dict-item]


def test_prometheus_client_scrapes_the_same(tmp_path: Path) -> None:
    client = pytest.importorskip("prometheus_client")
    with Wal.create(tmp_path / 'a "quoted"\\name', durability="always") as wal:
        wal.append(b"one")
        wal.set_consumer("mailer", 0)
        registry = client.CollectorRegistry()
        name = 'a "quoted"\\name\nwith a line end'
        registry.register(metrics.Collector({name: wal}))
        theirs = parsed(client.generate_latest(registry).decode())
        ours = parsed(metrics.text({name: wal}))
    assert ours == theirs
    assert any(dict(labels)["log"] == name for _, labels in ours)


def test_the_command_prints_text_json_and_a_file(tmp_path: Path) -> None:
    for name in ("one", "two"):
        append_to("wal", tmp_path / name, [b"a", b"b"])
    paths = [str(tmp_path / "one"), str(tmp_path / "two")]
    text = ok("metrics", *paths).decode()
    assert 'deedbook_records{log="two",format="wal"} 2\n' in text
    file = tmp_path / "node.prom"
    ok("metrics", *paths, "-o", file)
    assert file.read_text() == text
    lines = [json.loads(line) for line in ok("metrics", *paths, "--json").splitlines()]
    records = [one for one in lines if one["name"] == "deedbook_records"]
    assert [(one["labels"]["log"], one["value"]) for one in records] == [("one", 2), ("two", 2)]
    gone = command("metrics", *paths, "nowhere")
    assert gone.returncode == 1
    assert b'deedbook_up{log="nowhere"} 0' in gone.stdout and b"Traceback" not in gone.stderr


@pytest.mark.skipif(os.name != "posix", reason="ends by SIGTERM")
def test_metrics_command_listens_next_to_a_writer(tmp_path: Path) -> None:
    with Wal.create(tmp_path / "wal") as wal:
        with running("metrics", tmp_path / "wal", "--listen", "0") as server:
            assert server.stderr is not None
            address = server.stderr.readline().decode().split()[-1]
            for count in (1, 2):
                wal.append(b"one")
                time.sleep(1.1 * (count - 1))  # within a second the server repeats the same text
                with urllib.request.urlopen(address, timeout=30) as answer:
                    assert answer.headers["Content-Type"] == metrics.CONTENT_TYPE
                    text = answer.read().decode()
                assert f'deedbook_records{{log="wal",format="wal"}} {count}\n' in text
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(address.replace("/metrics", "/"), timeout=30)
            server.send_signal(signal.SIGTERM)
            done = ended(server)
        assert done.returncode == 143 and b"Traceback" not in done.stderr


@contextlib.contextmanager
def served(make: Callable[[], str]) -> Iterator[tuple[str, int]]:
    server = serve(make, "127.0.0.1", 0)
    server.daemon_threads = False  # closing waits for the threads
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_address[:2]  # type: ignore[misc]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def asked(address: tuple[str, int], host: str) -> bytes:
    with socket.create_connection(address, timeout=30) as client:
        client.sendall(f"GET /metrics HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
        return b"".join(iter(lambda: client.recv(1 << 16), b""))


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_request_that_fails_leaves_no_traceback(
    is_gone: bool, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    is_asked, go_on = threading.Event(), threading.Event()

    def make() -> str:
        is_asked.set()
        assert go_on.wait(30)
        if not is_gone:
            raise ValueError("no such value")
        return "x" * 1_000_000

    with served(make) as address, socket.create_connection(address) as client:
        client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert is_asked.wait(30)
        if is_gone:  # a reset, not an end
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        go_on.set()
        if not is_gone:
            assert client.recv(1) == b""
    assert capfd.readouterr().err == ""
    said = "a request for metrics failed: ValueError('no such value')"
    assert [one.getMessage() for one in caplog.records] == ([] if is_gone else [said])


def test_slow_metrics_clients_release_their_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_server, "_SECONDS_MAX", 0.2)
    before = threading.active_count()
    with served(lambda: "x 1\n") as address, contextlib.ExitStack() as stack:
        clients = []
        for _ in range(40):
            clients.append(stack.enter_context(socket.create_connection(address, timeout=30)))
            time.sleep(0.02)  # a full backlog costs seconds
        time.sleep(0.3)
        # One thread of the server, and for each of 32 clients a thread that answers and a timer.
        assert threading.active_count() - before <= 65
        end = time.monotonic() + 10
        while time.monotonic() < end:
            for client in clients:
                with contextlib.suppress(OSError):
                    client.sendall(b"G")
            if threading.active_count() - before <= 1:
                break
            time.sleep(0.1)
        assert threading.active_count() - before <= 1
        assert asked(address, "localhost").endswith(b"x 1\n")


def test_requests_at_once_read_the_logs_once() -> None:
    calls = []

    def make() -> str:
        calls.append(None)
        time.sleep(0.1)
        return "x 1\n"

    with served(make) as address, ThreadPoolExecutor(8) as pool:
        list(pool.map(asked, [address] * 8, ["localhost"] * 8))
    assert len(calls) == 1


def test_loopback_server_answers_to_its_names_only() -> None:
    with served(lambda: "x 1\n") as address:
        for host in ("localhost:1", "127.0.0.1", "[::1]:9477", "LOCALHOST"):
            assert asked(address, host).endswith(b"x 1\n"), host
        for host in ("evil.example", "127.0.0.1.evil.example:80", "[", "10.0.0.1"):
            assert b" 421 " in asked(address, host).splitlines()[0], host
