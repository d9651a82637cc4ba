"""A ledger from the shell: append, look, send, dead letters."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from deedbook import Ledger
from shell import outputs

pytest.importorskip("urllib3")

from deedbook.http import DeadLetters, Sender
from deedbook.transient import TransientDB
from endpoint import Endpoint, Faults
from http_kinds import events


def into_ledger(path: Path, *words: object, **more: object) -> tuple[str, str]:
    return outputs("append", "--format", "ledger", path, *words, **more)


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"\n".join(events(1500, 100)) + b"\n\n")
    return file


def test_lines_are_appended_sent_and_gone(tmp_path: Path, lines: Path) -> None:
    path = tmp_path / "spool"
    assert "appended 1,500 records; all on stable storage" in into_ledger(path, lines)[1]
    status = json.loads(outputs("info", path, "--json")[0])
    assert (status["finished_files"], status["dead_letters"]) == (1, 0)
    assert ": ok, 1 file, 1,500 records" in outputs("verify", path)[0]
    faults = Faults(statuses={503: 0.3}, drop=0.2, seed=3)
    with Endpoint(faults=faults) as endpoint:
        out, err = outputs("send", path, endpoint.url, "--header", "X-Key: 1")
        assert out == "" and "sent 1,500 events" in err
        assert sorted(endpoint.events) == sorted(events(1500, 100))
    assert "none finished" in outputs("info", path)[0]
    assert json.loads(outputs("send", path, "http://127.0.0.1:9/", "--json")[0])["requests"] == 0


def test_refused_events_become_replayable_dead_letters(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    into_ledger(path, stdin='{"n":1}\n{"n":2}\n')
    with Endpoint(script=[406]) as endpoint:
        _, err = outputs("send", path, endpoint.url, code=1)
        assert "2 events refused, now dead letters" in err
        letters = [json.loads(line) for line in outputs("dead-letters", path)[0].splitlines()]
        assert [letter["payload"] for letter in letters] == ['{"n":1}', '{"n":2}']
        assert "2 events; 'deedbook dead-letters' prints them" in outputs("info", path)[0]
        assert "put 2 events back" in outputs("dead-letters", path, "--replay")[1]
        outputs("send", path, endpoint.url)
        assert endpoint.events == [b'{"n":1}', b'{"n":2}']


def test_dead_letters_beyond_default_limit_are_replayed(tmp_path: Path) -> None:
    path, long = tmp_path / "spool", b'"%s"' % (b"x" * (1 << 20))
    Ledger.open(path, "a", record_bytes_max=2 << 20).close()
    letters = DeadLetters(path / ".deedbook" / "dead-letters")
    letters.write("a", [(0, long)], reason="no", status=400, attempts=1, now=0.0, url="http://h")
    assert "put 1 event back" in outputs("dead-letters", path, "--replay")[1]
    with Ledger.open(path, "a") as ledger:
        assert list(ledger.fetch().data[0].records()) == [long]


def test_dead_letters_replay_only_into_their_base(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    for base in ("events", "clicks"):
        into_ledger(path, "--base", base, stdin=f'{{"of":"{base}"}}\n')
    with Endpoint(script=[406]) as endpoint:
        outputs("send", path, endpoint.url, "--base", "clicks", code=1)
        assert (path / ".deedbook" / "dead-letters-clicks").is_dir()
        assert outputs("dead-letters", path)[0] == ""
        assert "dead letters  1 event; " in outputs("info", path, "--base", "clicks")[0]
        assert "put 0 events back" in outputs("dead-letters", path, "--replay")[1]
        info = [sys.executable, "-m", "deedbook", "info", "--json", str(path)]
        shown = subprocess.run(info, capture_output=True, text=True, timeout=120, check=True)
        assert json.loads(shown.stdout)["dead_letters"] == 1
        assert (
            "put 1 event back" in outputs("dead-letters", path, "--replay", "--base", "clicks")[1]
        )
        outputs("send", path, endpoint.url, "--base", "clicks")
        assert endpoint.events == [b'{"of":"clicks"}']
        with TransientDB(Ledger.open(path, "a", base="clicks")) as db:
            letters = Sender(db, endpoint.url).dead_letters
    assert letters.path == path / ".deedbook" / "dead-letters-clicks"


def test_unsent_events_stay_and_send_prints_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    into_ledger(path, stdin="1\n")
    with Endpoint(script=[503] * 1000) as endpoint:
        _, err = outputs("send", path, endpoint.url, "--timeout", 1, code=2)
        assert "not all is sent after 1 s" in err and "503" in err
        # Only whole seconds were taken.
        _, err = outputs("send", path, endpoint.url, "--timeout", 0.5, code=2)
    assert "not all is sent after 0.5 s" in err and "503" in err
    with Ledger.open(path, "a") as ledger:
        assert ledger.has_data()


def test_a_ledger_takes_no_empty_records(tmp_path: Path) -> None:
    text = "a\n\nb\n"
    assert "appended 2 records" in into_ledger(tmp_path / "x", "--no-validate", stdin=text)[1]


def test_full_ledger_drops_oldest_files_on_request(tmp_path: Path) -> None:
    limits = ["--batch-bytes", 200, "--max-bytes", "1k"]
    text = "".join(f'{{"n":{number:0100d}}}\n' for number in range(50)).replace(":0", ":1")
    _, err = into_ledger(tmp_path / "x", *limits, "--drop-oldest", "--batch", 1, stdin=text)
    assert "appended 50 records, dropped " in err and "older records" in err
