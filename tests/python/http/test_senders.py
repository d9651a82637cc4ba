"""Several senders on one ledger, and what a sender says at its end."""

import json
import logging
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import Ledger
from deedbook.aio import AsyncLedger
from deedbook.http import Policy, Sender, presets
from deedbook.transient import MemoryStore
from endpoint import Endpoint
from http_kinds import MakeSender
from logs import append_to
from shell import deedbook as command
from shell import ok

WORKER = """
import sys
from deedbook import Ledger
from deedbook.http import Sender
path, url, first = sys.argv[1], sys.argv[2], int(sys.argv[3])
ledger = Ledger.open(path, "a", batch_bytes=2000)
with ledger, Sender(ledger, url, key_header=None) as sender:
    for number in range(first, first + 500):
        ledger.append(b'{"n":%d}' % number)
        if number % 50 == 0:
            sender.flush()
    assert sender.drain(30)
"""


def filled(path: Path, files: int) -> None:
    with Ledger.open(path, "a", batch_records=1) as ledger:
        ledger.append_many((b'{"n":%d}' % number for number in range(files)), atomic=True)


def test_four_sender_processes_send_each_event_once(tmp_path: Path) -> None:
    with Endpoint() as endpoint:
        command = [sys.executable, "-c", WORKER, str(tmp_path / "s"), endpoint.url]
        workers = [subprocess.Popen([*command, str(1000 * n)]) for n in range(4)]
        assert [one.wait(60) for one in workers] == [0] * 4
        with Ledger.open(tmp_path / "s", "a") as ledger, Sender(ledger, endpoint.url) as rest:
            assert rest.drain(30)
        arrived = Counter(json.loads(event)["n"] for event in endpoint.events)
    assert arrived == Counter(1000 * n + m for n in range(4) for m in range(500))


def test_a_sender_that_ends_gives_its_files_back(
    sender: MakeSender, endpoint: Endpoint, tmp_path: Path
) -> None:
    filled(tmp_path / "s", 3)
    with Ledger.open(tmp_path / "s", "a") as ledger:
        endpoint.script.extend([503] * 50)
        with sender(ledger) as both:
            assert not both.drain(0.2)
        with Ledger.open(tmp_path / "s", "a") as other:
            fetched = other.fetch()
            assert fetched is not None and len(fetched.data) == 3


@pytest.mark.skipif(os.name == "nt", reason="a ledger has no locks there")
async def test_what_a_handle_releases_another_fetches(tmp_path: Path) -> None:
    filled(tmp_path / "s", 3)
    with Ledger.open(tmp_path / "s", "a") as ledger:
        mine = ledger.fetch(2)
        assert mine is not None
        ledger.release(mine.removable[:1])
        async with AsyncLedger.open(tmp_path / "s", "a") as other:
            theirs = await other.fetch()
            assert theirs is not None and [body.index for body in theirs.data] == [0, 2]
            await other.release(theirs.removable)
            fetched = ledger.fetch()
            assert fetched is not None and [body.index for body in fetched.data] == [0, 1, 2]
        with pytest.raises(TypeError):
            ledger.release([1])  # type: ignore[list-item]


def test_one_bad_event_takes_no_others_along(
    sender: MakeSender, endpoint: Endpoint, tmp_path: Path
) -> None:
    events = [b'{"n":%d}' % number for number in range(40)]
    with Ledger.open(tmp_path / "s", "a") as ledger, sender(ledger) as both:
        ledger.append_many([*events[:20], b"{'oops': 1}", *events[20:]])
        drained = both.drain(30)
        assert (drained.empty, drained.events_sent, drained.events_refused) == (True, 40, 1)
        assert not drained
        assert sorted(endpoint.events) == sorted(events)
        assert [letter.payload for letter in both.sender.dead_letters] == [b"{'oops': 1}"]
        assert both.drain(30)  # nothing was refused since


def test_send_names_other_ledgers_there(endpoint: Endpoint, path: Path) -> None:
    append_to("ledger", path, [b"1"], base="a")
    assert json.loads(ok("send", path, endpoint.url, "--json"))["other_bases"] == ["a"]


def test_headers_come_from_a_file_and_the_environment(
    endpoint: Endpoint, path: Path, tmp_path: Path
) -> None:
    append_to("ledger", path, [b"1", b"no json"])
    headers = tmp_path / "headers"
    headers.write_text("X-Key: one\nX-More: two\n")
    variables = {"DEEDBOOK_HEADER_X_KEY": "lower", "DEEDBOOK_HEADER_AUTHORIZATION": "Bearer t"}
    words = ("send", path, endpoint.url, "--json", "--header", f"@{headers}")
    sent = command(*words, env=variables)
    facts = json.loads(sent.stdout)
    assert (sent.returncode, facts["events_dead"], facts["ok"]) == (1, 1, False)
    given = endpoint.requests[-1].headers
    assert (given["x-key"], given["x-more"]) == ("one", "two")
    assert given["authorization"] == "Bearer t"
    missing = command("send", path, "http://127.0.0.1:1", "--header", "@/no/such/file")
    assert missing.returncode == 2


def test_headers_and_policy_have_their_types(tmp_path: Path) -> None:
    wrong: list[dict[str, Any]] = [{"headers": [("a", "b")]}, {"headers": {"a": 1}}]
    for options in (*wrong, {"policy": {"a": 1}}):
        with pytest.raises(TypeError):
            Sender(MemoryStore(), "http://127.0.0.1:1", dead_letters=tmp_path, **options)
    with pytest.raises(deedbook.InvalidArgumentError):
        Policy(statuses={"a": "retry"})  # type: ignore[dict-item]


def test_credentials_in_plain_text_are_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    headers = {"authorization": "Bearer secret"}

    def make(url: str) -> None:
        Sender(MemoryStore(), url, dead_letters=tmp_path, headers=headers).close()

    with caplog.at_level(logging.WARNING, "deedbook.http"):
        make("https://plain.example/x")
        make("http://127.0.0.1:1/x")
        assert not caplog.records
        make("http://plain.example/x")
        make("http://plain.example/y")
    assert len(caplog.records) == 1
    assert "secret" not in caplog.text


def test_a_collector_below_a_path_is_reached() -> None:
    """VictoriaLogs takes OTLP at /insert/opentelemetry/v1/logs."""
    preset = presets.otlp_logs("http://h:9428/insert/opentelemetry/")
    assert preset.url == "http://h:9428/insert/opentelemetry/v1/logs"
    with pytest.raises(deedbook.InvalidArgumentError):
        presets.otlp_logs("http://h/?a=b")


def test_a_limit_beyond_one_write_is_refused(tmp_path: Path) -> None:
    most = 0x7FFFF000 - 8
    Ledger.open(tmp_path / "s", "a", record_bytes_max=most).close()
    for wrong in (most + 1, (1 << 32) - 9):
        with pytest.raises(deedbook.InvalidArgumentError):
            Ledger.open(tmp_path / "s", "a", record_bytes_max=wrong)
    with pytest.raises(deedbook.InvalidArgumentError):
        Ledger.open(tmp_path / "s", "a", batch_bytes=10_000, max_bytes=2000)
