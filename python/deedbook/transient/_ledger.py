"""The batches of a ledger: bodies that the core reads from files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deedbook.transient._body import Body, Stream
from deedbook.transient._envelope import Sealed
from deedbook.transient._store import DataResult

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from deedbook._core import Damage, LedgerFile, Removable


class LedgerBody(Body):
    """A finished file of a ledger as a request body: a :class:`deedbook.transient.Batch`.

    The fetch checked every record, so the body has exactly `content_length` bytes. If somebody
    changed the file since then, reading raises `CorruptError`. The body holds a record and a piece
    of 256 KiB in memory, for any size of the file, and outlives its ledger.
    """

    def __init__(self, file: LedgerFile) -> None:
        super().__init__(file.id, file.count, file.content_length, Sealed(*file.envelope))
        self._file: LedgerFile | None = file

    @property
    def index(self) -> int:
        """The file's number in its ledger."""
        return self._opened().index

    @property
    def path(self) -> str:
        """The file."""
        return self._opened().path

    @property
    def verdict(self) -> str:
        """How the file ends: "clean", "torn", "corrupt" or "open"."""
        return self._opened().verdict

    @property
    def damages(self) -> list[Damage]:
        """The damaged stretches of the file. The body leaves them out."""
        return self._opened().damages

    def records(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """The payloads from ``start`` to before ``stop``; the body's position stays."""
        last = self._count if stop is None else min(stop, self._count)
        return self._opened().records(start, max(last, start))

    def stream(self) -> Stream:
        """The body as an object that has only ``__aiter__``, for ``httpx.AsyncClient``."""
        file = self._opened()
        return Stream(lambda: LedgerBody(file.copy()))

    def readinto(self, buffer: Buffer, /) -> int:
        """Fill ``buffer``; the number of bytes is less only at the end of the body, and then 0."""
        read = self._opened().readinto(buffer, self._position)
        self._position += read
        return read

    def close(self) -> None:
        """Release the file; it stays in its ledger. Reading again is an error."""
        self._file = None
        super().close()

    def _opened(self) -> LedgerFile:
        if self._file is None:
            raise ValueError("the body is closed")
        return self._file


def result_of(files: list[LedgerFile], removable: list[Removable], more: bool) -> DataResult:
    """The result of a fetch of a ledger."""
    return DataResult([LedgerBody(file) for file in files], removable, more)
