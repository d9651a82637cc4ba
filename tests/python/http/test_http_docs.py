"""docs/http.md: its examples run one after the other, and its tables are true."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from places import DOCS

pytest.importorskip("urllib3")
pytest.importorskip("aiohttp")

from deedbook.http import Answer, Policy, presets
from doc_blocks import blocks, run_python
from endpoint import Endpoint

PAGE = DOCS / "http.md"
NUMBERS = r"([\d,]+) (events|bytes)"
TEXT = PAGE.read_text() if PAGE.exists() else ""

pytestmark = pytest.mark.skipif(not TEXT, reason="docs/http.md is not in this checkout")


def rows(heading: str) -> Iterator[list[str]]:
    section = TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    for line in table[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def test_the_examples_run(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_the_table_of_statuses_is_true() -> None:
    actions = ["accept", "retry", "split", "refuse", "hold"]
    for (statuses, _), action in zip(rows("What answers mean"), actions, strict=False):
        for text in re.findall(r"\b[1-5](?:\d\d|xx)\b", statuses.replace("other 4xx", "")):
            status = int(text.replace("xx", "00"))
            assert Policy().action_for(Answer(status)) == action, text


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
