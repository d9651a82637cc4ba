"""Fixtures: a path for a log, child processes, senders, Spark.

Also the choice of tests in a tier, and the check of skips in runs that require all tests.
"""

import gc
import inspect
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tiers
from aio_kinds import HANDLES, LOGS, Handle, no_threads_are_left, run
from browser import Browser, browser
from endpoint import Endpoint
from http_kinds import Both, MakeSender
from jvm import archive_classes, set_options
from object_store import Gate, serving
from places import ROOT
from spark_session import Ran, local_session, run_here

RunChild = Callable[..., "subprocess.CompletedProcess[str]"]


# With fewer tests of Spark, an archive of its classes costs more than it saves.
_ARCHIVE_FROM = 20
_ALLOWED_SKIPS = ROOT / "tests" / "allowed_skips.txt"


def is_allowed(why: str) -> bool:
    lines = _ALLOWED_SKIPS.read_text(encoding="utf-8").splitlines()
    return any(line.partition(" | ")[0] in why for line in lines if " | " in line)


def refused_skips(reports: Iterable[Any]) -> list[str]:
    skips = [(r.nodeid, r.longrepr[2]) for r in reports if isinstance(r.longrepr, tuple)]
    return [f"{name}: {why}" for name, why in skips if not is_allowed(why)]


def pytest_configure() -> None:
    """Do not ignore SIGINT and SIGTERM, which tests send: child processes would ignore them, too.

    A shell starts jobs in the background with SIGINT ignored.
    """
    for number, handler in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGTERM, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
    set_options()


LEFT_OUT = pytest.StashKey[int]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if tiers.tier() != "quick":
        return
    full = [item for item in items if item.get_closest_marker("full") is not None]
    items[:] = [item for item in items if item not in full]
    config.hook.pytest_deselected(items=full)
    config.stash[LEFT_OUT] = len(full)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if count := config.stash.get(LEFT_OUT, 0):
        terminalreporter.line(f"The tier quick left out {count} tests; make test-all runs them.")


def pytest_collection_finish(session: pytest.Session) -> None:
    """If many tests start a JVM, start one more JVM first, which makes the others faster."""
    gc.freeze()  # a collection, which the tests of asyncio request, can then ignore all modules
    many = sum(item.get_closest_marker("spark") is not None for item in session.items)
    if many >= _ARCHIVE_FROM and not session.config.option.collectonly:
        directory = tempfile.TemporaryDirectory(prefix="deedbook-jvm-")
        session.config.add_cleanup(directory.cleanup)
        archive_classes(Path(directory.name))


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """With ``DEEDBOOK_REQUIRE_ALL=1``, a skip outside the list of allowed skips fails the run."""
    yield
    if os.environ.get("DEEDBOOK_REQUIRE_ALL") != "1":
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    refused = refused_skips(reporter.stats.get("skipped", ())) if reporter else []
    for line in refused:
        print(f"tests/allowed_skips.txt does not allow: skipped {line}")
    if refused and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    run(lambda: pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A path for a log; no file is there yet."""
    return tmp_path / "log"


@pytest.fixture
def run_child() -> RunChild:
    """Run Python code in a new process: `run_child(code, *args)`, stopped after 60 s."""

    def run(code: str, *args: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", code, *map(str, args)],
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


@pytest.fixture(params=LOGS)
def kind(request: pytest.FixtureRequest) -> Handle:
    return HANDLES[request.param]


@pytest.fixture(params=HANDLES)
def handle(request: pytest.FixtureRequest) -> Handle:
    return HANDLES[request.param]


@pytest.fixture
def threads_end(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """After the test, no thread of a log is left, and asyncio has logged nothing."""
    yield
    assert no_threads_are_left()
    below = ("asyncio", "concurrent.futures")
    assert [record for record in caplog.records if record.name in below] == []


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    with serving(tmp_path_factory.mktemp("s3")) as gate:
        yield gate


@pytest.fixture
def gate(server: Gate, monkeypatch: pytest.MonkeyPatch) -> Gate:
    server.reset()
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return server


@pytest.fixture(params=["threads", "asyncio"])
def sender(request: pytest.FixtureRequest, tmp_path: Path) -> MakeSender:
    """Either kind of sender, by default to the endpoint: `sender(store, **options)`."""

    def make(store: Any, url: str | None = None, **options: Any) -> Both:
        if url is None and "preset" not in options:
            url = request.getfixturevalue("endpoint").url
        options.setdefault("dead_letters", tmp_path / "dead")
        return Both(request.param, store, url, **options)

    return make


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session of Spark; with ``DEEDBOOK_ENGINE=sail`` a session of Sail."""
    if os.environ.get("DEEDBOOK_ENGINE") != "sail":
        yield local_session()
        return
    from deedbook.spark.jobs import sail_session

    with sail_session() as session:
        yield session


@pytest.fixture
def run_spark(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """Run a command of ``deedbook`` in the tests' session: `run_spark(*words)`."""

    def run(*words: object) -> Ran:
        code = run_here([str(word) for word in words], monkeypatch)
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser window, one for all tests, because it takes seconds to start."""
    with browser(tmp_path_factory.mktemp("browser") / "profile") as opened:
        yield opened
