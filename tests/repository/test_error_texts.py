"""Every error text of the source: a situation of tests/texts meets it, or UNMET has the reason.

A text is a string literal outside of comments, unit tests and log lines that holds a space or
names an operation.
"""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SNAPSHOT = ROOT / "tests/texts/error_texts/snapshots/error_texts.snap"
SOURCES = re.compile(
    r"(book|log|sidecar|storage|transaction|wal)/|(commit|durability|error|mode|saving)\.rs"
    r"|scan/(damage|framing|mod)\.rs|nostr/(arrow/(parsed|stage_arrow)|store/(records|transact)"
    r"|log/(checkpoints|codec|entry|files|replay|wal|wal_options|wal_state))\.rs"
)
TOKEN = re.compile(r"""//[^\n]*|'(?:\\.[^']*|[^'\\])'|"((?:[^"\\]|\\.)*)\"""", re.DOTALL)
ESCAPE = re.compile(r"\\(\n\s*|.)", re.DOTALL)
# After these calls, a single word is a text, too: "cannot sync: ...".
DOING = ("io(", "fail(")
# The texts of the source without a situation, by the reason.
UNMET = {
    "needs a disk that fails, of which this opener knows none": [
        "read the file",
        "look at the file",
    ],
    "needs a failing disk below LMDB, which knows no simulated one": [
        "list the epochs",
        "measure the log",
        "read the environment",
        "read the epoch",
        "read the events",
        "sign the epoch",
        "write the environment",
        "write the events",
        "write the metadata",
    ],
    "takes 2 or 4 GiB": [
        "event {event} of {bytes} bytes, LMDB writes {VALUE_BYTES_MAX}",
        "part of {} bytes, or {count} parts, beyond 2^32",
        "payload of {len} bytes, Arrow binary holds 2^31 - 1",
    ],
    "a part of a log line, or what a file holds": [
        ", acknowledged {}s are missing from {} on",
        ", by finishing a truncation that a crash interrupted",
        ", saved to {}",
        ", set aside as {}",
        "offset {offset}\nend {end}\nreason {reason}\n",
        "records {records}\nfirst {first}\noffset {offset}\n",
        "segment_bytes {bytes}\n",
    ],
    "only through the map, on Linux": [
        "another process cut the file to {len} bytes, it had {}",
        "the file was cut, or its disk failed, under the map",
    ],
    "the bounds are asked before": ["event {wanted} expected, {found} found", "the end of the log"],
    "needs an index and a mark that are wrong alike": [
        "lsn {lsn}: not {records} records from {start} to {end}",
        "{} is not where the index says",
    ],
    "needs a disk that loses writes": [
        "the metadata is {stored:?}, and {:?} in the source",
        "the metadata that was written is not there",
    ],
    "needs another program that changes the file between two looks": [
        "no regular file",
        "not there",
        "the log was truncated while it was checked, again and again: check it once more",
        "{read} bytes are there, expected {bytes}",
    ],
    "each format that refuses so long a record names its option": ["the limit"],
    "Arrow refuses none of the columns that we make": ["arrow: {e}"],
    "no entry whose checksum holds has data of another shape": ["data length"],
    "needs a system without room for a thread": ["start the sync thread"],
    "the log is poisoned before its segments are asked again": ["an earlier sync failed: {why}"],
    "needs megabytes made to slow the search down": [
        "; records lie within each other here, and the search for intact ones was ended"
    ],
    "needs a damaged count in LMDB": ["{held} events are counted, but {first} to {last} are there"],
    "nothing appends to such a one": ["the environment was opened for metadata alone"],
    "needs a machine of 32 bits": ["payload of {len} bytes, this machine addresses {}"],
    "needs a process that may open few files: tests/python/book/test_pier.py": [
        "each epoch takes up to two open files:"
        " raise the limit (ulimit -n), or drop epochs with retain"
    ],
    "a test process has threads, and must not fork: tests/python/handles/test_signals.py": [
        "opened before a fork, by the parent; open it again in this process"
    ],
    "src/ledger/directory does": ["the directory was locked for {wait:?}"],
    "src/nostr/arrow/parsed.rs does": [
        "a batch of {bytes} bytes after {rows} lines, limit {BYTES_MAX}"
    ],
    "src/sidecar/damage.rs does": ["says no place"],
    "tests/book/convert/mod.rs does": ["event {event} of the copy is not that of the source"],
    "tests/book/lmdb/source.rs does": ["the log was written since its events were counted"],
    "tests/book/pier/retain.rs does": ["every epoch was dropped while it was checked: check again"],
}


def literals(source: str) -> Iterator[tuple[int, str, bool]]:
    """The place of each text, the text, and whether it names the failed operation."""
    code = source.split("#[cfg(test)]\nmod tests")[0]
    for token in TOKEN.finditer(code):
        before = code[max(0, token.start() - 500) : token.start()].rstrip()
        is_logged = re.search(r"(lines::info|warn)\([^;{}]*$", before)
        if token[1] is None or is_logged:
            continue
        text = ESCAPE.sub(lambda m: "" if m[1][0] == "\n" else m[1].replace("n", "\n"), token[1])
        if before.endswith(DOING) or " " in text:
            yield token.start(), text, before.endswith(DOING)


def longest_part(text: str) -> str:
    return max((part.split("}")[-1] for part in reversed(text.split("{"))), key=len)


def test_every_error_text_is_met_or_excused() -> None:
    met = "\n".join(re.findall(r"^  \[\w+\] (.*)", SNAPSHOT.read_text(), re.MULTILINE))
    known = {text for texts in UNMET.values() for text in texts}
    unmet = {}
    for path in (ROOT / "src").rglob("*.rs"):
        place = path.relative_to(ROOT / "src")
        # The simulated disk is a tool of tests.
        is_a_tool = path.name in ("sim.rs", "tests.rs") or "sim" in place.parts
        if is_a_tool or not SOURCES.match(place.as_posix()):
            continue
        for at, text, doing in literals(source := path.read_text()):
            part = f"cannot {text}: " if doing else longest_part(text)
            # A shorter part does not identify its text.
            if len(part.strip()) >= 5 and part not in met:
                unmet[text] = f"{place}:{source.count(chr(10), 0, at) + 1}"
    assert {text: place for text, place in unmet.items() if text not in known} == {}
    assert known - unmet.keys() == set(), "met, or gone"


def test_literals_are_found_where_errors_are_made() -> None:
    source = (
        "//! \"not in a comment\"\nfn f<'a>() { let c = ['\"', '\\''];\n"
        'let m = format!("the log {x} has \\\n    two lines");\n'
        'io("sync", e); lines::warn(format_args!("not in the log")); g("word") }\n'
        '#[cfg(test)]\nmod tests { "not in a test" }'
    )
    assert [text for _, text, _ in literals(source)] == ["the log {x} has two lines", "sync"]
    assert longest_part("a {x} longer {y:?} b") == " longer "
