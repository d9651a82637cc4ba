"""The command line with write-ahead logs, at the process boundary."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deedbook import Wal

LINES = b"".join(b'{"n":%d}\n' % n for n in range(300))


def deedbook(*args: object, input: bytes | None = None, code: int = 0) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "deedbook", *map(str, args)], input=input, capture_output=True
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == code, (done.returncode, out, err)
    assert "Traceback" not in err
    return out, err


@pytest.fixture(params=["segments", "single"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "log"
    layout = ["--segment-bytes", "512"] if request.param == "segments" else ["--single-file"]
    out, err = deedbook("append", "--log", "wal", *layout, path, input=LINES)
    assert out == "" and "appended 300 records (bytes 0 to " in err and "all durable" in err
    return path


def test_what_is_appended_is_printed_and_described(path: Path) -> None:
    out, _ = deedbook("cat", path)
    lines = out.splitlines()
    assert len(lines) == 300 and lines[0] == '0\t{"n":0}' and lines[1] == '15\t{"n":1}'
    out, _ = deedbook("cat", path, "--json", "--reverse")
    newest = json.loads(out.splitlines()[0])
    assert newest["payload"] == '{"n":299}'
    assert deedbook("cat", path, "15:30", "--raw")[0] == '{"n":1}\n'
    assert deedbook("cat", path, "15", "--raw")[0] == '{"n":1}\n'
    assert "lies inside the record at lsn 15" in deedbook("cat", path, "16", code=2)[1]
    info = json.loads(deedbook("info", path, "--json")[0])
    assert (info["format"], info["records"], info["head"]) == ("wal", 300, 0)
    assert info["end"] == info["durable_end"] and info["recovery"]["verdict"] == "clean"
    assert "300, bytes 0 to" in deedbook("info", path)[0]
    assert ": ok, 300 records" in deedbook("verify", path)[0]
    out, err = deedbook("append", path, "--json", input=b"[1]\nnot json\n", code=2)
    told = json.loads(out)
    assert told["appended"] == 1 and told["error"]["line"] == 2 and "not JSON" in err
    # A quiet timeout ends following, behind what is there.
    assert len(deedbook("cat", path, "--follow", "--timeout", "0.1")[0].splitlines()) == 301


def test_records_are_dropped_at_both_ends(path: Path) -> None:
    single = path.is_file()
    lsns = [int(line.split("\t")[0]) for line in deedbook("cat", path)[0].splitlines()]
    told = json.loads(deedbook("truncate", path, "--after", lsns[200], "--json")[0])
    assert told["dropped_records"] == 99
    assert "dropped 1 record;" in deedbook("truncate", path, "--from", lsns[200])[0]
    if single:
        assert "no prefix to drop" in deedbook("truncate", path, "--before", lsns[9], code=2)[1]
        return
    with Wal.open(path, "a") as wal:
        wal.set_consumer("reader", lsns[50])
    assert '"reader" needs lsn' in deedbook("truncate", path, "--before", lsns[60], code=2)[1]
    deedbook("truncate", path, "--before", lsns[60], "--force")
    assert deedbook("cat", path)[0].splitlines()[0].startswith(f"{lsns[60]}\t")
    assert "reader needs lsn" in deedbook("info", path)[0]
    deedbook("truncate", path, "--before", "end", "--force")
    assert deedbook("cat", path)[0] == ""
    assert "give one of" in deedbook("truncate", path, code=2)[1]


def test_damage_is_found_read_around_salvaged_and_cut(path: Path, tmp_path: Path) -> None:
    single = path.is_file()
    lsns = [int(line.split("\t")[0]) for line in deedbook("cat", path)[0].splitlines()]
    at = lsns[100] + 9
    file = path if single else path / f"{at // 512:020d}.wal"
    raw = bytearray(file.read_bytes())
    raw[at if single else at % 512] ^= 1
    file.write_bytes(raw)
    out, _ = deedbook("verify", path, code=1)
    assert ": corrupt, 299 records" in out and f"record at lsn {lsns[100]}: checksum" in out
    out, err = deedbook("cat", path, code=1)
    assert len(out.splitlines()) == 100 and "next intact record at byte" in err
    out, err = deedbook("cat", path, "--skip-corrupt", code=1)
    assert len(out.splitlines()) == 299 and "skipping damage" in err
    assert "copied 299 records" in deedbook("salvage", path, tmp_path / "copy")[0]
    assert len(deedbook("cat", tmp_path / "copy")[0].splitlines()) == 299
    assert "what was cut is in" in deedbook("repair", path)[0]
    assert ": ok, 100 records" in deedbook("verify", path)[0]
    deedbook("append", path, input=b"1\n")


def test_a_killed_append_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "log"
    command = [sys.executable, "-m", "deedbook", "append", "--log", "wal", str(path)]
    process = subprocess.Popen(
        [*command, "--segment-bytes", "4096", "--acks", "--batch", "10", "-q"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(LINES[:-1])
    process.stdin.flush()
    acknowledged = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    acknowledged = int((process.stdout.read().splitlines() or [acknowledged])[-1])
    process.wait()
    with Wal.open(path) as wal:
        assert wal.end >= acknowledged > 0
        assert [record.payload for record in wal] == LINES.splitlines()[: len(wal)]
    deedbook("append", path, input=b"1\n")
    assert Wal.verify(path).ok


def test_an_interrupt_ends_between_commits(tmp_path: Path) -> None:
    path = tmp_path / "log"
    process = subprocess.Popen(
        [sys.executable, "-m", "deedbook", "append", "--log", "wal", str(path), "--acks"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"1\n2\n")
    process.stdin.flush()
    assert int(process.stdout.readline()) == 18
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130 and b"Traceback" not in err
    assert len(Wal.open(path)) == 2


def test_a_closed_pipe_is_quiet(path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "deedbook", "cat", str(path)], stdout=write, stderr=subprocess.PIPE
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_what_is_for_the_other_format_is_refused(path: Path, tmp_path: Path) -> None:
    assert "--resume goes by event" in deedbook("append", path, "--resume", input=b"", code=2)[1]
    deedbook("append", tmp_path / "book", input=b"1\n")
    assert (
        "holds a book"
        in deedbook("append", "--log", "wal", tmp_path / "book", input=b"", code=2)[1]
    )
    err = deedbook("truncate", tmp_path / "book", "--from", "0", code=2)[1]
    assert "holds a book" in err
