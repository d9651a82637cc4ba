"""The meaning of answers, the division of batches, and refused options."""

import itertools
import random
import re
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from deedbook import InvalidArgumentError
from deedbook.http import Answer, Limits, Policy, Rates, presets
from deedbook.http._flow.flow import Flow
from deedbook.http._flow.plan import Part, plan
from deedbook.http._policy import retry_after
from deedbook.http._settings import settings
from deedbook.transient import MemoryStore
from doc_blocks import blocks, run_python
from endpoint import Endpoint
from flows import URL
from http_kinds import Highest, events, spool_of, store_of
from places import DOCS


@pytest.mark.parametrize(
    ("statuses", "action"),
    [
        ((200, 201, 202, 204, 299), "accept"),
        ((408, 409, 425, 429, 500, 502, 503, 504, 507, 599), "retry"),
        ((400, 413, 422), "split"),
        ((406, 411, 431), "refuse"),
        ((301, 302, 307, 401, 403, 404, 405, 410, 415, 511, 101, 999), "hold"),
    ],
)
def test_what_a_status_means(statuses: tuple[int, ...], action: str) -> None:
    assert {Policy().action_for(Answer(status)) for status in statuses} == {action}


def test_statuses_can_mean_something_else() -> None:
    policy = Policy(statuses={400: "refuse", 500: "refuse"})
    assert policy.action_for(Answer(400)) == "refuse"
    assert policy.action_for(Answer(500)) == "refuse"
    assert policy.action_for(Answer(None, error="reset")) == "retry"
    assert policy.action_for(Answer(None, error="certificate", hold=True)) == "hold"
    with pytest.raises(InvalidArgumentError, match="drop"):
        Policy(statuses={500: "drop"})  # type: ignore[dict-item]


NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120),
        ("0", 0),
        (" 7 ", 7),
        ("1.5", 1.5),
        (formatdate(NOW + 90, usegmt=True), 90),
        (formatdate(NOW - 90, usegmt=True), 0),
        ("Tuesday, 14-Nov-23 22:15:00 GMT", 100),
        ("soon", None),
        ("-5", None),
        ("", None),
        ("٣", None),
        ("Tue, 99 Foo 2023", None),
    ],
)
def test_retry_after(text: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": text}, NOW) == seconds


def test_retry_after_date_counts_from_the_answers_date() -> None:
    headers = {
        "retry-after": formatdate(NOW + 10, usegmt=True),
        "date": formatdate(NOW, usegmt=True),
    }
    assert retry_after(headers, NOW - 3600) == 10
    assert retry_after({**headers, "date": "nonsense"}, NOW) == 10


def test_delays_double_to_a_limit_with_full_jitter() -> None:
    policy = Policy(delay_seconds=0.5, delay_seconds_max=10)
    highest = [policy.delay_after(n, Highest()) for n in range(1, 8)]
    assert highest == [0.5, 1, 2, 4, 8, 10, 10]
    assert policy.delay_after(5000, Highest()) == 10
    chance = random.Random(1)
    delays = [policy.delay_after(4, chance) for _ in range(1000)]
    assert min(delays) < 0.1 and 3.9 < max(delays) <= 4 and 1.8 < sum(delays) / 1000 < 2.2


@pytest.mark.parametrize("seed", range(20))
def test_parts_cover_each_record_once_within_limits(seed: int) -> None:
    chance = random.Random(seed)
    items = [b"x" * chance.randrange(1, 60) for _ in range(chance.randrange(1, 60))]
    (batch,) = store_of(items, header=b"{{", footer=b"}}", separator=b"--").fetch().data
    limits = Limits(
        chance.choice([None, 1, 2, 7]), chance.choice([None, 40, 100]), chance.choice([None, 30])
    )
    parts = plan(batch, None, limits)
    assert [n for part in parts for n in range(part.start, part.stop)] == list(range(len(items)))
    assert plan(batch, None, limits) == parts
    for part in parts:
        sizes = [len(item) for item in items[part.start : part.stop]]
        body = batch.envelope.length(len(sizes), sum(sizes))
        fits = (
            len(sizes) <= (limits.batch_events_max or 999)
            and body <= (limits.batch_bytes_max or 9999)
            and max(sizes) <= (limits.event_bytes_max or 999)
        )
        assert fits == (part.reason is None)
        assert fits or len(sizes) == 1
    for one, two in itertools.pairwise(parts):  # no part is smaller than necessary
        if one.reason is None and two.reason is None:
            sizes = [len(item) for item in items[one.start : two.start + 1]]
            full = len(sizes) > (limits.batch_events_max or 999)
            assert full or batch.envelope.length(len(sizes), sum(sizes)) > limits.batch_bytes_max


def test_halves_make_the_whole() -> None:
    (batch,) = store_of(events(7)).fetch().data
    parts = [Part(batch, 0, 7)]
    while any(part.count > 1 for part in parts):
        parts = [half for part in parts for half in (part.halves() if part.count > 1 else [part])]
    assert [(part.start, part.stop) for part in parts] == [(n, n + 1) for n in range(7)]
    assert len({part.id for part in parts}) == 7


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": "ftp://host/x"}, "not a http or https URL"),
        ({"url": "https://"}, "not a http or https URL"),
        ({"url": "http://a..b/"}, "the host of url is not valid"),
        ({"url": f"http://{'a' * 64}.org/"}, "the host of url is not valid"),
        ({"concurrency": 0}, "concurrency is 0"),
        ({"interval_seconds": 0}, "interval_seconds is 0"),
        ({"read_seconds": float("nan")}, "read_seconds is nan"),
        ({"compression": "br"}, "compression is 'br'"),
        ({"headers": {"X": "a\r\nY: b"}}, "header X is not printable"),
        ({"headers": {"X": "東京"}}, "header X is beyond Latin-1"),
        ({"headers": {"X Y": "a"}}, "'X Y' is not the name"),
        ({"headers": {"content-length": "1"}}, "is the sender's own"),
        ({"dead_letters": None}, "dead_letters is missing"),
    ],
)
def test_wrong_options(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    options = {"url": URL, "dead_letters": tmp_path, **options}
    with pytest.raises(InvalidArgumentError, match=words):
        settings(MemoryStore(), options.pop("url"), None, options)  # type: ignore[arg-type]


def test_wrong_values() -> None:
    wrong: list[tuple[Any, dict[str, int]]] = [
        (Rates, {"bytes_per_second": 0}),
        (Limits, {"batch_events_max": 0}),
        (Policy, {"attempts_max": 0}),
        (Policy, {"delay_seconds": -1}),
    ]
    for make, options in wrong:
        with pytest.raises(InvalidArgumentError):
            make(**options)


def test_unknown_options_and_secrets(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="no option retries"):
        settings(MemoryStore(), URL, None, {"retries": 3})  # type: ignore[typeddict-unknown-key]
    store = spool_of(events(1), tmp_path)
    made = settings(store, "https://me:secret@[::1]:8443/x?key=secret", None, {})
    assert made.dead_letters.path == tmp_path / ".deedbook" / "dead-letters"
    assert "secret" not in str(Flow(made).error())
    assert "https://[::1]:8443:" in str(Flow(made).error())


PAGE = DOCS / "http.md"
NUMBERS = r"([\d,]+) (events|bytes)"
TEXT = PAGE.read_text() if PAGE.exists() else ""

documented = pytest.mark.skipif(not TEXT, reason="docs/http.md is not in this checkout")


def rows(heading: str) -> Iterator[list[str]]:
    section = TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    for line in table[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


@documented
def test_the_examples_run(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for client in ("urllib3", "aiohttp"):
        pytest.importorskip(client)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__", "endpoint_url": endpoint.url}
    found = blocks(PAGE, "python")
    assert len(found) >= 6
    for block in found:
        if "import urllib3" in block.text:
            names["db"].append(b"[4]")  # type: ignore[attr-defined]
        run_python(PAGE, block, names)
    assert len(endpoint.events) == 1006
    assert endpoint.events[0] == b'{"event":"page_view","user":1}'
    assert not names["db"].has_data()  # type: ignore[attr-defined]


@documented
def test_the_table_of_statuses_is_true() -> None:
    actions = ["accept", "retry", "split", "refuse", "hold"]
    for (statuses, _), action in zip(rows("What answers mean"), actions, strict=False):
        for text in re.findall(r"\b[1-5](?:\d\d|xx)\b", statuses.replace("other 4xx", "")):
            status = int(text.replace("xx", "00"))
            assert Policy().action_for(Answer(status)) == action, text


@documented
def test_the_table_of_presets_is_true() -> None:
    made = {
        "segment": presets.segment("k"),
        "rudderstack": presets.rudderstack("k", "https://h"),
        "posthog": presets.posthog("k"),
        "otlp_logs": presets.otlp_logs("https://h"),
        "ndjson": presets.ndjson(),
        "json_array": presets.json_array(),
    }
    seen = {}
    for name, _, batch, event in rows("Endpoints"):
        numbers = {unit: int(n.replace(",", "")) for n, unit in re.findall(NUMBERS, batch)}
        each = [int(n.replace(",", "")) for n, _ in re.findall(NUMBERS, event)]
        limits = (numbers.get("events"), numbers.get("bytes"), each[0] if each else None)
        seen[name.strip("`").partition("(")[0]] = limits
    for name, preset in made.items():
        of = preset.limits
        assert seen[name] == (of.batch_events_max, of.batch_bytes_max, of.event_bytes_max), name
    assert {*presets.__all__} - {"Preset"} == set(seen) == set(made)
