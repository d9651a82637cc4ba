"""The published trust table names tests that exist, and is the one that its data makes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "trust"))

import page  # noqa: E402


def test_every_test_that_the_table_names_exists() -> None:
    assert page.missing_tests(ROOT) == []


def test_a_name_that_is_no_test_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = page.Row("x", "K", ("crash::no_such_test", "py:test_nothing.py"))
    monkeypatch.setattr(page, "ROWS", [wrong])
    assert page.missing_tests(ROOT) == ["crash::no_such_test", "py:test_nothing.py"]


def test_the_pages_are_made_from_the_data() -> None:
    results = json.loads((ROOT / page.DATA).read_text())
    assert (ROOT / page.DOCUMENT).read_text() == page.document(results)
    readme = (ROOT / "README.md").read_text()
    assert readme == page.with_table(readme, results)


def test_no_published_seeded_bug_survived() -> None:
    mutants = json.loads((ROOT / page.DATA).read_text())["mutants"]
    assert mutants["caught"] == mutants["seeded"] >= 25
