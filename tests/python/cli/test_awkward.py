"""Awkward moments of a new user: another locale, Ctrl-C at once, bytes for a path, a full disk."""

import csv
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import Book, EventStore, Ledger, MissingError, Pier, Wal
from deedbook._cli import main
from deedbook._cli.failure import CliError
from deedbook._cli.files.aside import written_aside
from deedbook._formats import detect
from logs import append_to

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
COMMAND = "import sys; from deedbook_command import main; sys.exit(main())"


def run(*words: Any, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *map(str, words)],
        env={**os.environ, **environment},
        capture_output=True,
        timeout=60,
        check=False,
    )


@posix
def test_a_path_has_the_encoding_of_the_locale(tmp_path: Path) -> None:
    log = tmp_path / "neu ☃"
    append_to("book", log, [b"{}"])
    ascii = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for words in (["info", log], ["verify", log], ["cat", log], ["stats", log, "--json"]):
        done = run(*words, **ascii)
        assert (done.returncode, done.stderr) == (0, b""), done
    done = run("info", tmp_path / "no ☃", **ascii)
    assert done.returncode == 2 and b"internal error" not in done.stderr
    done = run("backup", "-q", log, tmp_path / "copy ☃", **ascii)
    assert done.returncode == 0, done.stderr
    with Book.open(tmp_path / "copy ☃") as book:
        assert len(book) == 1 and book.path == str(tmp_path / "copy ☃")


INTERRUPTS = """
import signal
import sys


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            signal.raise_signal(signal.SIGINT)


sys.meta_path.insert(0, Finder())
"""


@posix
@pytest.mark.parametrize("way", [["-c", COMMAND], ["-m", "deedbook"]], ids=["script", "module"])
@pytest.mark.parametrize("name", ["_core", "_methods", "_cli", "_cli.terminal.output"])
def test_ctrl_c_during_package_import_prints_one_line(
    name: str, way: list[str], tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTS.format(name=f"deedbook.{name}"))
    done = subprocess.run(
        [sys.executable, *way, "info", str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, b"deedbook: interrupted\n")


@posix
@pytest.mark.parametrize("kind", [Book, Wal, Pier, Ledger, EventStore])
def test_a_path_may_be_bytes(kind: Any, tmp_path: Path) -> None:
    path = os.fsencode(tmp_path / "log")
    with kind.open(path, "a") as log:
        if kind is not EventStore:
            log.append(b"x")
    assert detect(path) == detect(os.fsdecode(path))
    with deedbook.open(path) as log:
        assert log.path == os.fsdecode(path)
    with pytest.raises(TypeError, match=r"expected str, bytes or os\.PathLike object, not int"):
        kind.open(7)


def test_a_backup_makes_no_directories_above_the_copy(tmp_path: Path) -> None:
    for kind, options in ((Book, {}), (Wal, {"single_file": True})):
        with kind.create(tmp_path / kind.__name__, **options) as log:
            log.append(b"x")
        with pytest.raises(MissingError) as raised:
            log_path = tmp_path / kind.__name__
            deedbook.backup(log_path, tmp_path / "none" / "copy")
        assert raised.value.filename == str(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_cat_says_that_a_record_is_packed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with Wal.create(tmp_path / "log") as wal:
        wal.append(b"{}")
        wal.append_many([b'{"a":1}', b'{"b":2}'], atomic=True)
    assert main(["cat", str(tmp_path / "log")]) == 0
    out, said = capfd.readouterr()
    assert len(out.splitlines()) == 2 and said.startswith("deedbook: 1 record with several")


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("where", ["file", "folder"])
def test_output_follows_no_link_of_another_user(where: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_bytes(b"mine")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    link = shared / "link"
    link.symlink_to(victim / "file" if where == "file" else victim)
    path = str(link if where == "file" else link / "file")
    with written_aside(path) as file:  # root's own
        file.write(b"new")
    assert (victim / "file").read_bytes() == b"new"
    os.chown(link, 12345, 12345, follow_symlinks=False)
    refused = pytest.raises(CliError, match="symbolic link of another user")
    with refused, written_aside(path) as file:
        file.write(b"theirs")
    assert (victim / "file").read_bytes() == b"new"
    os.chown(shared, 12345, 12345)  # who owns the directory may put links there
    with written_aside(path) as file:
        file.write(b"owner")
    assert (victim / "file").read_bytes() == b"owner"


@posix
def test_output_keeps_permissions_and_no_other_bits(tmp_path: Path) -> None:
    (tmp_path / "page").write_bytes(b"old")
    (tmp_path / "page").chmod(0o6754)
    os.symlink("page", tmp_path / "link")
    os.symlink("../" + tmp_path.name + "/./link", tmp_path / "far")
    with written_aside(str(tmp_path / "far")) as file:
        file.write(b"new")
    assert (tmp_path / "page").read_bytes() == b"new" and (tmp_path / "far").is_symlink()
    assert stat.S_IMODE((tmp_path / "page").stat().st_mode) == 0o754
    os.symlink("loop", tmp_path / "loop")
    with pytest.raises(CliError), written_aside(str(tmp_path / "loop")):
        pass


@linux
def test_chaos_kills_only_processes_of_its_own_session() -> None:
    """A number that was listed earlier may be another process by now."""
    from chaos.kills.processes import kill, session

    first, second = (subprocess.Popen(["sleep", "60"], start_new_session=True) for _ in range(2))
    try:
        assert session(first.pid) == [first.pid]
        assert not kill(second.pid, first.pid) and second.poll() is None
        assert kill(first.pid, first.pid) and first.wait(10) == -signal.SIGKILL
        assert not kill(first.pid, first.pid)
        assert not kill(2**22 + 7, second.pid)
    finally:
        for process in (first, second):
            process.kill()
            process.wait()


def test_a_spreadsheet_gets_no_formula(tmp_path: Path) -> None:
    payloads = [b'=HYPERLINK("http://x")', b"+1", b"-1", b"@SUM(A1)", b"\t=1", b"plain", b"1=2"]
    append_to("book", tmp_path / "log", payloads)
    out = tmp_path / "out.csv"
    texts = [payload.decode() for payload in payloads]
    for flag, wanted in (
        ((), texts),
        (("--csv-safe",), [f"'{one}" for one in texts[:5]] + texts[5:]),
    ):
        assert main(["export", "-q", str(tmp_path / "log"), "-o", str(out), *flag]) == 0
        with out.open(newline="", encoding="utf-8") as file:
            assert [row["payload"] for row in csv.DictReader(file)] == wanted
    words = ("--csv-safe", "--format", "jsonl")
    assert main(["export", "-q", str(tmp_path / "log"), "-o", str(out), *words]) == 2


@posix
def test_cluster_secret_is_absent_from_process_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    from chaos.kills import cluster as clusters

    started: list[tuple[list[str], dict[str, str]]] = []

    def popen(command: list[str], **options: Any) -> Any:
        started.append((command, options["env"]))

    monkeypatch.setattr(clusters.subprocess, "Popen", popen)
    monkeypatch.setattr(clusters, "_await_port", lambda *_: None)
    found = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        cluster = clusters.Cluster(tmp_path / name)
        cluster.start(1)
        file = Path(cluster.environment["SPARK_CONF_DIR"]) / "spark-defaults.conf"
        settings = dict(line.split() for line in file.read_text().splitlines())
        assert settings.pop("spark.authenticate") == "true"
        found += settings.values()
        for path in (file, file.parent):
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    assert len(set(found)) == 2 and len(started) == 4
    for command, environment in started:
        assert "SPARK_CONF_DIR" in environment
        assert not any(secret in word for secret in found for word in command)


POSIX = pytest.mark.skipif(os.name == "nt", reason="needs POSIX")


def write(path: Path, data: bytes) -> None:
    with written_aside(str(path)) as file:
        file.write(data)


@POSIX
def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "page.html", tmp_path / "link"
    link.symlink_to(target)
    for data in (b"the target is not there yet", b"the target is replaced"):
        write(link, data)
        assert link.is_symlink() and target.read_bytes() == data
    with pytest.raises(OSError, match="not written"), written_aside(str(link)) as file:
        file.write(b"half")
        error = OSError("not written")
        error.kind = "io"  # type: ignore[attr-defined]
        raise error
    assert target.read_bytes() == data and os.listdir(target.parent) == ["page.html"]


@POSIX
def test_report_on_redirected_stdout_keeps_the_link(tmp_path: Path) -> None:
    links = tmp_path / "dev"
    links.mkdir()
    (links / "stdout").symlink_to("/dev/fd/1")  # as /dev/stdout, which is not put at risk here
    append_to("wal", tmp_path / "wal", [b"one"])
    command = [sys.executable, "-m", "deedbook", "report", str(tmp_path / "wal"), "-q"]
    command += ["-o", str(links / "stdout")]
    for there in (b"", b"what another command wrote\n"):
        (tmp_path / "page.html").write_bytes(there)
        with (tmp_path / "page.html").open("ab") as page:
            done = subprocess.run(command, stdout=page, stderr=subprocess.PIPE)
            page.write(b"and what comes after\n")
        assert (done.returncode, done.stderr) == (0, b"")
        text = (tmp_path / "page.html").read_bytes()
        assert text.startswith(there + b"<!doctype html>")
        assert text.endswith(b"</html>\nand what comes after\n")
    assert (links / "stdout").is_symlink() and os.listdir(links) == ["stdout"]


def test_output_names_may_have_the_systems_maximum_length(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    append_to("wal", tmp_path / "wal", [b"one"])
    file = tmp_path / ("記" * 82 + ".jsonl")
    assert main(["export", str(tmp_path / "wal"), "-o", str(file)]) == 0, capfd.readouterr().err
    write(tmp_path / "here" if os.name == "nt" else tmp_path / ("x" * 255), b"new")
    assert file.read_bytes().count(b"\n") == 1 and len(os.listdir(tmp_path)) == 3
