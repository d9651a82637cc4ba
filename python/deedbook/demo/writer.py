"""The process that writes the log, and that the demo kills.

Run as ``python -m deedbook.demo.writer LOG INPUT STOP BATCH``. It appends the lines of INPUT up to
number STOP to the book at LOG, in batches, and goes on where the log stands: event k is line k.
On standard output it prints the last event it found, then, after each batch that is on stable
storage, the last event acknowledged. When it has closed the book it prints ``closed``.
"""

from __future__ import annotations

import os
import sys
from itertools import islice
from pathlib import Path

import deedbook
from deedbook._text import escape_steering
from deedbook.demo.generate import read_lines

STDOUT = 1


def write(log: Path, source: Path, stop: int, batch: int) -> None:
    """Append the lines after the last event of the log, ``batch`` at a time, and sync each."""
    with deedbook.Book.open(log, "a", durability="manual") as book:
        say(str(book.last))
        lines = read_lines(source, book.last + 1, stop + 1)
        while jams := list(islice(lines, batch)):
            # The number is stated, so that a mistake in resuming is an error and not a shift.
            _, end = book.append_batch(jams, event=book.last + 1)
            book.sync()
            # On stable storage from here on, so it may be acknowledged.
            say(str(end - 1))
    say("closed")


def say(word: str) -> None:
    """Write a line in one unbuffered call: a reader never sees half of it."""
    os.write(STDOUT, f"{word}\n".encode())


def main(arguments: list[str]) -> int:
    """Run the writer; errors are one line on standard error and exit code 1."""
    log, source, stop, batch = arguments
    try:
        write(Path(log), Path(source), int(stop), int(batch))
    except (deedbook.Error, OSError) as error:
        print(escape_steering(f"{type(error).__name__}: {error}"), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
