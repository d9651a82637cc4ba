"""Commands on every format: ``export``, ``cat --tail``, and the keys of ``info --json``."""

import base64
import csv
import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import Book, Ledger
from deedbook._formats import FORMATS
from deedbook._formats.ledger import _LedgerInfo
from logs import append_to, make_logs
from shell import complaint, ok
from shell import deedbook as command

KINDS = ("parquet", "arrow", "csv", "jsonl")
PAYLOADS = [b'{"n":%d,\r\n"text":"a, \\"b\\" \xc3\xa6"}' % number for number in range(300)]
COLUMNS = {
    "book": ["event", "mug"],
    "pier": ["event", "mug"],
    "wal": ["lsn"],
    "ledger": ["file", "record"],
    "nostr": ["segment", "offset"],
}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of each format below one directory; tests must not change them."""
    home = make_logs(tmp_path_factory.mktemp("logs"), PAYLOADS)
    append_to("wal", home / "bytes", [b"text", b"a\xff"])
    return home


def needs(kind: str) -> None:
    if kind in ("parquet", "arrow"):
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")


def rows_of(file: Path) -> list[dict[str, Any]]:
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]]
    if file.suffix == ".csv":
        with file.open(newline="", encoding="utf-8") as opened:
            found = list(csv.DictReader(opened))
        return [
            {name: one if name.startswith("payload") else int(one) for name, one in row.items()}
            for row in found
        ]
    dataset = pytest.importorskip("pyarrow.dataset")
    rows: list[dict[str, Any]] = (
        dataset.dataset(file, format=file.suffix[1:]).to_table().to_pylist()
    )
    return rows


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", COLUMNS)
def test_a_file_holds_all_records(logs: Path, tmp_path: Path, name: str, kind: str) -> None:
    needs(kind)
    file = tmp_path / f"out.{kind}"
    # Otherwise JSON lines of an event store are the events.
    words = ["--payload", "text"] if (name, kind) == ("nostr", "jsonl") else []
    told = json.loads(ok("export", logs / name, "-o", file, "--json", *words))
    with deedbook.open(logs / name) as log:
        records = list(log.iter((0, 0), (1, 0)) if name == "ledger" else log.iter())
    payloads = [one.to_json().encode() if name == "nostr" else one.payload for one in records]
    assert told["ok"] and told["records"] == len(payloads) >= 30
    assert told["payload_bytes"] == sum(map(len, payloads))
    assert told["bytes"] == file.stat().st_size
    rows = rows_of(file)
    assert list(rows[0]) == [*COLUMNS[name], "payload"]
    raw = kind in ("parquet", "arrow")
    assert [row["payload"] for row in rows] == [
        payload if raw else payload.decode() for payload in payloads
    ]
    of_place = dict(zip(COLUMNS["nostr"], getattr(records[0], "location", ()), strict=False))
    facts = {**records[0].to_dict(), **of_place}
    assert [rows[0][column] for column in COLUMNS[name]] == [facts[c] for c in COLUMNS[name]]
    assert os.listdir(tmp_path) == [file.name]


@pytest.mark.parametrize("kind", KINDS)
def test_payloads_as_base64(logs: Path, tmp_path: Path, kind: str) -> None:
    needs(kind)
    named = tmp_path / f"x.{kind}"
    ok("export", logs / "bytes", "-o", named, "--payload", "base64")
    found = [base64.b64decode(row["payload_base64"]) for row in rows_of(named)]
    assert found == [b"text", b"a\xff"]


def test_payloads_as_json_and_text(logs: Path, tmp_path: Path) -> None:
    file = tmp_path / "out"
    ok("export", logs / "wal", "-o", file, "--format", "jsonl", "--payload", "json")
    lines = file.read_bytes().splitlines()
    assert [json.loads(line)["payload"] for line in lines] == [json.loads(one) for one in PAYLOADS]
    for payload, where, said in (
        ("text", "lsn 12", "byte 2 of the payload is not UTF-8"),
        ("json", "lsn 0", "not JSON"),
    ):
        words = ("export", logs / "bytes", "-o", tmp_path / "bad.csv", "--payload", payload)
        told = complaint(command(*words), 2)
        assert said in told and where in told
    assert os.listdir(tmp_path) == ["out"]


def test_export_ignores_files_sent_during_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.open(tmp_path / "log", "a", batch_records=1) as ledger:
        ledger.append(b"1")
        ledger.append(b"2")
    listed = _LedgerInfo.data_files

    def sent(info: _LedgerInfo, path: str, **options: Any) -> list[str]:
        files = listed(info, path, **options)
        os.unlink(files[0])
        return files

    monkeypatch.setattr(_LedgerInfo, "data_files", sent)
    file = tmp_path / "out.jsonl"
    ok("export", tmp_path / "log", "-o", file)
    assert len(rows_of(file)) == 1


def test_damaged_export_leaves_no_file_without_skip_corrupt(tmp_path: Path) -> None:
    append_to("book", tmp_path / "log", [b"one", b"two", b"three"])
    log = tmp_path / "log" / "book.log"
    log.write_bytes(log.read_bytes().replace(b"two", b"tvo"))
    file = tmp_path / "out.jsonl"
    file.write_text("former")
    assert command("export", tmp_path / "log", "-o", file).returncode == 1
    assert file.read_text() == "former" and sorted(os.listdir(tmp_path)) == ["log", "out.jsonl"]
    skipped = command("export", tmp_path / "log", "-o", file, "--skip-corrupt")
    assert skipped.returncode == 1 and b"skipping damage" in skipped.stderr
    assert [row["event"] for row in rows_of(file)] == [1, 3]


def test_export_memory_is_constant_in_log_length(tmp_path: Path) -> None:
    """200 MB of payloads with a smaller limit of the address space."""
    resource = pytest.importorskip("resource", reason="needs POSIX")
    with Book.create(tmp_path / "log", durability="none") as book:
        for _ in range(200):
            book.append_many([b"x" * 10_000] * 100)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (160 << 20, 160 << 20))

    command = [sys.executable, "-m", "deedbook", "export", str(tmp_path / "log")]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "out.jsonl")],
        capture_output=True,
        text=True,
        preexec_fn=limit,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.jsonl").stat().st_size > 200_000_000


@pytest.mark.parametrize("name", ["book", "pier", "wal", "ledger", "nostr"])
def test_tail_prints_the_last_records(logs: Path, name: str) -> None:
    log = logs / name
    lines = ok("cat", log).splitlines(keepends=True)
    for records in (0, 1, 7, len(lines), 10_000):
        assert ok("cat", log, "-n", records) == b"".join(lines[max(0, len(lines) - records) :])
    assert ok("tail", log) == b"".join(lines[-10:])
    of_both = ok("tail", "-n", 1, log, logs / "wal").splitlines(keepends=True)
    assert of_both[0] == f"{log}:".encode() + lines[-1] and len(of_both) == 2
    assert ok("cat", log, "--tail", 2, "--json").count(b"\n") == 2


@pytest.mark.parametrize("name", ["cat", "tail"])
def test_an_error_is_not_printed_among_the_records(tmp_path: Path, name: str) -> None:
    append_to("wal", tmp_path / "wal", [b"1", b"2", b"no JSON", b"4"])
    done = command(name, tmp_path / "wal", "--json", "--payload", "json")
    assert [set(json.loads(line)) for line in done.stdout.splitlines()] == [{"lsn", "payload"}] * 2
    assert "not JSON" in complaint(done, 2)


def test_tail_goes_with_follow(logs: Path) -> None:
    wal = logs / "wal"
    assert ok("cat", wal, "-n", 2, "--follow", "--timeout", 0.05).count(b"\n") == 2
    assert ok("tail", wal, "-f", "--timeout", 0.05).count(b"\n") == 10


def info(path: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(ok("info", "--json", path))
    return facts


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def below(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for one in value.values() if isinstance(value, dict) else value:
        if isinstance(one, dict | list):
            yield from below(one)


def test_info_help_names_all_keys_per_format(logs: Path, tmp_path: Path) -> None:
    text = ok("info", "--help").decode()
    common, *parts = re.split(
        r"(?m)^  (book|pier|wal|ledger|nostr) ", text.split("--json there")[1]
    )
    rows = dict(zip(parts[::2], parts[1::2], strict=True))
    assert list(rows) == [one.name for one in FORMATS]
    rows["nostr"], after = rows["nostr"].split("\nThe saved end")
    found = {name: info(logs / name) for name in rows}
    known = {key for facts in found.values() for key in facts} | {"saved_from", "meta_error"}
    for name, facts in found.items():
        assert set(facts) <= words(common) | words(rows[name]), name
        allowed = {*facts, *below(facts), "meta_error"}
        assert words(rows[name]) & known <= allowed | {"records"}, name
        assert words(common) & known <= set(facts), name

    second = 40 + len(PAYLOADS[0])  # the byte at which record 2 begins
    end = tmp_path / f"book.log.cut-{second}"
    end.write_bytes((logs / "book" / "book.log").read_bytes()[second:])
    facts = info(end)
    assert set(facts) <= words(common + rows["book"] + after)
    assert set(found["book"]) - set(facts) == {"transactions", "staged"}


def test_export_without_file_prints_json_lines(logs: Path) -> None:
    rows = [json.loads(line) for line in ok("export", logs / "wal").splitlines()]
    assert [row["payload"].encode() for row in rows] == PAYLOADS
    events = [json.loads(line) for line in ok("export", logs / "nostr").splitlines()]
    assert events and all({"id", "sig"} <= set(event) for event in events)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_text_is_compressed_as_its_name_says(logs: Path, tmp_path: Path, kind: str) -> None:
    plain, packed = tmp_path / f"x.{kind}", tmp_path / f"x.{kind}.gz"
    ok("export", logs / "wal", "-o", plain)
    ok("export", logs / "wal", "-o", packed)
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
