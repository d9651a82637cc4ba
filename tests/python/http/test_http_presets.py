"""Presets for endpoints, and what senders say when a library is missing."""

import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from deedbook.http import Answer, DeadLetters, Limits, Policy, presets
from endpoint import Endpoint
from flows import Run
from http_kinds import MakeSender, answering, events, store_of

TRACK = [b'{"type":"track","event":"e%d"}' % n for n in range(3)]


def test_segment(sender: MakeSender, endpoint: Endpoint) -> None:
    preset = presets.segment("key", url=endpoint.url)
    assert preset.limits == Limits(2500, 500_000, 32_000)
    assert "a2V5" not in repr(preset), "keys are not shown"
    with sender(store_of(TRACK), preset=preset) as both:
        assert both.drain(30)
    (request,) = endpoint.requests
    assert request.headers["authorization"] == "Basic a2V5Og==" and endpoint.events == TRACK


def test_preset_limits_apply_unless_others_are_given(
    sender: MakeSender, endpoint: Endpoint, tmp_path: Path
) -> None:
    large = events(1, 33_000)
    for given, dead in (({}, 1), ({"limits": Limits(event_bytes_max=40_000)}, 0)):
        preset = presets.segment("key", url=endpoint.url)
        folder = tmp_path / str(dead)
        with sender(store_of(large), preset=preset, dead_letters=folder, **given) as both:
            assert both.drain(30).empty
        assert len(both.sender.dead_letters) == dead
    assert endpoint.events == large


@pytest.mark.parametrize("name", ["rudderstack", "posthog", "ndjson", "json_array", "otlp_logs"])
def test_presets_make_bodies_that_are_understood(
    sender: MakeSender, endpoint: Endpoint, name: str
) -> None:
    base = f"http://127.0.0.1:{endpoint.port}"
    preset = {
        "rudderstack": lambda: presets.rudderstack("key", base),
        "posthog": lambda: presets.posthog("key", host=base + "/"),
        "ndjson": lambda: presets.ndjson(endpoint.url),
        "json_array": lambda: presets.json_array(endpoint.url),
        "otlp_logs": lambda: presets.otlp_logs(base, resource={"service.name": 'a"b'}),
    }[name]()
    with sender(store_of(TRACK), preset=preset) as both:
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
    policy = Policy(statuses=presets.otlp_logs("http://h").statuses)
    repeated = [n for n in range(100, 600) if policy.action_for(Answer(n)) == "retry"]
    assert repeated == [429, 502, 503, 504]


OTLP = presets.otlp_logs("http://127.0.0.1:1")


def refused(body: bytes) -> tuple[int, str] | None:
    assert OTLP.partly_refused is not None
    return OTLP.partly_refused(Answer(200, body=body))


def test_non_text_otlp_message_blocks_nothing(tmp_path: Path) -> None:
    says = b'{"partialSuccess":{"rejectedLogRecords":1,"errorMessage":"a\\ud800\\u001b[2Jb"}}'
    store = store_of(TRACK)
    Run(store, tmp_path, [Answer(200, body=says)], preset=OTLP).drain()
    assert not store.has_data()
    letters = list(DeadLetters(tmp_path))
    assert [letter.payload for letter in letters] == TRACK
    assert letters[0].reason.endswith("1 of these 3 events: a\ufffd\ufffd[2Jb")


def test_otlp_answer_without_a_number_ends_no_sender() -> None:
    for body in (b"{}", b'{"partialSuccess":{}}', b'{"partialSuccess":', b""):
        assert refused(body) is None
    unread = (1, "the answer is longer than what is kept of it")
    for number in (b"1e999", b"[" * 1500):
        says = b'{"partialSuccess":{"rejectedLogRecords":%s}}' % number
        assert refused(says) in (None, unread)


@pytest.mark.parametrize("size", [10, 5000])
def test_long_or_chunked_otlp_answer_is_parsed(sender: MakeSender, size: int) -> None:
    says = b'{"partialSuccess":{"rejectedLogRecords":"5","errorMessage":"%s"}}' % (b"x" * size)

    def in_pieces(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in (says[:9], says[9:], b""):
            request.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            time.sleep(0.1)

    with (
        answering(in_pieces) as url,
        sender(store_of(events(6)), preset=presets.otlp_logs(url)) as both,
    ):
        assert both.drain(30).empty
        stats = both.sender.stats()
    assert (stats.events_partly_refused, stats.events_dead) == (5, 6)
    why = "x" * size if size < 2000 else "the answer is longer than what is kept of it"
    letters = list(both.sender.dead_letters)
    assert [letter.payload for letter in letters] == events(6)
    assert letters[0].reason == f"the endpoint dropped 5 of these 6 events: {why}"


@pytest.mark.parametrize(
    ("hidden", "made"),
    [
        ("urllib3", "Sender(store, 'http://h', dead_letters='d')"),
        ("aiohttp", "AsyncSender(store, 'http://h', dead_letters='d')"),
        ("zstd", "Sender(store, 'http://h', dead_letters='d', compression='zstd')"),
    ],
)
def test_missing_http_library_error_names_the_extra(hidden: str, made: str, run_child) -> None:
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
    done = run_child(code)
    extra = "zstd" if hidden == "zstd" else "http"
    assert f"pip install 'deedbook[{extra}]'" in done.stdout, done.stderr


def test_importing_the_package_loads_no_client(run_child) -> None:
    code = "import sys, deedbook.http; print({'urllib3', 'aiohttp'} & set(sys.modules))"
    done = run_child(code)
    assert done.stdout.strip() == "set()", done.stderr
