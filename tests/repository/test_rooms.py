"""The rooms of tests/python: small ones, of tests that import helpers only."""

import re
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[2] / "tests" / "python"
FILES = sorted(TESTS.rglob("test_*.py"))
# Scripts in strings count: a child process imports a test as well as a test does.
IMPORT = re.compile(r"""(?:^|[;"'])\s*(?:from|import) +(test_\w+)""", re.MULTILINE)


def imported(text: str) -> list[str]:
    """The test files that a file imports."""
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
    rooms = Counter(str(file.parent.relative_to(TESTS)) for file in FILES)
    assert {room: count for room, count in rooms.items() if count > 14} == {}


def test_test_files_are_in_folders_with_unique_names() -> None:
    """Pytest imports tests by their names alone, and docs/trust.md names them so."""
    assert [file.name for file in FILES if file.parent == TESTS] == []
    names = Counter(file.name for file in FILES)
    assert [name for name, count in names.items() if count > 1] == []
