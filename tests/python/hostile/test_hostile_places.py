"""A log's directory from an attacker: hostile files, against every command that takes a log."""

import contextlib
import os
import re
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook._cli import main
from deedbook._system.sidecar import dead_letters_of
from deedbook.http._dead import DeadLetters
from logs import write
from shell import unfit

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs links, FIFOs and /proc")

FORMATS = ("packed", "segments", "single", "pier", "ledger", "store")
SECRET = b"the-secret-of-another-user\n"
HUGE_BYTES = 1 << 30
LARGE = re.compile(r"\.(log|wal|seg|jsonl|mdb|cut-99)$|-events$|^log$")
LARGE_BYTES = 64 << 20
"""The size of files that may be large, because a backup copies them."""
MEMORY_BYTES = 200 << 20
SECONDS = 5


COMMANDS: dict[str, list[str]] = {
    "info": ["info", "LOG"],
    "verify": ["verify", "-q", "LOG"],
    "cat": ["cat", "LOG", "--json"],
    "tail": ["tail", "LOG"],
    "metrics": ["metrics", "LOG"],
    "backup": ["backup", "-q", "LOG", "OUT/backup"],
    "salvage": ["salvage", "-q", "LOG", "OUT/salvage"],
    "report": ["report", "-q", "LOG", "-o", "OUT/report.html"],
    "stats": ["stats", "-q", "LOG"],
    "export": ["export", "-q", "LOG", "-o", "OUT/export.jsonl", "--payload", "base64"],
    "repair": ["repair", "LOG", "--dry-run"],
    "vacuum": ["vacuum", "LOG", "--dry-run"],
    "consumers": ["consumers", "LOG"],
    "dead-letters": ["dead-letters", "LOG"],
    "query": ["query", "LOG", "{}"],
}
# Commands for only some formats.
ONLY = {
    "consumers": ("segments", "single", "pier"),
    "dead-letters": ("ledger",),
    "query": ("store",),
}

# The files and directories of each format; some of them are optional.
FILES = {
    "packed": [
        "book.log", "meta.bin", "book.log.cut-99", ".deedbook/mark", ".deedbook/lock",
        ".deedbook/settings", ".deedbook/index", ".deedbook/consumers", ".deedbook/transaction",
        ".deedbook/transactions", ".deedbook/loss", ".deedbook/extra",
    ],
    "segments": [
        f"{1:020}.wal", "head", ".deedbook/mark", ".deedbook/lock", ".deedbook/settings",
        ".deedbook/consumers", ".deedbook/cut", ".deedbook/transactions", ".deedbook/extra",
    ],
    "single": [
        "log", ".deedbook/log/mark", ".deedbook/log/lock", ".deedbook/log/settings",
        ".deedbook/log/consumers", ".deedbook/log/extra", "log.cut-99",
    ],
    "pier": [
        ".urb/log/.deedbook/lock", ".urb/log/.deedbook/consumers",
        ".urb/log/.deedbook/transaction", ".urb/log/0i0/book.log", ".urb/log/0i0/epoc.txt",
        ".urb/log/0i0/.deedbook/mark", ".urb/log/0i0/.deedbook/settings", ".urb/log/data.mdb",
    ],
    "ledger": [
        "0-events", ".deedbook/next-events", ".deedbook/settings", ".deedbook/quarantine/7-events",
        ".deedbook/dead-letters/x.jsonl", ".deedbook/jobs-events/transaction",
        ".deedbook/jobs-events/transactions", ".deedbook/extra",
    ],
    "store": [
        "manifest.json", "data/segments/data.0.seg", "wal/wal.log", ".deedbook/manifest",
        ".deedbook/lock", ".deedbook/transaction", ".deedbook/imports.json", ".deedbook/loss",
        "wal/.deedbook/wal.log/mark", "wal/.deedbook/wal.log/settings", ".deedbook/extra",
    ],
}  # fmt: skip
FOLDERS = {
    "packed": [".deedbook", ".deedbook/staged"],
    "segments": [".deedbook", ".deedbook/staged"],
    "single": [".deedbook", ".deedbook/log"],
    "pier": [".urb/log/.deedbook", ".urb/log/0i0", ".urb/log/0i0/.deedbook"],
    "ledger": [
        ".deedbook", ".deedbook/quarantine", ".deedbook/dead-letters", ".deedbook/jobs-events",
        ".deedbook/staged",
    ],
    "store": [".deedbook", "data", "data/segments", "wal", "wal/.deedbook", ".deedbook/events"],
}  # fmt: skip


def make(name: str, top: Path) -> None:
    path = top / "log"
    write(name, path)
    if name == "store":
        shutil.rmtree(path / ".deedbook" / "events", ignore_errors=True)
    elif name == "ledger":
        letters = DeadLetters(dead_letters_of(path, "events"))
        letters.write("x", [(0, b"no")], reason="no", status=400, attempts=1, now=0, url="http://h")
        (path / ".deedbook" / "quarantine").mkdir()


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    top = tmp_path_factory.mktemp("logs")
    for name in FORMATS:
        (top / name).mkdir()
        make(name, top / name)
    return {name: top / name for name in FORMATS}


class Place:
    """A copy of a log with a hostile file, and the outside files that must stay the same."""

    def __init__(self, logs: dict[str, Path], name: str, top: Path) -> None:
        self.name, self.top = name, top / "place"
        shutil.copytree(logs[name], self.top)
        self.log = self.top / "log"
        self.base = self.top if name == "single" else self.log
        self.out = top / "out"
        self.out.mkdir()
        self.outside = top / "outside"
        self.outside.mkdir()
        for file in ("secret", "mark", "0-events", "data.0.seg", "x.jsonl", "job.0.0.0"):
            (self.outside / file).write_bytes(SECRET)
            os.utime(self.outside / file, (1, 1))
        self._before = self._state()

    def put(self, where: str, kind: str) -> None:
        path = self.base / where
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        if kind == "link":
            path.symlink_to(self.outside / "secret")
        elif kind == "linked folder":
            path.symlink_to(self.outside)
        elif kind == "fifo":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        elif kind == "huge":
            with path.open("wb") as file:
                file.truncate(LARGE_BYTES if LARGE.search(where) else HUGE_BYTES)
        elif kind == "deep":
            path.write_bytes(b'{"a":' * 100_000 + b"[" * 100_000)
        else:
            path.write_bytes(b"\x1b]0;PWNED\x07\x9b31m\xe2\x80\xae\n" * 20)

    def give_away(self, where: str) -> None:
        path = self.base / where
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_bytes(b"of another user")
        for below in (self.out.parent, self.out, self.top, *self.top.rglob("*")):
            os.chown(below, 1000, 1000)
        os.chown(path, 65534, 65534)
        path.chmod(0o600)

    def run(self, command: str) -> int:
        words = {"LOG": str(self.log)}
        argv = [words.get(word, word.replace("OUT", str(self.out))) for word in COMMANDS[command]]
        with within_seconds(), held_memory() as held:
            code = main(argv)
        assert code in (0, 1, 2), (command, code)
        assert held() < MEMORY_BYTES, (command, held())
        assert self._state() == self._before, command
        self.check_copies(command)
        shutil.rmtree(self.out)
        self.out.mkdir()
        return code

    def check_copies(self, command: str) -> None:
        """The output of a command has no links, and no content from behind a link."""
        for path in self.out.rglob("*"):
            mode = path.lstat().st_mode
            assert stat.S_ISREG(mode) or stat.S_ISDIR(mode), (command, path)
            if stat.S_ISREG(mode) and path.stat().st_size < 1 << 20:
                assert SECRET.strip() not in path.read_bytes(), (command, path)

    def _state(self) -> dict[str, Any]:
        return {
            file.name: (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_mode)
            for file in sorted(self.outside.iterdir())
        }


@contextlib.contextmanager
def within_seconds() -> Iterator[None]:
    """Fail if a command waits, for example because Python opens a FIFO."""

    def fail(number: int, frame: Any) -> None:
        raise AssertionError(f"more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def held_memory() -> Iterator[Any]:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    begun = resident("VmRSS")
    yield lambda: resident("VmHWM") - begun


def resident(name: str) -> int:
    text = Path("/proc/self/status").read_text()
    return int(text.split(f"{name}:")[1].split()[0]) << 10


def commands(name: str, turn: int) -> list[str]:
    """Two commands, and three others in turn; over all turns, each command meets each kind."""
    others = [one for one in COMMANDS if one not in ("backup", "info")]
    others = [one for one in others if name in ONLY.get(one, FORMATS)]
    return ["backup", "info", *(others[(turn * 3 + step) % len(others)] for step in range(3))]


@pytest.mark.parametrize("name", FORMATS)
def test_commands_neither_touch_outside_files_nor_wait(
    name: str, logs: dict[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    kinds = ("link", "fifo", "folder", "huge", "deep", "controls")
    places = [(where, kind) for where in FILES[name] for kind in kinds]
    places += [(where, kind) for where in FOLDERS[name] for kind in ("linked folder", "fifo")]
    for turn, (where, kind) in enumerate(places):
        place = Place(logs, name, tmp_path / str(turn))
        place.put(where, kind)
        for command in commands(name, turn):
            code = place.run(command)
            said = "".join(capfd.readouterr())
            at = (name, where, kind, command, code, said)
            assert "internal error" not in said and "see 'deedbook" not in said, at
            assert SECRET.decode().strip() not in said and not unfit(said.encode()), at
        shutil.rmtree(tmp_path / str(turn))


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone gives files to other users")
@pytest.mark.parametrize("name", FORMATS)
def test_file_of_another_user_ends_commands_quickly(
    name: str, logs: dict[str, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    for turn, where in enumerate(FILES[name]):
        # Only root may enter the directory of pytest.
        with tempfile.TemporaryDirectory() as top:
            os.chmod(top, 0o755)
            place = Place(logs, name, Path(top))
            place.give_away(where)
            for command in commands(name, turn):
                os.seteuid(1000)
                try:
                    code = place.run(command)
                finally:
                    os.seteuid(0)
                said = "".join(capfd.readouterr())
                at = (name, where, command, code, said)
                assert "internal error" not in said and "see 'deedbook" not in said, at
                assert code == 0 or place.log.name in said, at


@pytest.mark.parametrize(
    ("name", "where", "kind"),
    [
        *(("packed", f".deedbook/{one}", "link") for one in ("loss", "consumers", "transactions")),
        ("packed", "meta.bin", "fifo"),
        ("packed", "book.log.cut-99", "link"),
        ("packed", ".deedbook/loss", "huge"),
        ("packed", ".deedbook/loss", "folder"),
        ("packed", ".deedbook/transaction", "fifo"),
        ("packed", ".deedbook", "linked folder"),
        ("segments", "head", "link"),
        ("single", ".deedbook", "linked folder"),
        ("single", ".deedbook/log", "linked folder"),
        ("pier", ".urb/log/data.mdb", "link"),
        ("pier", ".urb/log/0i0", "linked folder"),
        ("ledger", ".deedbook/quarantine", "linked folder"),
        ("ledger", ".deedbook/dead-letters", "linked folder"),
        ("ledger", ".deedbook/dead-letters/x.jsonl", "link"),
        ("ledger", ".deedbook/jobs-events", "linked folder"),
        ("ledger", ".deedbook/quarantine/7-events", "fifo"),
        ("store", ".deedbook/loss", "link"),
        ("store", "manifest.json", "fifo"),
        ("store", "data", "linked folder"),
        ("store", "wal", "linked folder"),
    ],
)
def test_backup_refuses_files_foreign_to_the_log(
    name: str, where: str, kind: str, logs: dict[str, Path], tmp_path: Path
) -> None:
    """Earlier, the copy had the secret behind ``.deedbook/extra``, and the exit code was 0."""
    place = Place(logs, name, tmp_path)
    place.put(where, kind)
    with within_seconds(), held_memory() as held, pytest.raises(deedbook.Error) as raised:
        deedbook.backup(place.log, place.out / "copy")
    assert raised.value.path is not None and held() < MEMORY_BYTES
    place.check_copies("backup")


@pytest.mark.parametrize("name", FORMATS)
def test_backup_copies_only_names_of_the_format(
    name: str, logs: dict[str, Path], tmp_path: Path
) -> None:
    """Earlier, a backup copied all files of the sidecar, whatever their names."""
    place = Place(logs, name, tmp_path)
    sidecar = next(path for path in sorted(place.top.rglob(".deedbook")) if path.is_dir())
    sidecar = sidecar / "log" if name == "single" else sidecar
    for folder in {sidecar, place.base}:
        (folder / "extra").symlink_to(place.outside / "secret")
        (folder / "more").write_bytes(SECRET)
    deedbook.backup(place.log, place.out / "copy")
    names = {path.name for path in place.out.rglob("*")}
    assert not names & {"extra", "more"}
    place.check_copies("backup")


@pytest.mark.parametrize("name", FORMATS)
def test_backup_never_writes_through_links_in_its_target(
    name: str, logs: dict[str, Path], tmp_path: Path
) -> None:
    """Earlier, a link named as the backup's lock led to another file, which the backup emptied."""
    place = Place(logs, name, tmp_path)
    deedbook.backup(place.log, place.out / "copy")
    assert next(place.out.rglob("backup")).is_file()
    for file in [file for file in place.out.rglob("*") if file.is_file()]:
        for make_one in (os.mkfifo, lambda file: file.symlink_to(place.outside / "secret")):
            file.rename(tmp_path / "kept")
            make_one(file)
            with within_seconds(), contextlib.suppress(deedbook.Error):
                deedbook.backup(place.log, place.out / "copy")
            assert place._state() == place._before, file
            file.unlink(missing_ok=True)
            (tmp_path / "kept").rename(file)


def test_unreadable_log_does_not_block_metrics_of_others(
    logs: dict[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Earlier, ``[`` x 200,000 as ``manifest.json`` raised RecursionError for all logs."""
    argv = ["metrics"]
    for number, (name, where, kind) in enumerate(
        [
            ("store", "manifest.json", "deep"),
            ("store", "manifest.json", "fifo"),
            ("store", "data/segments/data.0.seg", "fifo"),
            ("packed", "book.log", "fifo"),
            ("packed", ".deedbook/lock", "fifo"),
        ]
    ):
        place = Place(logs, name, tmp_path / str(number))
        place.put(where, kind)
        argv.append(str(place.log))
    with within_seconds():
        assert main(argv) in (0, 1)
    said = capfd.readouterr().out
    up = {line.split('"')[1]: line[-1] for line in said.splitlines() if "deedbook_up{" in line}
    assert [up[path] for path in argv[1:]][2:] == ["0", "0", "1"]
