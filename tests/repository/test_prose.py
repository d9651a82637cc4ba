"""The gate of the prose finds what it refuses, and its list of pending files only shrinks."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "prose"))
gate = importlib.import_module("gate")

PLAIN = "Opening saves the bytes that the writer removes.\n"
INVERTED = "What opening cuts is saved.\n"
PRONOUNS = "It is the one that they gave it, so that those which it has are its.\n" * 10
REFUSED = "The copy lies beside the log.\n"


def project(root: Path, files: dict[str, str], pending: str = "") -> list[str]:
    prose = root / gate.HERE
    prose.mkdir(parents=True)
    (prose / "pending.txt").write_text(pending)
    (prose / "refused.txt").write_text("# words\nbeside  next to\nmend*  repair\n")
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    said: list[str] = gate.check(root, [*files])
    return said


def test_plain_sentences_pass(tmp_path: Path) -> None:
    assert project(tmp_path, {"docs/a.md": PLAIN * 5}) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (INVERTED, "docs/a.md:2: inverted: What opening cuts is saved."),
        (PRONOUNS, "docs/a.md:2: 11 pronouns: It is the one"),
        (REFUSED, "docs/a.md:2: beside, better next to: The copy lies"),
        ("Opening mended the log.\n", "docs/a.md:2: mended, better repair: Opening"),
    ],
)
def test_refused_sentence_is_reported_with_file_and_line(
    tmp_path: Path, text: str, said: str
) -> None:
    found = project(tmp_path, {"docs/a.md": PLAIN + text})
    assert found and found[0].startswith(said), found


def test_a_listed_file_is_excused_until_it_passes(tmp_path: Path) -> None:
    files = {"docs/a.md": INVERTED, "docs/b.md": PLAIN}
    found = project(tmp_path, files, "docs/a.md\ndocs/b.md\ndocs/gone.md\n")
    assert [one.split(":")[0] for one in found] == ["docs/b.md passes", "docs/gone.md is gone"]
    gate.shrink(tmp_path, [*files])
    assert (tmp_path / gate.HERE / "pending.txt").read_text() == "docs/a.md\n"
    assert gate.check(tmp_path, files) == []


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("a.rs", f"//! {INVERTED}let what = 1; // {INVERTED}    /// {INVERTED}", [1, 3]),
        ("a.py", f'"""{INVERTED}"""\nx = """{INVERTED}"""\n# {INVERTED}', [1, 5]),
        ("a.pyi", f'"""A log.\n\n>>> f()\n{INVERTED}\n{INVERTED}"""\n', [6]),
        ("a.md", f"# {INVERTED}\n```text\n{INVERTED}```\n| {INVERTED}\n- {INVERTED}", [8]),
    ],
)
def test_only_prose_counts(name: str, text: str, lines: list[int]) -> None:
    said, _ = gate.judge(name, text, [])
    assert [int(one.split(":")[1]) for one in said] == lines


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "def test_a_b_c_d_e_f_g_h(): ...\ndef test_a_b_c_d_e_f_g_h_i(): ...\n"),
        ("a.rs", "#[test]\nfn a_b_c_d_e_f_g_h() {}\n#[test]\n// why\nfn a_b_c_d_e_f_g_h_i() {}\n"),
    ],
)
def test_a_tests_name_has_at_most_eight_words(name: str, text: str) -> None:
    said, _ = gate.judge(name, text, [])
    assert [one.split(": ")[1:] for one in said] == [["long name", "a_b_c_d_e_f_g_h_i"]]
