"""``deedbook nostr``: the commands of the event store."""

from __future__ import annotations

import argparse

from deedbook._cli import nostr_export, nostr_import, nostr_look, nostr_mend
from deedbook._cli.append import durability
from deedbook._cli.arguments import Commands, add_json, add_lock_timeout, add_quiet

CHECKS = ("none", "id", "signature")


def add_arguments(commands: Commands) -> None:
    """Add the command ``nostr`` with its own commands."""
    parser = commands.add_parser(
        "nostr",
        help="store, query and compact Nostr events",
        description="Store Nostr events in pages, with a write-ahead log, an index and compaction.",
        epilog="examples:\n"
        "  deedbook nostr import store events.jsonl       an event a line; also .gz and .zst\n"
        "  deedbook nostr query store '{\"kinds\":[1]}'     a filter of NIP-01\n"
        "  deedbook nostr stats store                     by kind, author, day and tag\n"
        "  deedbook nostr export store events.jsonl.gz    all events that count\n\n"
        "'deedbook nostr COMMAND --help' says more.",
    )
    nostr = parser.add_subparsers(
        dest="nostr_command", metavar="COMMAND", required=True, title="commands"
    )
    _add_import(nostr)
    _add_export(nostr)
    _add_query(nostr)
    _add_stats(nostr)
    _add_verify(nostr)
    _add_compact(nostr)
    _add_reindex(nostr)
    _add_repair(nostr)
    _add_salvage(nostr)
    _add_info(nostr)


def _add(commands: Commands, name: str, text: str, epilog: str) -> argparse.ArgumentParser:
    first, _, rest = text.partition(". ")
    brief = (first[:1].lower() + first[1:]).rstrip(".")
    description = f"{first}. {rest}" if rest else text
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=brief, description=description, epilog=epilog
    )
    parser.add_argument("store", metavar="STORE", help="directory of the event store")
    return parser


def _add_mapped_reads(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mapped-reads",
        action="store_true",
        help="read segments through maps: a little quicker, and counted as memory (Linux)",
    )


def _add_import(commands: Commands) -> None:
    parser = _add(
        commands,
        "import",
        "Store the events of JSON lines. The store is made if it is missing. What is stored "
        "already is passed over. An import of the same files that was interrupted, or killed, goes "
        "on where it was.",
        "examples:\n"
        "  deedbook nostr import store events.jsonl\n"
        "  deedbook nostr import store 2026-*.jsonl.zst --check signature\n"
        "  zcat dump.gz | deedbook nostr import store --aside bad.jsonl\n\n"
        "Gzip and zstd are known by their first bytes. Lines that are no event, or a wrong or too\n"
        "large one, are reported with number and reason, and the rest goes on; the exit code is 1\n"
        "then.\n"
        "Ctrl-C and SIGTERM end at the edge of a commit. A second signal ends at once.\n\n"
        "What is done of each FILE is noted in the store twice a second, and forgotten once all\n"
        "files are in. A file of another size, time or beginning begins again, as standard input\n"
        "does, and with --aside of a .gz or .zst all files.",
    )
    parser.add_argument(
        "files", metavar="FILE", nargs="*", help="inputs; - (default): standard input"
    )
    parser.add_argument(
        "--no-resume", action="store_true", help="begin each FILE again, whatever is noted"
    )
    parser.add_argument(
        "--check",
        choices=CHECKS,
        default="id",
        help="what is checked besides the form: that the id is that of the content (default), "
        "also the signature, or nothing",
    )
    parser.add_argument("--aside", metavar="FILE", help="append bad lines to FILE as they are")
    parser.add_argument(
        "--stop-at-bad", action="store_true", help="end with the first bad line; exit code 2"
    )
    parser.add_argument(
        "--durability",
        metavar="WHEN",
        type=durability,
        help="always, interval:MS, bytes:N, manual (at the end), none (default: within 100 ms)",
    )
    parser.add_argument(
        "--history",
        choices=("drop", "keep"),
        help="what becomes of events that newer ones replace, from now on (default: as stored with "
        "the store, drop for a new one)",
    )
    add_lock_timeout(parser)
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=nostr_import.run_import)


def _add_export(commands: Commands) -> None:
    parser = _add(
        commands,
        "export",
        "Write the events as JSON lines. In the order in which they were stored.",
        "examples:\n"
        "  deedbook nostr export store > events.jsonl\n"
        "  deedbook nostr export store events.jsonl.gz\n\n"
        "FILE must not exist; .gz and .zst are compressed. After an error it is removed.\n"
        "With --skip-corrupt the exit code is 1 if damage was passed over.",
    )
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default="-", help="output; - (default): standard output"
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="also deleted, replaced and expired events that are still stored",
    )
    _add_skip_corrupt(parser)
    add_json(parser, "one JSON object as the result; needs FILE")
    add_quiet(parser)
    _add_mapped_reads(parser)
    parser.set_defaults(run=nostr_export.run_export)


def _add_query(commands: Commands) -> None:
    parser = _add(
        commands,
        "query",
        "Print the events that a filter wants, as JSON lines. The newest first.",
        "examples:\n"
        '  deedbook nostr query store \'{"kinds":[1],"limit":10}\'\n'
        '  deedbook nostr query store \'[{"kinds":[0]},{"#t":["deedbook"]}]\'\n'
        "  deedbook nostr query store - < filter.json\n\n"
        "Reads only, and works while another process writes: all events are looked at, without\n"
        "the index. With --skip-corrupt the exit code is 1 if damage was passed over.",
    )
    parser.add_argument(
        "filter", metavar="FILTER", help="of NIP-01, as JSON, or a list of them; -: standard input"
    )
    _add_skip_corrupt(parser)
    _add_mapped_reads(parser)
    parser.set_defaults(run=nostr_look.run_query)


def _add_stats(commands: Commands) -> None:
    parser = _add(
        commands,
        "stats",
        "Count the events by kind, author, day and tag. Reads all of them. Which part of each "
        "segment a compaction would drop comes last, and whether one is due.",
        "examples:\n"
        "  deedbook nostr stats store --top 20\n"
        "  deedbook nostr stats --json store | jq .kinds\n"
        "  deedbook nostr stats --json store | jq .compaction_due\n\n"
        "With --skip-corrupt the exit code is 1 if damage was passed over.",
    )
    parser.add_argument(
        "--top",
        metavar="N",
        type=nostr_look.top,
        default=10,
        help="so many rows of each table; 0: all (default: 10; with --json all)",
    )
    _add_skip_corrupt(parser)
    add_json(parser)
    add_quiet(parser)
    _add_mapped_reads(parser)
    parser.set_defaults(run=nostr_look.run_stats)


def _add_skip_corrupt(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--skip-corrupt", action="store_true", help="go on after damage")


def _add_verify(commands: Commands) -> None:
    parser = _add(
        commands,
        "verify",
        "Check every page, record and id, without changing anything. A store that is being "
        "written is checked as far as it was when this began.",
        "examples:\n"
        "  deedbook nostr verify store --check signature\n"
        "  deedbook nostr verify --json store | jq .damages\n\n"
        "Exits with 1 if anything is damaged or wrong; each place is named.",
    )
    parser.add_argument("--check", choices=CHECKS, default="id", help="as of import")
    add_json(parser)
    add_quiet(parser)
    _add_mapped_reads(parser)
    parser.set_defaults(run=nostr_look.run_verify)


def _add_compact(commands: Commands) -> None:
    parser = _add(
        commands,
        "compact",
        "Drop deleted, replaced and expired events. Segments in which they take enough of the "
        "bytes are written again without them.",
        "examples:\n"
        "  deedbook nostr compact store --dry-run\n"
        "  deedbook nostr compact store --ratio 0      all that can be dropped",
    )
    parser.add_argument(
        "--ratio",
        metavar="SHARE",
        type=nostr_look.share,
        help="of the bytes of a segment, 0 to 1 (default: 0.2)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be dropped, and change nothing"
    )
    add_lock_timeout(parser)
    add_quiet(parser)
    add_json(parser)
    parser.set_defaults(run=nostr_look.run_compact)


def _add_reindex(commands: Commands) -> None:
    parser = _add(
        commands,
        "reindex",
        "Delete the index and make it again from the events.",
        "examples:\n  deedbook nostr reindex store",
    )
    add_lock_timeout(parser)
    add_quiet(parser)
    add_json(parser)
    parser.set_defaults(run=nostr_look.run_reindex)


def _add_repair(commands: Commands) -> None:
    parser = _add(
        commands,
        "repair",
        "Make a damaged store usable again. What is removed is saved beside its file first; what "
        "is intact after damage in the write-ahead log goes with it, so try salvage before.",
        "examples:\n"
        "  deedbook nostr salvage store rescued    copy all that is intact\n"
        "  deedbook nostr repair store --dry-run   what is damaged, and what would be removed\n"
        "  deedbook nostr repair store             then make the store usable again\n\n"
        "Exits with 0 when the store is usable, whatever had to be removed, and with 1 when it is\n"
        "not.",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be removed, and change nothing"
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="cut the write-ahead log also if intact events go with it",
    )
    parser.add_argument(
        "--accept-loss",
        action="store_true",
        help="go on without acknowledged events that are missing; the loss stays noted",
    )
    add_json(parser)
    parser.set_defaults(run=nostr_mend.run_repair)


def _add_salvage(commands: Commands) -> None:
    parser = _add(
        commands,
        "salvage",
        "Copy every intact event, each once, to a new store. The source is not changed, and may "
        "be one that cannot be opened.",
        "examples:\n"
        "  deedbook nostr salvage store rescued\n"
        "  deedbook nostr salvage --json store rescued | jq .damages\n\n"
        "Exits with 0 when everything intact was copied, whatever was left out, and with 1 when\n"
        "there was something, but nothing intact.",
    )
    parser.add_argument("target", metavar="DST", help="directory of the new store")
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=nostr_mend.run_salvage)


def _add_info(commands: Commands) -> None:
    parser = _add(
        commands,
        "info",
        "Show the size of a store, and what its manifest says. Reads no events.",
        "examples:\n  deedbook nostr info --json store",
    )
    add_json(parser)
    parser.set_defaults(run=nostr_look.run_info)
