"""Bad lines of an import, which ``--aside`` appends to a file."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deedbook import EventStore, InvalidArgumentError
from deedbook._cli import main
from deedbook._cli.write import import_notes
from deedbook._cli.write.import_notes import Aside
from line_files import Short

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


def limited() -> None:
    """Limit the files of this process to 80 MiB; the store's index takes 64."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (80 << 20, 80 << 20))


@posix
@pytest.mark.parametrize("given", ["by its name", "by another name", "as standard input"])
def test_import_refuses_an_input_as_aside_file(path: Path, tmp_path: Path, given: str) -> None:
    source, other = tmp_path / "bad", tmp_path / "link"
    text = (b"x" * 10_000 + b"\n") * 200
    source.write_bytes(text)
    other.hardlink_to(source)
    words = [sys.executable, "-m", "deedbook", "import", "--aside", source, path]
    if given != "as standard input":
        words.append(source if given == "by its name" else other)
    with source.open("rb") as lines:
        done = subprocess.run(
            words, stdin=lines, capture_output=True, timeout=60, preexec_fn=limited
        )
    assert done.returncode == 2, done.stderr
    assert f"import: --aside {source} is one of the inputs" in done.stderr.decode()
    assert source.read_bytes() == text and not path.exists()


def test_import_json_refuses_its_source_as_aside(path: Path, tmp_path: Path) -> None:
    source, other = tmp_path / "bad", tmp_path / "link"
    source.write_bytes(b"oops\n")
    other.hardlink_to(source)
    with EventStore.create(path) as store:
        for aside in (str(source), other):
            with pytest.raises(InvalidArgumentError, match="aside is the file that is read"):
                store.import_json(source, aside=aside)
        with source.open("rb") as lines, pytest.raises(InvalidArgumentError, match="aside is"):
            store.import_json(lines, aside=other)
        assert store.import_json(source, aside=tmp_path / "aside").bad == 1
    assert source.read_bytes() == b"oops\n"


def test_bad_lines_since_last_report_are_not_repeated(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, aside = tmp_path / "events.jsonl", tmp_path / "bad"
    # Several parts of 1 MiB, with a report after each.
    lines = [b"oops %d " % number + b"x" * 100_000 + b"\n" for number in range(30)]
    source.write_bytes(b"".join(lines))
    write = Aside.write

    def failing(self: Aside, data: Any) -> int:
        if bytes(data) == lines[17]:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(self, data)

    command = ["import", str(path), str(source), "--aside", str(aside)]
    with monkeypatch.context() as patched:
        patched.setattr(Aside, "write", failing)
        assert main(command) == 2
    assert aside.read_bytes() == b"".join(lines[:17])
    assert main(command) == 1
    assert aside.read_bytes() == b"".join(lines)


def test_bad_lines_are_not_written_aside_twice(tmp_path: Path) -> None:
    path = tmp_path / "bad"
    first = Aside(str(path))
    for line in (b"one\n", b"two\n"):
        first.write(line)
    first.sync()
    noted = first.end()
    for line in (b"two\n", b"three\n"):
        first.write(line)
    first.close()
    with path.open("ab") as file:
        file.write(b"fo")  # a partial line of a killed import
    again = Aside(str(path), noted)
    for line in (b"two\n", b"three\n"):
        again.write(line)
        assert again.end() < path.stat().st_size
    again.write(b"four\n")
    again.write(b"five\n")
    assert again.end() == path.stat().st_size
    again.close()
    assert path.read_bytes() == b"one\ntwo\ntwo\nthree\nfour\nfive\n"
    # Lines after the note may be from another process, and stay.
    other = Aside(str(path), noted)
    other.write(b"one\n")
    other.close()
    assert path.read_bytes() == b"one\ntwo\ntwo\nthree\nfour\nfive\none\n"


def test_short_write_of_a_bad_line_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = lambda path, mode, buffering: Short(path, mode)  # noqa: E731
    monkeypatch.setattr(import_notes, "open", short, raising=False)
    aside = Aside(str(tmp_path / "bad"))
    for line in (b"longer than seven bytes\n", b"short\n"):
        assert aside.write(line) == len(line)
    aside.close()
    assert (tmp_path / "bad").read_bytes() == b"longer than seven bytes\nshort\n"
