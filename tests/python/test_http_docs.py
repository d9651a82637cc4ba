"""docs/http.md: its examples run one after the other, and its tables are true."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("urllib3")
pytest.importorskip("aiohttp")

from deedbook.http import Answer, Policy, presets
from deedbook.http.endpoint import Endpoint

PAGE = Path(__file__).parents[2] / "docs" / "http.md"
TEXT = PAGE.read_text() if PAGE.exists() else ""

pytestmark = pytest.mark.skipif(not TEXT, reason="docs/http.md is not in this checkout")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as endpoint:
        yield endpoint


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
    found = list(re.finditer(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))
    assert len(found) >= 6
    for match in found:
        if "import urllib3" in match[1]:
            names["db"].append(b"[4]")  # type: ignore[attr-defined]
        line = TEXT.count("\n", 0, match.start()) + 1
        exec(compile("\n" * line + match[1], str(PAGE), "exec"), names)
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
        numbers = {
            unit: int(number.replace(",", ""))
            for number, unit in re.findall(r"([\d,]+) (events|bytes)", batch)
        }
        each = re.findall(r"([\d,]+) bytes", event)
        seen[re.match(r"`(\w+)", name)[1]] = (  # type: ignore[index]
            numbers.get("events"),
            numbers.get("bytes"),
            int(each[0].replace(",", "")) if each else None,
        )
    assert seen == {
        name: (
            preset.limits.batch_events_max,
            preset.limits.batch_bytes_max,
            preset.limits.event_bytes_max,
        )
        for name, preset in made.items()
    }
    assert {name for name in presets.__all__ if name != "Preset"} == set(seen)
