"""What ``info --help`` says of the keys of ``info --json``: all of them, of each format its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import make_logs
from deedbook.cli import main
from deedbook.formats import FORMATS

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A log of each format, by its name."""
    return make_logs(tmp_path, [b"1", b"2", b"3"], events=1)


def info(path: Path, capfd: Capture) -> dict[str, Any]:
    assert main(["info", "--json", str(path)]) == 0
    facts: dict[str, Any] = json.loads(capfd.readouterr().out)
    return facts


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def below(value: Any) -> Iterator[str]:
    """The keys in what a key has."""
    if isinstance(value, dict):
        yield from value
    for one in value.values() if isinstance(value, dict) else value:
        if isinstance(one, dict | list):
            yield from below(one)


def test_the_help_of_info_names_the_keys_of_each_format(logs: Path, capfd: Capture) -> None:
    """Every format had layout, end and writer by the help, though a pier has no end; is_loss,
    consumers of a pier and others were not named.
    """
    assert main(["info", "--help"]) == 0
    text = capfd.readouterr().out
    common, *parts = re.split(
        r"(?m)^  (book|pier|wal|ledger|nostr) ", text.split("--json there")[1]
    )
    rows = dict(zip(parts[::2], parts[1::2], strict=True))
    assert list(rows) == [one.name for one in FORMATS]
    rows["nostr"], after = rows["nostr"].split("\nThe saved end")
    found = {name: info(logs / name, capfd) for name in rows}
    known = {key for facts in found.values() for key in facts} | {"saved_from", "meta_error"}
    for name, facts in found.items():
        assert set(facts) <= words(common) | words(rows[name]), name
        allowed = {*facts, *below(facts), "meta_error"}
        assert words(rows[name]) & known <= allowed | {"records"}, name
        assert words(common) & known <= set(facts), name

    end = logs / "saved" / "book.log.cut-41"
    end.parent.mkdir()
    end.write_bytes((logs / "book" / "book.log").read_bytes()[41:])
    facts = info(end, capfd)
    assert set(facts) <= words(common + rows["book"] + after)
    assert set(found["book"]) - set(facts) == {"transactions", "staged"}
