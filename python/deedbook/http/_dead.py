"""Dead letters: events that an endpoint refused, kept in files for a person to look at."""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import inspect
import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from os import PathLike
from pathlib import Path
from typing import Any, Final

from deedbook._errors import CorruptError
from deedbook._system.durable import Unnamed, sync_folder
from deedbook._system.regular import is_folder, names_in, open_regular, parse_json
from deedbook._system.sidecar import SIDECAR
from deedbook.transient import DataStore

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ENDING = ".jsonl"
_LINE_BYTES_MAX: Final = 256 << 20


@dataclass(frozen=True)
class DeadLetter:
    """A refused event, and the reason."""

    id: str
    """Id of the refused request: a batch, or a part of a batch."""
    record: int
    """Number of the event in the batch, from 0 on."""
    reason: str
    """The answer of the endpoint, or the error that prevented a request."""
    status: int | None
    """Status of the answer, or None if the event was not sent."""
    attempts: int
    """The number of attempts."""
    time: str
    """The time of the last attempt, in UTC."""
    url: str
    """The endpoint, without user, password and query."""
    payload: bytes
    """The event itself, byte by byte."""

    def to_dict(self) -> dict[str, Any]:
        """The values by name, the payload as ``payload`` (text) or ``payload_base64``."""
        values = asdict(self)
        payload: bytes = values.pop("payload")
        try:
            values["payload"] = payload.decode()
        except UnicodeDecodeError:
            values["payload_base64"] = base64.b64encode(payload).decode()
        return values


class DeadLetters:
    """A folder of dead letters: a file of JSON lines for each refused request.

    A file is complete and on stable storage once `write` returned. A crash leaves no half of a file
    under the final name. The name comes from the request's id and the events, so a request refused
    again after a crash replaces only its own file. The first file makes the folder. Only the owner
    can read files and folder.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        """The folder."""

    def write(
        self,
        id: str,
        events: Iterable[tuple[int, bytes]],
        *,
        reason: str,
        status: int | None,
        attempts: int,
        now: float,
        url: str,
    ) -> Path:
        """Write numbered events as dead letters, durably; return the file.

        ``now`` is in seconds since 1970. OSError if the write fails; then no file is left.
        """
        time = datetime.fromtimestamp(now, timezone.utc).isoformat(timespec="milliseconds")
        self._make_folder()
        name = _file_name(id)
        # The name of no other writer in any process: two senders may give up the same batch.
        sums = hashlib.sha256()
        with Unnamed.beside(self.path, f".{name}.", ".tmp") as written:
            for record, payload in events:
                letter = DeadLetter(id, record, reason, status, attempts, time, url, payload)
                written.file.write(_line(letter.to_dict()))
                sums.update(b"%d:%d:" % (record, len(payload)) + payload)
            target = self.path / f"{name}.{sums.hexdigest()[:16]}{_ENDING}"
            written.name(target)
        sync_folder(self.path)
        return target

    def files(self) -> list[Path]:
        """The files, the oldest first, by the clock of the system when they were written."""
        if self.path.parent.name == SIDECAR:
            is_folder(self.path.parent)
        aged = []
        for name in names_in(self.path):
            if name.endswith(_ENDING) and not name.startswith("."):
                path = self.path / name
                with contextlib.suppress(FileNotFoundError):  # a replay removed it
                    aged.append((path.lstat().st_mtime_ns, name, path))
        return [path for _, _, path in sorted(aged)]

    def read(self, file: str | PathLike[str]) -> Iterator[DeadLetter]:
        """The letters of a file. `CorruptError` at a line without a letter."""
        with open_regular(file) as lines:
            for number in itertools.count(1):
                # Stop if no letter begins here: the line may be as long as the file.
                line = lines.read(1)
                if not line:
                    break
                if line == b"{":
                    line += lines.readline(_LINE_BYTES_MAX)
                try:
                    values = parse_json(line)
                    if "payload_base64" in values:
                        payload = base64.b64decode(values.pop("payload_base64"), validate=True)
                    else:
                        payload = values.pop("payload").encode()
                    letter = DeadLetter(**values, payload=payload)
                except (ValueError, TypeError, AttributeError, KeyError) as error:
                    bad = CorruptError(f"{os.fspath(file)}, line {number}: not a dead letter")
                    bad.path = os.fspath(file)
                    raise bad from error
                yield letter

    def __iter__(self) -> Iterator[DeadLetter]:
        for file in self.files():
            with contextlib.suppress(FileNotFoundError):  # a replay removed it
                yield from self.read(file)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return bool(self.files())

    def replay(self, store: DataStore, files: Iterable[str | PathLike[str]] | None = None) -> int:
        """Put events back into a store, to be sent again; return how many.

        Takes all files, or the given files. The replay appends the events, syncs the store if
        possible (``sync()``), and then removes the file. A crash before the removal repeats the
        file's events. A damaged file raises `CorruptError`, and none of its events are replayed. If
        the store refuses an event and appends all or nothing (``append_many(..., atomic=True)``, as
        a `Ledger` does), no event of the file is replayed.
        """
        append: Callable[..., object] = store.append_many
        if "atomic" in inspect.signature(getattr(store, "store", store).append_many).parameters:
            append = functools.partial(append, atomic=True)
        count = 0
        for file in map(Path, self.files() if files is None else files):
            payloads = [letter.payload for letter in self.read(file)]
            append(payloads)
            sync = getattr(store, "sync", None)
            if sync is not None:
                sync()
            file.unlink()
            sync_folder(file.parent)
            count += len(payloads)
        return count

    def __repr__(self) -> str:
        return f"DeadLetters({str(self.path)!r})"

    def _make_folder(self) -> None:
        if self.path.parent.name == SIDECAR:
            is_folder(self.path.parent)
        is_folder(self.path)
        missing = [path for path in (self.path, *self.path.parents) if not path.exists()]
        for path in reversed(missing):
            with contextlib.suppress(FileExistsError):
                path.mkdir(mode=0o700)
            sync_folder(path.parent)


def _file_name(id: str) -> str:
    if _ID.fullmatch(id):
        return id
    return hashlib.sha256(id.encode()).hexdigest()


def _line(values: Mapping[str, Any]) -> bytes:
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    # UTF-8 has no lone surrogate. Python escapes surrogates as JSON does, so every letter can be
    # written.
    return text.encode(errors="backslashreplace") + b"\n"
