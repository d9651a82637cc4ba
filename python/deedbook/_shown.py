"""How values look: in a notebook as HTML, and at a prompt in a line.

The classes of the core get both here, from Python, when the package is imported: two attributes
each. The HTML itself is made when a notebook asks for it.
"""

from __future__ import annotations

from typing import Any, Final

from deedbook import _core
from deedbook._errors import Error

__all__ = ["HANDLES", "REPORTS", "html_of_report", "show"]

HANDLES: Final = ("Book", "EventStore", "Ledger", "Pier", "Wal")
"""Classes of opened logs."""
REPORTS: Final = (
    "BackupReport",
    "CompactionReport",
    "ConvertReport",
    "Damage",
    "DamagedPart",
    "Dropped",
    "DroppedEpochs",
    "EpochReport",
    "EpochSalvage",
    "EventCensus",
    "EventStoreOpening",
    "EventStorePartReport",
    "EventStoreRepair",
    "EventStoreReport",
    "EventStoreSalvage",
    "ExportReport",
    "Fragmentation",
    "ImportReport",
    "LedgerFileMigration",
    "LedgerFileRepair",
    "LedgerFileReport",
    "LedgerFileSalvage",
    "LedgerRepair",
    "LedgerReport",
    "LedgerSalvage",
    "LedgerStats",
    "LmdbMigration",
    "Loss",
    "PartReport",
    "PierReport",
    "PierSalvage",
    "RecoveryReport",
    "RepairReport",
    "SalvageReport",
    "Stats",
    "VerifyReport",
)
"""Classes of results."""
_PLAIN: Final = ("BatchStream", "EventIterator", "RecordIterator", "Transactions")
"""Classes shown without state, because an iterator may be at work in another thread."""
_FACTS: Final = (
    "path",
    "base",
    "mode",
    "layout",
    "durability",
    "epoch",
    "bounds",
    "head",
    "end",
    "durable_end",
    "durable_last",
    "segment_bytes",
    "recovery",
    "opening",
)
"""Attributes of opened logs; each log has some of these."""
_ITEMS_MAX: Final = 3
"""The most items of a list in a line; in a notebook `_ROWS_MAX`."""
_ROWS_MAX: Final = 20
_CHARS_MAX: Final = 500
"""The most characters of a value in a line."""


def show() -> None:
    """Let the classes of the core show themselves."""
    for name in HANDLES:
        _set(name, "_repr_html_", _html_of_handle)
    for name in REPORTS:
        _set(name, "_repr_html_", html_of_report)
        _set(name, "__repr__", _line_of_report)
    for name in _PLAIN:
        _set(name, "__repr__", _line_of_plain)
    _set("LedgerFile", "__repr__", _line_of_file)


def _set(name: str, attribute: str, function: Any) -> None:
    setattr(getattr(_core, name), attribute, function)


def _line_of_plain(self: Any) -> str:
    return f"<deedbook.{type(self).__name__}>"


def _line_of_file(self: Any) -> str:
    return f"<deedbook.LedgerFile {str(self.path)!r}, {self.content_length} bytes to send>"


def _line_of_report(self: Any) -> str:
    """The fields by their names; for long lists the first items, and the number of items."""
    fields = ", ".join(f"{name}={_short(getattr(self, name))}" for name in self.to_dict())
    return f"{type(self).__name__}({fields})"


def _short(value: Any) -> str:
    if isinstance(value, list | tuple) and len(value) > _ITEMS_MAX:
        first = ", ".join(map(_short, value[:_ITEMS_MAX]))
        return f"[{first}, ... {len(value) - _ITEMS_MAX} more]"
    if isinstance(value, dict) and len(value) > _ITEMS_MAX:
        items = list(value.items())[:_ITEMS_MAX]
        first = ", ".join(f"{key!r}: {_short(one)}" for key, one in items)
        return f"{{{first}, ... {len(value) - _ITEMS_MAX} more}}"
    text = repr(value)
    return text if len(text) <= _CHARS_MAX else f"{text[: _CHARS_MAX - 3]}..."


def _html_of_handle(self: Any) -> str:
    """The facts of the handle that need no read."""
    from deedbook._show.page import fragment, table

    rows = []
    for name in _FACTS:
        try:
            value = getattr(self, name)
        except (AttributeError, Error):  # another format, or closed, or another process's
            continue
        rows.append((name.replace("_", " "), _text(getattr(value, "verdict", value))))
    return fragment(f"<p>{_escaped(repr(self))}</p>{table(['', ''], rows)}")


def html_of_report(self: Any) -> str:
    """The fields in a table, lists of reports in tables of their own."""
    from deedbook._show.page import fragment

    bad = getattr(self, "ok", True) is False or getattr(self, "verdict", None) == "corrupt"
    style = ' class="bad"' if bad else ""
    head = f"<p{style}><b>{type(self).__name__}</b></p>"
    return fragment(head + _fields(self) + _map(self))


def _fields(report: Any) -> str:
    from deedbook._show.page import table

    rows, below = [], ""
    for name in report.to_dict():
        value = getattr(report, name)
        if isinstance(value, list) and value and hasattr(value[0], "to_dict"):
            columns = list(value[0].to_dict())
            shown = [
                [_text(getattr(one, column)) for column in columns] for one in value[:_ROWS_MAX]
            ]
            below += f"<p>{_escaped(name)}</p>{table(columns, shown)}"
            if len(value) > _ROWS_MAX:
                below += f'<p class="note">And {len(value) - _ROWS_MAX:,} more.</p>'
            continue
        rows.append((name, _text(value)))
    return table(["", ""], rows) + below


def _map(report: Any) -> str:
    """The place of a check's damage."""
    if not isinstance(report, _core.VerifyReport) or not report.damages:
        return ""
    from deedbook._formats.info import part_of
    from deedbook._show.charts import Piece, strip

    part = part_of("", report.to_dict())
    length = part.end - part.begin
    pieces = [Piece(0, length, "one", "intact")]
    for one in part.damages:
        pieces.append(
            Piece(one.offset - part.begin, one.end - part.begin, "bad", f"{one[0]:,}: {one[2]}")
        )
    return strip(pieces, length, [f"byte {part.begin:,}", f"byte {part.end:,}"], "Map of damage")


def _text(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "-" if value is None else value if isinstance(value, str) else _short(value)


def _escaped(text: str) -> str:
    from deedbook._show.page import escaped

    return escaped(text)
