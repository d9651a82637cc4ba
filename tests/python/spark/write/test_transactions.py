"""Transactions from Python and the shell: staging, commits, dead jobs and living jobs."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from deedbook import Book, Error, InvalidArgumentError, LockedError, MissingError, Wal, _jobs
from shell import deedbook

pytestmark = pytest.mark.promise("spark-staged")


@pytest.fixture(params=[Book, Wal])
def log(request: pytest.FixtureRequest, path: Path) -> Any:
    log = request.param.create(path)
    yield log
    log.close()


def stage(log: Any, job: str, *payloads: bytes, partition: int = 0, attempt: int = 1) -> Any:
    with log.transactions.stage(job, partition, attempt) as file:
        file.extend(payloads)
        return file.finish()


def test_arrow_and_mugs_are_staged(path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    with Book.create(path) as book:
        with book.transactions.stage("job", 0, 1, first=1) as file:
            file.extend([b"a", bytearray(b"b")], mugs=[1, 2])
            file.extend(pa.table({"jam": [b"c"], "mug": pa.array([3], pa.int32())}))
            assert len(file) == 3
            parts = file.finish()
        with pytest.raises(InvalidArgumentError, match="finished"):
            file.extend([b"d"])
        assert book.transactions.publish("job", parts).first == 1
        assert [(deed.mug, deed.jam) for deed in book] == [(1, b"a"), (2, b"b"), (3, b"c")]


@pytest.mark.parametrize("kind", ["Book", "Wal"])
def test_a_stage_that_is_being_extended_is_refused(path: Path, kind: str, run_child: Any) -> None:
    code = """
import sys, threading, deedbook
said = []
def note(call):
    try:
        said.append(call())
    except deedbook.InvalidArgumentError as error:
        said.append(str(error))
with (
    getattr(deedbook, sys.argv[1]).create(sys.argv[2]) as log,
    log.transactions.stage("job", 0, 1) as stage,
):
    def records():
        yield b"one"
        note(lambda: len(stage))
        for call in (lambda: len(stage), stage.finish, lambda: stage.extend([b"x"]),
                     lambda: stage.__exit__(None, None, None), lambda: repr(stage)):
            other = threading.Thread(target=note, args=(call,))
            other.start()
            other.join()
        yield b"two"
    stage.extend(records())
    note(lambda: repr(stage))
    print(log.transactions.publish("job", stage.finish()).records)
print(*said, sep="\\n")
"""
    busy = "the stage is being extended, by another thread or by its own records"
    shown = ["<deedbook.Stage, being extended>", "<deedbook.Stage, 2 records>"]
    done = run_child(code, kind, path)
    assert done.stdout.splitlines() == ["2", *[busy] * 5, *shown], done.stderr


def test_what_does_not_fit_is_refused(log: Any) -> None:
    parts = stage(log, "job", b"x")
    commit = log.transactions.publish
    for wrong in ({"app": "a"}, {"version": 1}, {"query": "q"}, {"app": "a b", "version": 1}):
        with pytest.raises(InvalidArgumentError):
            commit("job", parts, **wrong)
    with pytest.raises(MissingError) as missing:
        commit("other", parts)
    assert missing.value.durable == "no"
    with pytest.raises(InvalidArgumentError, match="a name has 1 to 128 bytes"):
        log.transactions.stage("a/b", 0, 0)
    with pytest.raises(OverflowError, match="partition must not be negative"):
        log.transactions.stage("job", -1, 0)
    assert len(log) == 0


def job_of(pid: int, start: str | None = None) -> str:
    boot, space, _, mine = _jobs.owner().split("-")
    return _jobs.named(f"{boot}-{space}-{pid}-{start or mine}", "name")


def ended() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="owners are asked by /proc")


@linux
def test_only_what_dead_jobs_staged_is_removed(log: Any) -> None:
    alive = _jobs.named(_jobs.owner(), "alive")
    dead, reborn = job_of(ended()), job_of(os.getpid(), "1")
    elsewhere = _jobs.named("abcdefab-1-1-1", "elsewhere")
    for job in (alive, dead, reborn, elsewhere):
        stage(log, job, b"x")
    would = _jobs.vacuum(log.transactions, dry_run=True)
    assert {one.job: one.why for one in would} == {
        dead: "its owner is dead",
        reborn: "its owner is dead",
    }
    assert len(log.transactions.staged()) == 4
    assert _jobs.vacuum(log.transactions) == would
    assert {job.job for job in log.transactions.staged()} == {alive, elsewhere}
    # The age of a job counts only if its process is unknown, not if the process is alive.
    removed = _jobs.vacuum(log.transactions, older_than=-1)
    assert [one.job for one in removed] == [elsewhere]
    assert [job.job for job in log.transactions.staged()] == [alive]


@linux
def test_batches_before_the_last_one_committed_are_dead(log: Any) -> None:
    query = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
    jobs = [_jobs.named(_jobs.owner(), query, str(batch)) for batch in range(3)]
    parts = [stage(log, job, b"x") for job in jobs]
    log.transactions.publish(jobs[0], [], app=query, version=0, query=query)
    log.transactions.publish(jobs[1], parts[1], app=query, version=1, query=query)
    stage(log, jobs[0], b"late", attempt=9)
    assert [one.job for one in _jobs.vacuum(log.transactions)] == [jobs[0]]
    assert [job.job for job in log.transactions.staged()] == [jobs[2]]


@linux
def test_the_owner_is_an_ancestor_of_that_name() -> None:
    code = "from deedbook import _jobs; print(_jobs.owner('sh'))"
    shell = subprocess.run(
        ["/bin/sh", "-c", f'echo $$; "{sys.executable}" -c "{code}"; true'],
        capture_output=True,
        text=True,
        check=True,
    )
    pid, owner = shell.stdout.split()
    assert owner.split("-")[2] == pid
    assert _jobs.owner("no process has this name") == "0-0-0-0"


def begun(log: Any) -> str:
    """A commit stops after its intent, because its process is killed during the append."""
    path = log.path
    log.close()
    code = (
        "import os, sys, threading, deedbook\n"
        "log = deedbook.open(sys.argv[1], 'a')\n"
        "with log.transactions.stage('job', 0, 1) as file:\n"
        "    file.extend([b'x' * 1000] * 50_000)\n"
        "    parts = file.finish()\n"
        "def kill():\n"
        "    while not os.path.exists(sys.argv[1] + '/.deedbook/transaction'): pass\n"
        "    os.kill(os.getpid(), 9)\n"
        "threading.Thread(target=kill).start()\n"
        "log.transactions.publish('job', parts, app='a', version=1)\n"
    )
    subprocess.run([sys.executable, "-c", code, path], check=False)
    return str(path)


def run(*arguments: object, code: int = 0) -> str:
    done = deedbook(*arguments)
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == code, said
    return said


def test_killed_commit_is_shown_and_finished(log: Any) -> None:
    path = begun(log)
    with type(log).open(path) as reader:
        if not [job for job in reader.transactions.staged() if job.is_committing]:
            pytest.skip("the commit was quicker than the signal")
        assert reader.transactions.discard("job") is False
    assert "its commit has begun, the next writer ends it" in run("info", path)
    assert json.loads(run("info", "--json", path))["staged"][0]["is_committing"]
    assert "its commit has begun" in run("vacuum", path)
    with type(log).open(path, "a") as writer:
        assert len(writer) == 50_000
    assert "a up to 1" in run("info", path)
    assert "nothing is staged" in run("vacuum", path)


def test_vacuum_abandons_a_commit_that_cannot_end(log: Any) -> None:
    path = begun(log)
    if not os.path.exists(f"{path}/.deedbook/transaction"):
        pytest.skip("the commit was quicker than the signal")
    staged = Path(path) / ".deedbook" / "staged" / "job.0.0.1"
    staged.write_bytes(staged.read_bytes()[:-1])
    with pytest.raises(Error, match="vacuum --abandon gives it up"):
        type(log).open(path, "a")
    assert "gave up the commit of job job" in run("vacuum", path, "--abandon")
    with type(log).open(path, "a") as writer:
        assert len(writer) == 0
        with pytest.raises(LockedError), type(log).open(path) as reader:
            reader.transactions.abandon()


@linux
def test_vacuum_says_what_it_removes_and_why(log: Any) -> None:
    path = log.path
    dead = job_of(ended())
    stage(log, dead, b"x" * 100)
    stage(log, _jobs.named("abcdefab-1-1-1", "elsewhere"), b"y")
    log.close()
    assert "would remove 1 file, " in (said := run("vacuum", path, "--dry-run"))
    assert "its owner is dead" in said and "it may be alive" in said
    result = json.loads(run("vacuum", "--json", path))
    assert [one["job"] for one in result["removed"]] == [dead]
    assert [one["job"] for one in result["left"]] == ["abcdefab-1-1-1_elsewhere"]
    time.sleep(1.1)
    assert "nothing was written for 0 hours" in run("vacuum", path, "--older-than", "1s")
    assert "nothing is staged" in run("vacuum", path)
