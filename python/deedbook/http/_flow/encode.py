"""Making the body of a request from a part of a batch, compressed or not."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from deedbook._errors import InvalidArgumentError
from deedbook._system.compressed import zstd
from deedbook.http._flow.plan import Part
from deedbook.transient import Batch, BatchBody, Envelope, Sealed

COMPRESSIONS: Final = (None, "auto", "gzip", "zstd")
_PIECE_BYTES: Final = 1 << 18


class Readable(Protocol):
    """The methods that a request body needs."""

    def read(self, size: int = -1, /) -> bytes | None:
        """The next bytes."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go to a byte."""


@dataclass(frozen=True)
class Prepared:
    """The body of a request: the same bytes, and the same id, for each attempt."""

    part: Part
    body: Readable
    length: int
    """Bytes of the body on the wire."""
    coding: str | None
    """The Content-Encoding."""

    def headers(self, fixed: Mapping[str, str], key_header: str | None) -> dict[str, str]:
        """The headers of the request: the caller's headers, length, coding and key."""
        headers = {**fixed, "Content-Length": str(self.length)}
        if self.coding is not None:
            headers["Content-Encoding"] = self.coding
        if key_header is not None:
            headers[key_header] = self.part.id
        return headers

    def rewound(self) -> Readable:
        """The body, at the beginning."""
        self.body.seek(0)
        return self.body

    def pieces(self) -> Iterator[bytes]:
        """The body from the beginning, in pieces of 256 KiB."""
        body = self.rewound()
        while piece := body.read(_PIECE_BYTES):
            yield piece


def prepare(part: Part, envelope: Envelope | None, coding: str | None) -> Prepared:
    """Make the body of a part, by default with the envelope of the batch.

    A plain body is read from the batch during the request. A compressed body is in memory, because
    the request needs the length.
    """
    batch = part.batch
    body: Batch
    if envelope is None and part.count == batch.count:
        body = batch
    else:
        payload_bytes = sum(map(len, batch.records(part.start, part.stop)))
        sealed = batch.envelope if envelope is None else envelope.seal()
        body = _part_of(batch, part, payload_bytes, sealed)
    if coding is None:
        return Prepared(part, body, body.content_length, None)
    plain = Prepared(part, body, body.content_length, None)
    packed = io.BytesIO()
    compressor = _compressor(coding)
    for piece in plain.pieces():
        packed.write(compressor.compress(piece))
    packed.write(compressor.flush())
    length = packed.seek(0, io.SEEK_END)
    return Prepared(part, packed, length, coding)


class Codings:
    """The Content-Encoding to use. Answers of the server may change the choice.

    InvalidArgumentError for an unknown ``compression``, ImportError if the library is missing.
    """

    def __init__(self, compression: str | None) -> None:
        if compression not in COMPRESSIONS:
            raise InvalidArgumentError(f"compression is {compression!r}, none of {COMPRESSIONS}")
        if compression == "zstd":
            _zstd()
        # The best first. None is last, because every server reads plain bodies.
        before = {"zstd": ["zstd", "gzip"], "gzip": ["gzip"]}.get(compression or "", [])
        self._usable: list[str | None] = [*before, None]
        self._asks = compression == "auto"

    @property
    def best(self) -> str | None:
        """The present coding; None: plain bodies."""
        return self._usable[0]

    def change(self, status: int | None, headers: Mapping[str, str], coding: str | None) -> bool:
        """Learn from an answer to a body with this coding; return whether to try another coding.

        A server that answers 415 gets the next coding (RFC 7694), and never this coding again.
        """
        accepted = headers.get("accept-encoding")
        if status == 415 and coding is not None:
            if self.best == coding:  # else another worker has learnt it
                offered = self._usable if accepted is None else codings_offered(accepted)
                self._usable = [name for name in self._usable[1:] if name in offered]
            return True
        if self._asks and accepted is not None and status is not None and 200 <= status < 300:
            self._asks = False
            self._usable = codings_offered(accepted)
        return False


def codings_offered(accepted: str) -> list[str | None]:
    """The codings that a server reads, by the Accept-Encoding of an answer (RFC 7694)."""
    names = set()
    for item in accepted.lower().split(","):
        name, _, parameters = item.partition(";")
        if parameters.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
            names.add(name.strip())
    found: list[str | None] = []
    if "zstd" in names and _has_zstd():
        found.append("zstd")
    if "gzip" in names:
        found.append("gzip")
    return [*found, None]


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


def _compressor(coding: str) -> _Compressor:
    if coding == "gzip":
        return zlib.compressobj(wbits=31)  # with gzip's header, which has no time in it
    made: _Compressor = _zstd().ZstdCompressor()
    return made


def _has_zstd() -> bool:
    try:
        _zstd()
    except ImportError:
        return False
    return True


def _zstd() -> Any:
    return zstd("compression='zstd'")


def _part_of(batch: Batch, part: Part, payload_bytes: int, envelope: Sealed) -> BatchBody:
    """A body with the records of a part."""

    def records(first: int, last: int) -> Iterator[bytes]:
        return batch.records(part.start + first, part.start + last)

    return BatchBody(part.id, records, part.count, payload_bytes, envelope)
