"""Archives at a real S3 server that fails, stalls, loses answers and throttles; killed uploads."""

import logging
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

pytest.importorskip("obstore", reason="obstore is not installed")

import deedbook
import tiers
from deedbook import Wal, archive
from object_store import KEY, SECRET, Behaviour, Gate, Request
from shell import command
from shell import deedbook as run

SEGMENT = 4096


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"s3://bucket/{tmp_path.name}"


@pytest.fixture
def log(path: Path) -> Path:
    with Wal.create(path, segment_bytes=SEGMENT) as wal:
        wal.append_many(b"%4d" % number * 25 for number in range(120))
    return path


def sealed(log: Path) -> dict[str, bytes]:
    found = {file.name: file.read_bytes() for file in log.glob("*.wal")}
    return {name: data for name, data in found.items() if len(data) == SEGMENT}


def check(log: Path, url: str, to: Path) -> None:
    """The archive is the log's, has no remains, and gives every byte back."""
    report = archive.verify(url)
    assert report.ok and report.unlisted == []
    archive.restore(url, to)
    assert {file.name: file.read_bytes() for file in to.iterdir()} == sealed(log)


@pytest.mark.parametrize("behaviour", ["slow-down", "fail", "reset", "drop"])
def test_upload_survives_one_failure_of_any_request(
    behaviour: Behaviour, gate: Gate, log: Path, url: str, tmp_path: Path
) -> None:
    number = 0
    while True:
        gate.reset()
        gate.behave = lambda request, n=number: behaviour if request.number == n else "ok"
        to = f"{url}/{number}"
        archive.upload(log, to, timeout=5)
        if len(gate.requests) <= number:
            break
        pieces = [name for name in gate.stored if "/pieces/" in name]
        assert len(pieces) == len(set(pieces)) == 3
        number += 1
    assert number >= 9
    for one in range(number):
        check(log, f"{url}/{one}", tmp_path / f"back{one}")


@pytest.mark.parametrize("behaviour", ["slow-down", "fail", "stall", "reset", "drop"])
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_lasting_trouble_is_a_clear_error(
    method: str, behaviour: Behaviour, gate: Gate, log: Path, url: str, tmp_path: Path
) -> None:
    gate.behave = lambda request: behaviour if request.method == method else "ok"
    with pytest.raises(deedbook.IoError, match=f"s3://bucket/.*{REASONS[behaviour]}") as raised:
        archive.upload(log, url, timeout=1)
    assert raised.value.__cause__ is None and raised.value.path is not None
    gate.reset()
    archive.upload(log, url)
    check(log, url, tmp_path / "back")


def test_long_files_go_up_in_parts(
    gate: Gate, log: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deedbook.archive._upload._WHOLE_BYTES_MAX", 1000)
    assert archive.upload(log, url).sent == 3
    assert [one.method for one in gate.requests].count("POST") == 6
    check(log, url, tmp_path / "back")
    (tmp_path / "store").mkdir()
    archive.upload(log, (tmp_path / "store").as_uri())
    check(log, (tmp_path / "store").as_uri(), tmp_path / "again")


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_a_stalled_upload_at_once(number: int, gate: Gate, log: Path, url: str) -> None:
    arrived = threading.Event()

    def behave(request: Request) -> Behaviour:
        if request.method != "PUT":
            return "ok"
        arrived.set()
        return "stall"

    gate.behave = behave
    with subprocess.Popen(command("archive", log, url), stderr=subprocess.PIPE) as process:
        assert arrived.wait(30)
        process.send_signal(number)
        _, said = process.communicate(timeout=15)
    assert process.returncode == 128 + number and said.count(b"\n") == 1


REASONS = {
    "slow-down": "503, SlowDown|503",
    "fail": "500, InternalError|500",
    "stall": "did not answer in time",
    "reset": "the connection broke|the store failed",
    "drop": "the connection broke|the store failed",
}


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_killed_upload_is_gone_on_with(
    when: str, gate: Gate, log: Path, url: str, tmp_path: Path
) -> None:
    """Kill -9 at every request, before the server gets it, or before the client has the answer."""
    stride = tiers.number("ARCHIVE_STRIDE")
    number = 0
    while True:
        gate.reset()
        to = f"{url}/{number}"
        words = command("archive", log, to, "--quiet", "--timeout", "20s", "--catalog", url)
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:

            def kill(
                request: Request, at: int = number, child: "subprocess.Popen[bytes]" = process
            ) -> Behaviour:
                if request.number == at:
                    child.kill()
                    return "reset"
                return "ok"

            if when == "before":
                gate.behave = kill
            else:
                gate.after = kill
            process.communicate()
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
        gate.behave, gate.after = lambda request: "ok", lambda request: None
        report = archive.upload(log, to, catalog=url)
        pieces = [name for name in gate.stored if "/pieces/" in name]
        assert len(pieces) == len(set(pieces)) == 3, "each piece is stored once"
        assert report.pieces == 3
        check(log, to, tmp_path / f"back{number}")
        number += stride
    assert number >= 12
    entries = list(archive.Catalog(url).entries())
    assert sorted(int(entry.log) for entry in entries) == list(range(0, number + 1, stride))


def test_two_uploads_at_once_make_one_archive(
    gate: Gate, log: Path, url: str, tmp_path: Path
) -> None:
    """Both put the manifest at the same time; the second reads it again."""
    meet = threading.Barrier(2, timeout=20)

    def behave(request: Request) -> Behaviour:
        if (
            request.method == "PUT"
            and request.name.endswith("manifest.json")
            and meet.n_waiting < 2
        ):
            try:
                meet.wait()
            except threading.BrokenBarrierError:
                return "ok"
            meet.abort()
        return "ok"

    gate.behave = behave
    reports = []
    threads = [
        threading.Thread(target=lambda: reports.append(archive.upload(log, url))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [report.pieces for report in reports] == [3, 3]
    puts = [one for one in gate.requests if one.method == "PUT" and "manifest" in one.name]
    assert len(puts) == 2 and gate.stored.count(puts[0].name) == 1
    check(log, url, tmp_path / "back")


def test_no_line_shows_a_credential(
    gate: Gate,
    log: Path,
    url: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a-token-that-no-line-may-show")
    shown = []
    for behaviour in ("slow-down", "fail", "ok"):
        gate.behave = lambda request, behaviour=behaviour: behaviour
        secret = SECRET if behaviour != "ok" else "another-secret-that-no-line-may-show"
        done = run(
            *("archive", log, url, "--timeout", "1s", "--json"),
            env={**gate.environment, "AWS_SECRET_ACCESS_KEY": secret, "DEEDBOOK_DEBUG": "1"},
        )
        assert done.returncode == 2
        shown += [done.stdout.decode(), done.stderr.decode()]
    text = "".join(shown) + caplog.text
    assert "s3://bucket/" in text and "SlowDown" in text
    for secret in (KEY, SECRET, "another-secret", "a-token-that", "Signature"):
        assert secret not in text


def test_missing_bucket_is_named(gate: Gate, log: Path) -> None:
    with pytest.raises(deedbook.MissingError, match="no such object or bucket"):
        archive.upload(log, "s3://nowhere/x", timeout=2)
    with pytest.raises(deedbook.MissingError, match="no archive, or no bucket"):
        archive.verify("s3://nowhere/x", timeout=2)
