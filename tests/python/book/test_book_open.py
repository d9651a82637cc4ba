"""Opening, creating, converting, closing: modes, layouts, properties, and refusals."""

import json
import os
import shutil
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from deedbook import AlreadyExistsError, Book, InvalidArgumentError
from shell import deedbook as shell
from shell import ok


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "w"},
        {"mode": "rb"},
        {"durability": "sometimes"},
        {"durability": "interval"},
        {"durability": timedelta(milliseconds=0)},
        {"durability": "bytes:-1"},
        {"recovery": "always"},
        {"layout": "slot"},
        {"deed_bytes_max": 3},
    ],
    ids=str,
)
def test_words_outside_the_domain_are_refused(path: Path, wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidArgumentError):
        Book.open(path, **{"mode": "a", **wrong})  # type: ignore[arg-type]
    assert not path.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux only")
def test_non_utf8_path_is_returned_unchanged(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")
    with Book.create(path) as book:
        book.append(b"deed")
        assert book.path == path
        assert [split.path for split in book.splits()] == [path + "/book.log"]
        with pytest.raises(AlreadyExistsError) as caught:
            Book.create(path)
    assert caught.value.path == path + "/book.log"


def test_a_conversion_says_what_it_left_out(tmp_path: Path) -> None:
    """An incomplete batch keeps its intact records; a batch without any is an error."""
    source = tmp_path / "0i0"
    with Book.create(source, layout="slots") as book:
        book.append_many([b"one", b"two" * 30], atomic=True)
        end = book.end
    shutil.rmtree(source / ".deedbook")
    os.truncate(source / "book.log", end - 5)
    text = ok("convert", source, tmp_path / "a", "--layout", "packed").decode()
    assert f"left out bytes {8192 + 23:,}..{end - 5:,}: " in text
    assert "the header ends with event 2, the deeds with 1" in text
    # The exit code warns scripts about an incomplete copy.
    os.truncate(source / "book.log", 8192)
    done = shell("convert", "--json", source, tmp_path / "b", "--layout", "packed")
    shown = json.loads(done.stdout)
    assert (done.returncode, shown["ok"], shown["deeds"]) == (1, False, 0)
    assert "the header ends with event 2, the deeds with 0" in shown["left_out"]["reason"]
    assert Book.convert(tmp_path / "a", tmp_path / "c", "slots").left_out is None


def test_the_shell_makes_and_names_layouts(tmp_path: Path) -> None:
    book = tmp_path / "book"
    done = shell("append", book, "--layout", "slots", stdin=b'{"a":1}\n')
    assert done.returncode == 0
    assert json.loads(ok("info", "--json", book))["layout"] == "slots"
    assert ok("cat", book) == b'1\t{"a":1}\n'
    shown = json.loads(ok("convert", "--json", book, tmp_path / "new", "--layout", "packed"))
    assert (shown["ok"], shown["deeds"], shown["target_layout"]) == (True, 1, "packed")
