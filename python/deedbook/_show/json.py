"""Whether lines are JSON."""

from __future__ import annotations

import json
from typing import Final

from deedbook._core import _not_json

__all__ = ["JsonLines", "why_not_json"]


def why_not_json(line: bytes) -> str | None:
    """Why a line is not one JSON value in UTF-8 (RFC 8259), or None if it is."""
    try:
        _DECODER.decode(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return f"byte {error.start + 1} is not UTF-8"
    except json.JSONDecodeError as error:
        return f"{error.msg[:1].lower()}{error.msg[1:]} at column {error.pos + 1}"
    except ValueError as error:
        return str(error)
    except RecursionError:
        return "nested too deeply"
    return None


class JsonLines:
    """Some lines, to be asked which of them are not JSON."""

    def __init__(self, lines: list[bytes]) -> None:
        self._lines = lines
        # The core is many times faster; it has a lower limit of nesting, and no words.
        self._doubtful = frozenset(_not_json(lines))

    def why_not(self, index: int) -> str | None:
        """As `why_not_json` of the line at an index."""
        return why_not_json(self._lines[index]) if index in self._doubtful else None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


# Numbers are checked, not converted: no limit on their digits, and faster.
_DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse_constant)
