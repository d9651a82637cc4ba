"""Files that commands replace: report, export and metrics write aside, and rename."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from deedbook import Wal
from deedbook._cli import main
from deedbook._cli.files.aside import written_aside

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
    with Wal.create(tmp_path / "wal") as wal:
        wal.append(b"one")
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


@POSIX
def test_a_file_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    mask = os.umask(0o022)
    try:
        write(file, b"new")
        assert stat.S_IMODE(file.stat().st_mode) == 0o644
        for mode in (0o600, 0o660, 0o444):
            file.chmod(mode)
            write(file, b"%o" % mode)
            assert stat.S_IMODE(file.stat().st_mode) == mode and file.read_bytes() == b"%o" % mode
    finally:
        os.umask(mask)


def test_output_names_may_have_the_systems_maximum_length(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with Wal.create(tmp_path / "wal") as wal:
        wal.append(b"one")
    file = tmp_path / ("記" * 82 + ".jsonl")
    assert main(["export", str(tmp_path / "wal"), "-o", str(file)]) == 0, capfd.readouterr().err
    write(tmp_path / "here" if os.name == "nt" else tmp_path / ("x" * 255), b"new")
    assert file.read_bytes().count(b"\n") == 1 and len(os.listdir(tmp_path)) == 3
