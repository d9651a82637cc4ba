"""The layouts of a book: files of the reference implementation are read, continued, converted."""

import json
import os
import shutil
from pathlib import Path

import pytest

import deedbook
from deedbook import Book
from shell import complaint, ok
from shell import deedbook as shell


def test_wrong_layouts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(deedbook.InvalidArgumentError, match="must be packed, slots or padded"):
        Book.create(tmp_path / "a", layout="slot")  # type: ignore[arg-type]
    with pytest.raises(deedbook.UnsupportedError, match="padded is only read"):
        Book.create(tmp_path / "b", layout="padded")


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
    error = complaint(shell("append", book, "--layout", "packed", stdin=b"{}\n"), 2)
    assert "layout packed asked for, but the log has slots" in error
    shown = json.loads(ok("convert", "--json", book, tmp_path / "new", "--layout", "packed"))
    assert (shown["ok"], shown["deeds"], shown["target_layout"]) == (True, 1, "packed")
    again = complaint(shell("convert", book, tmp_path / "new", "--layout", "packed"), 2)
    assert "exist" in again
    wal = tmp_path / "log.wal"
    shell("append", wal, "--format", "wal", stdin=b"{}\n")
    assert "only books have layouts" in complaint(
        shell("convert", wal, tmp_path / "x", "--layout", "packed"), 2
    )
    assert "--layout is for books" in complaint(
        shell("append", wal, "--layout", "slots", stdin=b"{}\n"), 2
    )
