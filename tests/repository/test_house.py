"""The measures of the structure: imports between files, and the rooms of the tests."""

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "house"))

import interface  # noqa: E402
import measures  # noqa: E402
import public  # noqa: E402
from imports import Crate, circles  # noqa: E402

DECLARED = re.compile(r"\bmod (\w+)\s*[;{]")
FILES = {
    "lib.rs": "mod a;\nmod b;\nmod c;\npub use a::{Deed, inner::Part as Piece};",
    "a/mod.rs": "mod inner;\nuse crate::b::{self, Log};\nfn f() { inner::g() }",
    "a/inner.rs": "use super::Deed; // not crate::c::C",
    "b.rs": "use crate::Deed;\nuse std::io;",
    "c.rs": "pub(in crate::b) fn f() -> crate::Piece {}\n"
    "#[cfg(test)]\nmod tests {\n    use crate::b::Log;\n}",
}


def crate(top: Path) -> Crate:
    for name, text in FILES.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    return Crate(top)


def test_arrows_point_to_the_file_defining_the_name(tmp_path: Path) -> None:
    arrows = crate(tmp_path).arrows()
    assert arrows == {
        "a/mod.rs": {"a/inner.rs", "b.rs"},
        "a/inner.rs": {"a/mod.rs"},
        "b.rs": {"a/mod.rs"},
        "c.rs": {"a/inner.rs"},
    }
    assert circles(arrows) == [["a/inner.rs", "a/mod.rs", "b.rs"]]


def test_arrows_run_up_to_a_later_layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = tmp_path / "layers.txt"
    listed.write_text("ground: b\ntop: a c lib\n")
    monkeypatch.setattr(measures, "LAYERS", listed)
    arrows = crate(tmp_path / "src").arrows()
    assert measures.upward(arrows) == [("b.rs", "a/mod.rs")]
    listed.write_text("ground: b\n")
    with pytest.raises(SystemExit, match=r"layers.txt has no layer for a/inner.rs"):
        measures.upward(arrows)


def test_no_import_runs_up_or_in_a_circle() -> None:
    arrows = Crate(ROOT / "src").arrows()
    assert circles(arrows) == []
    assert measures.upward(arrows) == []


def test_no_format_imports_another() -> None:
    def of(file: str) -> str | None:
        room = file.split("/")[0]
        return room if room in ("book", "wal", "ledger", "nostr") else None

    arrows = Crate(ROOT / "src").arrows()
    assert [
        (file, other)
        for file, used in arrows.items()
        for other in used
        if of(file) and of(other) and of(file) != of(other)
    ] == []


def test_formats_use_only_listed_engine_names() -> None:
    assert interface.PAGE.read_text("utf-8") == interface.listed()


def test_only_the_storage_calls_the_file_system() -> None:
    files = [file for file in measures.tracked("src", ".rs") if "storage" not in file.parts]
    assert [file for file in files if "std::fs" in file.read_text("utf-8")] == []


def test_every_file_of_rust_is_a_module() -> None:
    """Earlier, a merge restored `python/src/ledger/snapshot.rs`, which belonged to no module."""
    files = [
        file for root in ("src", "python/src", "capi/src") for file in measures.tracked(root, ".rs")
    ]
    declared = {file: set(DECLARED.findall(file.read_text("utf-8"))) for file in files}
    lost = []
    for file in files:
        if file.name in ("lib.rs", "mod.rs"):
            continue
        home = file.parent
        owners = (home / "lib.rs", home / "mod.rs", home.with_suffix(".rs"))
        if not any(file.stem in declared.get(owner, ()) for owner in owners):
            lost.append(str(file))
    assert len(files) > 300 and lost == []


def test_the_list_of_public_items_is_current() -> None:
    assert public.PAGE.read_text("utf-8") == public.listed()


TESTS = Path(__file__).parents[2] / "tests" / "python"
TEST_FILES = sorted(TESTS.rglob("test_*.py"))
# Scripts in strings count: a child process imports a test as well as a test does.
IMPORT = re.compile(r"""(?:^|[;"'])\s*(?:from|import) +(test_\w+)""", re.MULTILINE)


def imported(text: str) -> list[str]:
    return IMPORT.findall(text)


def test_imports_of_tests_are_seen_in_scripts_too() -> None:
    assert imported("import re\nfrom test_a import b\n    import test_c as d\n") == [
        "test_a",
        "test_c",
    ]
    assert imported("""script = "import re; import test_a as a; a.b()"\n""") == ["test_a"]
    assert imported("from live import test_run\nvalue = 1  # import test_a\n") == []


def test_no_file_imports_a_test() -> None:
    files = sorted(TESTS.rglob("*.py"))
    found = {file.name: names for file in files if (names := imported(file.read_text()))}
    assert found == {}, "tests/python/support has what several tests use"


def test_no_room_has_more_than_14_tests() -> None:
    rooms = Counter(str(file.parent.relative_to(TESTS)) for file in TEST_FILES)
    assert {room: count for room, count in rooms.items() if count > 14} == {}


def test_test_files_are_in_folders_with_unique_names() -> None:
    """Pytest imports tests by their names alone, and docs/trust.md names them so."""
    assert [file.name for file in TEST_FILES if file.parent == TESTS] == []
    names = Counter(file.name for file in TEST_FILES)
    assert [name for name, count in names.items() if count > 1] == []
