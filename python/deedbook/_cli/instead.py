"""The parts of the shell that depend on the format of a log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deedbook._formats.info import FormatInfo

__all__ = ["instead_of"]

_INSTEAD: Final[dict[str, dict[str, str]]] = {
    "wal": {
        "resume": "the records of a WAL have no numbers: 'deedbook info --json' says how many there"
        " are, and --acks the byte up to which they are durable",
    },
    "ledger": {
        "resume": "the records of a ledger have no numbers before their file is finished",
    },
    "nostr": {
        "append": "'deedbook import' stores events in it",
        "follow": "a reader sees the events that were stored when it opened the store; ask again,"
        """ as by 'deedbook query STORE {"since":TIME}'""",
    },
}


def instead_of(info: FormatInfo) -> Mapping[str, str]:
    """Advice by command or option, for commands and options that the format lacks."""
    return _INSTEAD.get(info.name, {})
