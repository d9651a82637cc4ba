"""Presets for endpoints, and what senders say when a library is missing."""

from __future__ import annotations

import contextlib
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("urllib3")
pytest.importorskip("aiohttp")

from deedbook.http import Answer, DeadLetters, Limits, Policy, presets
from deedbook.http._flow import Flow
from deedbook.http._settings import settings
from deedbook.http._steps import Send, perform
from deedbook.http.endpoint import Endpoint
from http_kinds import QUICK, Both, SkippingClock, events, store_of


@pytest.fixture(params=["threads", "asyncio"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as endpoint:
        yield endpoint


def sender(kind: str, store: Any, endpoint: Endpoint, folder: Path, **options: Any) -> Both:
    return Both(kind, store, endpoint.url, dead_letters=folder, **options)


# -- presets --------------------------------------------------------------------------------------

TRACK = [b'{"type":"track","event":"e%d"}' % n for n in range(3)]


def test_segment(kind: str, endpoint: Endpoint, tmp_path: Path) -> None:
    preset = presets.segment("key", url=endpoint.url)
    assert preset.limits == Limits(2500, 500_000, 32_000)
    assert "a2V5" not in repr(preset), "keys are not shown"
    with Both(kind, store_of(TRACK), preset=preset, dead_letters=tmp_path) as both:
        assert both.drain(30)
    (request,) = endpoint.requests
    assert request.headers["authorization"] == "Basic a2V5Og==" and endpoint.events == TRACK


def test_a_preset_brings_its_limits_unless_others_are_given(
    kind: str, endpoint: Endpoint, tmp_path: Path
) -> None:
    large = events(1, 33_000)
    for given, dead in (({}, 1), ({"limits": Limits(event_bytes_max=40_000)}, 0)):
        preset = presets.segment("key", url=endpoint.url)
        folder = tmp_path / str(dead)
        with Both(kind, store_of(large), preset=preset, dead_letters=folder, **given) as both:
            assert both.drain(30).empty
        assert len(DeadLetters(folder)) == dead
    assert endpoint.events == large


def test_a_400_of_segment_is_divided(kind: str, endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.script.extend([400, "ok", 400])
    preset = presets.segment("key", url=endpoint.url)
    with Both(kind, store_of(TRACK), preset=preset, dead_letters=tmp_path) as both:
        assert both.drain(30).empty
    assert endpoint.events == TRACK[:2]
    assert [letter.payload for letter in DeadLetters(tmp_path)] == TRACK[2:]


@pytest.mark.parametrize("name", ["rudderstack", "posthog", "ndjson", "json_array", "otlp_logs"])
def test_presets_make_bodies_that_are_understood(
    kind: str, endpoint: Endpoint, tmp_path: Path, name: str
) -> None:
    base = f"http://127.0.0.1:{endpoint.port}"
    preset = {
        "rudderstack": lambda: presets.rudderstack("key", base),
        "posthog": lambda: presets.posthog("key", host=base + "/"),
        "ndjson": lambda: presets.ndjson(endpoint.url),
        "json_array": lambda: presets.json_array(endpoint.url),
        "otlp_logs": lambda: presets.otlp_logs(base, resource={"service.name": 'a"b'}),
    }[name]()
    with Both(kind, store_of(TRACK), preset=preset, dead_letters=tmp_path) as both:
        assert both.drain(30)
    assert endpoint.events == TRACK
    (request,) = endpoint.requests
    paths = {"rudderstack": "/v1/batch", "posthog": "/batch/", "otlp_logs": "/v1/logs"}
    assert request.path == paths.get(name, "/v1/batch")
    json = "application/x-ndjson" if name == "ndjson" else "application/json"
    assert request.headers["content-type"] == json


def test_the_bodies_of_presets_byte_by_byte() -> None:
    def body(preset: presets.Preset) -> bytes:
        assert preset.envelope is not None
        sealed = preset.envelope.seal()
        return sealed.header + sealed.separator.join([b"1", b"2"]) + sealed.footer

    assert body(presets.ndjson()) == b"1\n2\n"
    assert body(presets.json_array()) == b"[1,2]"
    assert body(presets.otlp_logs("http://h", resource={"service.name": "shop"})) == (
        b'{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":'
        b'{"stringValue":"shop"}}]},"scopeLogs":[{"scope":{"name":"deedbook"},'
        b'"logRecords":[1,2]}]}]}'
    )
    segment = body(presets.segment("k"))
    assert segment.startswith(b'{"batch":[1,2],"sentAt":"2')
    assert segment.endswith(b'Z","writeKey":"k"}')


def test_otlp_repeats_a_request_after_four_statuses_only() -> None:
    """It did so after 409, 423 and 425, too, which OTLP forbids."""
    policy = Policy(statuses=presets.otlp_logs("http://h").statuses)
    repeated = [n for n in range(100, 600) if policy.action_for(Answer(n)) == "retry"]
    assert repeated == [429, 502, 503, 504]


def test_what_otlp_drops_of_an_accepted_request_is_kept(kind: str, tmp_path: Path) -> None:
    from deedbook.http import Answer

    says = b'{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"too old"}}'
    preset = presets.otlp_logs("http://127.0.0.1:1")
    assert preset.partly_refused is not None
    assert preset.partly_refused(Answer(200, body=says)) == (2, "too old")
    for body in (b"{}", b'{"partialSuccess":{}}', b'{"partialSuccess":', b""):
        assert preset.partly_refused(Answer(200, body=body)) is None

    from dataclasses import replace

    with Endpoint() as endpoint:
        told = replace(preset, url=endpoint.url, partly_refused=lambda answer: (2, "too old"))
        with Both(kind, store_of(TRACK), preset=told, dead_letters=tmp_path) as both:
            assert both.drain(30).empty
            stats = both.sender.stats()
    assert (stats.events_partly_refused, stats.events_dead, stats.events_sent) == (2, 3, 3)
    assert "dropped 2 of these 3 events: too old" in next(iter(DeadLetters(tmp_path))).reason


def test_a_message_of_otlp_that_is_no_text_holds_nothing_up(tmp_path: Path) -> None:
    """A lone surrogate in it could not be written as a dead letter, and the queue stood."""
    says = b'{"partialSuccess":{"rejectedLogRecords":1,"errorMessage":"a\\ud800\\u001b[2Jb"}}'
    preset = presets.otlp_logs("http://127.0.0.1:1")
    store = store_of(TRACK)
    made = {"dead_letters": tmp_path, "clock": SkippingClock()}
    of_sender = settings(store, None, preset, made)  # type: ignore[arg-type]
    flow = Flow(of_sender)
    flow.close(float("inf"))
    worker, outcome = flow.worker(), None
    with contextlib.suppress(StopIteration):
        while True:
            step = worker.send(outcome)
            sent = isinstance(step, Send)
            outcome = Answer(200, body=says) if sent else perform(of_sender, step)
    assert not store.has_data()
    letters = list(DeadLetters(tmp_path))
    assert [letter.payload for letter in letters] == TRACK
    assert letters[0].reason.endswith("1 of these 3 events: a\ufffd\ufffd[2Jb")


@pytest.mark.parametrize("number", [b"1e999", b"[" * 1500])
def test_a_number_of_otlp_that_is_none_ends_no_sender(number: bytes) -> None:
    """An infinite number, or lists in lists, ended the thread that read the answer."""
    preset = presets.otlp_logs("http://127.0.0.1:1")
    assert preset.partly_refused is not None
    says = b'{"partialSuccess":{"rejectedLogRecords":%s}}' % number
    assert preset.partly_refused(Answer(200, body=says)) in (
        None,
        (1, "the answer is longer than what is kept of it"),
    )


def answer_in_pieces(listener: socket.socket, pieces: list[bytes]) -> None:
    """Take one request and answer 200 in chunks, with a pause after each."""
    connection, _ = listener.accept()
    with connection, connection.makefile("rb") as request:
        length = 0
        while line := request.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        request.read(length)
        # A client that has read enough may go.
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for piece in [*pieces, b""]:
                connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
                time.sleep(0.1)


@pytest.mark.parametrize("size", [10, 5000])
def test_a_long_or_divided_answer_of_otlp_is_understood(
    kind: str, tmp_path: Path, size: int
) -> None:
    """An answer that was cut, or came in pieces, was taken for plain success: events were gone."""
    says = b'{"partialSuccess":{"rejectedLogRecords":"5","errorMessage":"%s"}}' % (b"x" * size)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        pieces = [says[:9], says[9:]]
        server = threading.Thread(target=answer_in_pieces, args=(listener, pieces), daemon=True)
        server.start()
        preset = presets.otlp_logs(f"http://127.0.0.1:{listener.getsockname()[1]}")
        store = store_of(events(6))
        with Both(kind, store, preset=preset, dead_letters=tmp_path) as both:
            assert both.drain(30).empty
            stats = both.sender.stats()
        server.join(30)
    assert (stats.events_partly_refused, stats.events_dead) == (5, 6)
    why = "x" * size if size < 2000 else "the answer is longer than what is kept of it"
    letters = list(DeadLetters(tmp_path))
    assert [letter.payload for letter in letters] == events(6)
    assert letters[0].reason == f"the endpoint dropped 5 of these 6 events: {why}"


# -- what is missing ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hidden", "made"),
    [
        ("urllib3", "Sender(store, 'http://h', dead_letters='d')"),
        ("aiohttp", "AsyncSender(store, 'http://h', dead_letters='d')"),
        ("zstd", "Sender(store, 'http://h', dead_letters='d', compression='zstd')"),
    ],
)
def test_a_missing_library_is_named_with_what_to_install(hidden: str, made: str) -> None:
    code = f"""if 1:
        import sys
        for name in ('urllib3', 'aiohttp', 'backports.zstd', 'compression.zstd'):
            if {hidden!r} in name:
                sys.modules[name] = None
        from deedbook.http import AsyncSender, Sender
        from deedbook.transient import MemoryStore
        store = MemoryStore()
        try:
            {made}
        except ImportError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    extra = "zstd" if hidden == "zstd" else "http"
    assert f"pip install 'deedbook[{extra}]'" in done.stdout, done.stderr


def test_importing_the_package_loads_no_client() -> None:
    code = "import sys, deedbook.http; print({'urllib3', 'aiohttp'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "set()", done.stderr


def test_quick_is_quick() -> None:
    assert QUICK.delay_after(99, random.Random()) <= 0.01
