"""The event store from the shell."""

import gzip
import json
import os
import pickle
import re
import time
from pathlib import Path

import pytest

from deedbook import EventStore
from log_bytes import flip
from nostr_events import EVENTS, LINES, SMALL, made
from places import DATA
from shell import outputs, refused

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


@pytest.fixture
def store(path: Path) -> Path:
    out, err = outputs("import", path, SMALL, "--history", "keep", "--check", "signature")
    assert out == "" and err == "deedbook: stored 31 events of 32 lines, 1 deleted by the author\n"
    return path


def test_events_with_lost_tag_names_are_exported(path: Path, tmp_path: Path) -> None:
    data = DATA / "nostr"
    segments = path / "data" / "segments"
    segments.mkdir(parents=True)
    stored = bytearray((data / "lossy.2.seg").read_bytes())
    (segments / "data.2").write_bytes(stored)
    expected = [json.loads(line) for line in (data / "lossy.2.expected.jsonl").open()]
    out, err = outputs("export", path)
    assert [json.loads(line) for line in out.splitlines()] == expected
    assert err == "deedbook: exported 2 events\n"

    stored[4096 + 5] ^= 1  # another id, which no names meet
    (segments / "data.2").write_bytes(stored)
    _, err = outputs("export", path, "-o", tmp_path / "lossy.jsonl")
    assert err.splitlines()[0] == "deedbook: 1 event of them without names of tags, lost before"
    done = json.loads(outputs("export", path, "-o", tmp_path / "again.jsonl", "--json")[0])
    assert (done["records"], done["lossy"]) == (2, 1)
    report = json.loads(outputs("verify", "--json", path, code=1)[0])
    assert (report["recovered"], report["lossy"], report["faults"]) == (0, 1, 1)
    with EventStore.open(path) as store:
        found = list(store)
        assert [event.lossy for event in found] == [True, False]
        assert pickle.loads(pickle.dumps(found[0])).lossy and found[0].tags[1][0] == "t"
        pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        flags = pyarrow.table(store.batches(columns=["flags"]))["flags"]
        assert flags.to_pylist() == [64, 0]


def test_import_query_export(store: Path, tmp_path: Path) -> None:
    out, _ = outputs("export", store, "--include", "all")
    events = [json.loads(line) for line in out.splitlines()]
    assert events == [event for event in EVENTS if event in events] and len(events) == 31
    out, _ = outputs("query", store, '{"kinds":[1],"limit":2}')
    found = [json.loads(line) for line in out.splitlines()]
    right = sorted((e for e in EVENTS if e["kind"] == 1), key=lambda e: (-e["created_at"], e["id"]))
    assert found == right[:2]
    assert outputs("query", store, "-", stdin=b'{"kinds":[1],"limit":2}')[0] == out
    _, err = outputs("export", store, "-o", tmp_path / "out.jsonl.gz", "--include", "all")
    assert f"{tmp_path / 'out.jsonl.gz'}: exported 31 events, " in err
    packed = (tmp_path / "out.jsonl.gz").read_bytes()
    assert [json.loads(line) for line in gzip.decompress(packed).splitlines()] == events
    again = json.loads(outputs("import", store, "--json", stdin=packed)[0])
    assert (again["ok"], again["stored"], again["duplicates"]) == (True, 0, 31)


def test_import_reports_bad_lines_and_continues(path: Path, tmp_path: Path) -> None:
    forged = json.dumps({**made("a"), "content": "b"}).encode()
    text = b"\n".join([LINES[0], b"oops", forged, LINES[1]])
    _, err = outputs("import", path, "--aside", tmp_path / "bad", stdin=text, code=1)
    lines = err.splitlines()
    assert re.match(r"deedbook: line 2: expected value at column 1$", lines[0])
    assert re.match(r"deedbook: line 3: id: .*, that of the canonical form is ", lines[1])
    assert lines[2].startswith("deedbook: stored 2 events of 4 lines") and "2 bad" in lines[2]
    assert (tmp_path / "bad").read_bytes() == b"oops\n" + forged + b"\n"
    (tmp_path / "lines").write_bytes(text)
    _, err = outputs("import", path, tmp_path / "lines", code=1)
    assert err.startswith(f"deedbook: {tmp_path / 'lines'}: line 2: expected value at column 1\n")
    result = json.loads(outputs("import", path, "--json", stdin=text, code=1)[0])
    assert not result["ok"] and [bad["line"] for bad in result["bad_lines"]] == [2, 3]
    _, err = outputs("import", path, "--stop-at-bad", stdin=text, code=2)
    assert "line 2: expected value" in err
    result = json.loads(outputs("import", path, "--stop-at-bad", "--json", stdin=text, code=2)[0])
    assert result["error"]["kind"] == "invalid_argument" and "line 2" in result["error"]["message"]
    _, err = outputs("import", path, stdin=b"x\n" * 50, code=1)
    assert "and 30 more bad lines" in err and len(err.splitlines()) == 22
    assert outputs("import", path, "-q", stdin=b"x\n", code=1) == ("", "")


def test_stats_info_and_verify(store: Path) -> None:
    result = json.loads(outputs("stats", "--json", store)[0])
    with EventStore.open(store) as opened:
        live = [event.to_dict() for event in opened]
    assert result["events"] == len(live) == sum(result["kinds"].values())
    assert result["kinds"]["1"] == sum(event["kind"] == 1 for event in live)
    days = {time.strftime("%Y-%m-%d", time.gmtime(event["created_at"])) for event in live}
    assert set(result["days"]) == days
    assert set(result["authors"]) == {event["pubkey"] for event in live}
    assert result["tags"]["p"] == sum(tag[0] == "p" for e in live for tag in e["tags"] if tag)
    out, _ = outputs("stats", store, "--top", 2)
    assert f"{len(live)} events" in out and "kinds, the first 2" in out
    # Two of each table, and the segment.
    assert sum(line.startswith("  ") for line in out.splitlines()) == 9
    assert "1 segment, and what a compaction would drop; no compaction is due" in out
    facts = json.loads(outputs("info", "--json", store)[0])
    assert (facts["format"], facts["segments"], facts["records"]) == ("nostr", 1, 31)
    assert facts["page_bytes"] == 4096 and facts["segment_bytes"] > 31 * 4096
    assert "page bytes" in outputs("info", store)[0]
    out, _ = outputs("verify", store, "--check", "signature")
    assert out.startswith(f"{store}: ok, ") and "1 segment" in out


def test_damage_exits_with_1_and_names_the_place(store: Path) -> None:
    with EventStore.open(store) as opened:
        place = list(opened)[3].location
    (file,) = (store / "data" / "segments").iterdir()
    flip(file, place[1] + 60)
    out, _ = outputs("verify", store, code=1)
    assert "1 fault" in out and f"segment {place[0]}, bytes {place[1]:,}.." in out
    result = json.loads(outputs("verify", "--json", store, code=1)[0])
    assert result["damages"][0]["location"] == list(place) and not result["ok"]
    _, err = outputs("export", store, code=1)
    assert f"byte {place[1]}" in err.replace(",", "")
    out, err = outputs("export", store, "--include", "all", "--skip-corrupt", code=1)
    assert len(out.splitlines()) == 30 and "passed over 1 damaged place" in err
    assert f"byte {place[1]}" in outputs("query", store, "{}", code=1)[1].replace(",", "")
    for words in (["query", store, "{}", "--skip-corrupt"], ["stats", store]):
        out, err = outputs(*words, code=1)
        assert "passed over 1 damaged place; verify names them" in err
        assert len(out.splitlines()) == 30 or "30 events" in out
    counted = json.loads(outputs("stats", store, "--json", code=1)[0])
    assert (counted["ok"], counted["events"], counted["compaction_due"]) == (False, 30, None)
    assert counted["damages"][0]["location"] == list(place)
    before = file.read_bytes()
    assert f"byte {place[1]}" in outputs("compact", store, code=1)[1].replace(",", "")
    assert file.read_bytes() == before


def test_salvage_and_repair(store: Path, tmp_path: Path) -> None:
    with EventStore.open(store) as opened:
        place = list(opened)[3].location
    (file,) = (store / "data" / "segments").iterdir()
    flip(file, place[1] + 60)
    named = f"{file}, bytes {place[1]:,}.."
    out, _ = outputs("salvage", store, tmp_path / "to", code=1)
    assert out.startswith(f"{tmp_path / 'to'}: copied 31 events of ") and named in out
    assert "1 only from the write-ahead log" in out
    assert len(outputs("export", tmp_path / "to", "--include", "all")[0].splitlines()) == 31
    result = json.loads(outputs("salvage", "--json", store, tmp_path / "again", code=1)[0])
    assert (result["ok"], result["records"], result["format"]) == (False, 31, "nostr")
    assert result["damages"][0]["offset"] == place[1]
    assert "an event store is there" in refused("salvage", store, tmp_path / "to")

    out, _ = outputs("repair", store, "--dry-run", code=1)
    assert out.startswith(f"{store}: {named}") and "would remove " in out
    out, _ = outputs("repair", store, code=1)
    assert "--accept-loss goes on without them" in out
    result = json.loads(outputs("repair", "--json", store, "--accept-loss")[0])
    assert result["ok"] and result["is_loss"] and len(result["saved"]) == 1
    lost = "acknowledged events are lost"
    out, _ = outputs("verify", store)
    assert "30 events" in out and lost in out and lost in outputs("info", store)[0]
    assert "noted" not in out
    assert json.loads(outputs("info", "--json", store)[0])["is_loss"]
    out, _ = outputs("repair", store)
    assert out == f"{store}: noted before: acknowledged events are lost\n"


def test_compact_and_reindex(path: Path) -> None:
    lines = [json.dumps(made(str(n), kind=0, created_at=1_700_000_000 + n)) for n in range(50)]
    outputs("import", path, stdin="\n".join(lines))
    with EventStore.open(path, "a"):
        out, _ = outputs("compact", path, "--dry-run")
    assert "would drop 0 deleted, 49 replaced and 0 expired of 1 segment" in out
    result = json.loads(outputs("compact", path, "--json")[0])
    assert (result["kept"], result["replaced"], result["ok"]) == (1, 49, True)
    share = "no segment of which 20% is deleted, replaced or expired"
    assert outputs("compact", path)[0] == f"{path}: nothing dropped, {share}\n"
    out, _ = outputs("compact", path, "--ratio", "0")
    assert out == f"{path}: nothing dropped, there is nothing to drop\n"
    assert outputs("repair", path, "--index")[0] == f"{path}: indexed 1 event\n"
    assert json.loads(outputs("query", path, "{}")[0])["content"] == "49"
