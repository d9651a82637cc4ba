"""Removed words of the shell, and their replacements."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

__all__ = ["nearest", "of_command", "of_option"]

_COMMANDS: Final = {
    "nostr import": "import STORE FILE",
    "nostr export": "export STORE -o FILE",
    "nostr query": "query STORE FILTER",
    "nostr stats": "stats STORE",
    "nostr verify": "verify STORE",
    "nostr compact": "compact STORE",
    "nostr reindex": "repair STORE --index",
    "nostr repair": "repair STORE",
    "nostr salvage": "salvage STORE DST",
    "nostr info": "info STORE",
    "spool append": "append LEDGER FILE --format ledger",
    "spool status": "info LEDGER",
    "spool verify": "verify LEDGER",
    "spool send": "send LEDGER URL",
    "spool dead-letters": "dead-letters LEDGER",
    "spool replay": "dead-letters LEDGER --replay",
    "spool migrate": "migrate OLD_DIR LEDGER",
    "pier roll": "retain PIER --roll",
    "export-lmdb": "migrate BOOK DST --format lmdb",
    "truncate": "retain WAL --from LSN (drop what comes before) or --to LSN (drop the rest)",
}
"""By the first one or two words."""
_GROUPS: Final = ("nostr", "spool", "pier", "wal")
"""Formats that once had commands of their own. Now every command detects the format."""
_ELSEWHERE: Final = {"spool endpoint": "examples/endpoint.py", "pipeline": "examples/pipeline"}
_OPTIONS: Final = {
    ("append", "--skip-invalid"): "bad lines are left out without it; --aside FILE keeps them",
    ("append", "--log"): "use --format",
    ("cat", "--start"): "use --from",
    ("cat", "--stop"): "use --to",
    ("export", "--csv"): "use --format csv",
    ("export", "--jsonl"): "use --format jsonl",
    ("export", "--parquet"): "use --format parquet",
    ("export", "--arrow"): "use --format arrow",
    ("export", "--all"): "use --include all",
    ("demo", "--out"): "use -o",
    ("spark", "--to"): "use --format",
}


def of_command(argv: Sequence[str], known: Sequence[str]) -> str:
    """The error text for an unknown command, with the replacement."""
    first, two = argv[0], " ".join(argv[:2])
    for words in (two, first):
        if words in _COMMANDS:
            way = _COMMANDS[words]
            command, _, more = way.partition(" (")
            after = f" ({more}" if more else ""
            return f"no command '{words}': use 'deedbook {command}'{after}"
        if words in _ELSEWHERE:
            return f"no command '{words}': use {_ELSEWHERE[words]}"
    if first in _GROUPS:
        return f"no command '{first}': each command detects the format (see 'deedbook --help')"
    return f"no command {first[:40]!r}{nearest(first, known)} (see 'deedbook --help')"


def of_option(argv: Sequence[str], known: Sequence[str]) -> str:
    """The replacement of an unknown option, as the end of an error text; empty without one."""
    for word in argv[1:]:
        option = word.partition("=")[0]
        if (argv[0], option) in _OPTIONS and option not in known:
            return f"; {_OPTIONS[argv[0], option]}"
        if option.startswith("--") and option not in known:
            return nearest(option, known)
    return ""


def nearest(word: str, known: Sequence[str]) -> str:
    """Suggest the known word nearest to the given word; nothing if no word is near."""
    near = get_close_matches(word, known, 1)
    return f"; did you mean '{near[0]}'?" if near else ""
