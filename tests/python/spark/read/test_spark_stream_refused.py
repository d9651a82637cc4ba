"""Logs that do not open. Earlier, a batch read skipped them, and a stream failed in every mode."""

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest

from deedbook import ContiguityError, Error, EventStore, LostRecordsError, Wal
from logs import append_to, make_epochs
from nostr_events import made
from streams import ALL, all_after, append, begin, payloads, read, reader


def books(path: Path, *names: str) -> None:
    for name in names:
        append_to("book", path / name, payloads(0, 3))


def hide(log: Path) -> Path:
    """Replace a book's file with garbage; returns the path of the original."""
    aside = log.parent.parent / f"{log.name}.aside"
    (log / "book.log").rename(aside)
    (log / "book.log").write_bytes(b"no log at all, whatever it is")
    return aside


def mend(log: Path, aside: Path) -> None:
    aside.replace(log / "book.log")


def jams(rows: list[Any]) -> list[bytes]:
    return sorted(row[2] for row in rows if row[2] is not None)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    books(tmp_path / "logs", "a", "b", "c")
    return tmp_path / "logs"


def test_unopenable_log_ends_failfast_queries(logs: Path) -> None:
    aside = hide(logs / "b")
    with pytest.raises(Error, match="logs/b"):
        reader(logs).initialOffset()
    mend(logs / "b", aside)
    stream = reader(logs)
    start = stream.initialOffset()
    hide(logs / "b")
    with pytest.raises(Error, match="logs/b"):
        stream.latestOffset(start, ALL)


@pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])
@pytest.mark.parametrize("begun", [False, True])
def test_unopenable_log_is_reported_once_and_read_later(
    logs: Path, mode: str, begun: bool, caplog: pytest.LogCaptureFixture
) -> None:
    stream = reader(logs, mode=mode)
    place, expected = stream.initialOffset(), payloads(0, 3) * 2
    if begun:
        place = stream.latestOffset(place, ALL)
        books(logs, "a", "b", "c")
    aside = hide(logs / "b")
    caplog.set_level(logging.WARNING, "deedbook")
    stop = stream.latestOffset(place, ALL)
    assert stream.latestOffset(stop, ALL) == stop, "it is no new batch each time"
    stream.reportLatestOffset()
    assert caplog.text.count("passed over until it opens") == 1
    rows = read(stream, place, stop)
    assert jams(rows) == sorted(expected)
    told = [row[-1] for row in rows if row[2] is None]
    assert len(told) == int(mode == "PERMISSIVE")
    assert all(f"{logs}/b" in text and "the log does not open: " in text for text in told)
    # A query that starts again makes the same plan.
    again = reader(logs, mode=mode)
    assert read(again, place, stop) == rows and again.latestOffset(stop, ALL) == stop
    mend(logs / "b", aside)
    append_to("book", logs / "b", [b"later"])
    later = again.latestOffset(stop, ALL)
    assert jams(read(again, stop, later)) == sorted([*payloads(0, 3), b"later"])
    assert again.latestOffset(later, ALL) == stream.latestOffset(stop, ALL) == later
    caplog.clear()
    hide(logs / "b")
    stream.latestOffset(later, ALL)
    assert caplog.text.count("passed over until it opens") == 1, "each outage is reported"


def test_planned_batch_fails_if_its_log_stops_opening(logs: Path) -> None:
    """A batch never leaves out its planned records, whatever the mode."""
    stream = reader(logs, mode="PERMISSIVE")
    start, stop = begin(stream)
    hide(logs / "b")
    with pytest.raises(Error, match="logs/b"):
        stream.partitions(start, stop)


def test_log_removed_before_it_opens_is_lost_data(
    logs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hide(logs / "b")
    stream = reader(logs, mode="PERMISSIVE")
    _, stop = begin(stream)
    shutil.rmtree(logs / "b")
    with pytest.raises(LostRecordsError, match="had read nothing of it"):
        stream.latestOffset(stop, ALL)
    told = reader(logs, mode="PERMISSIVE", failOnDataLoss="false")
    with caplog.at_level(logging.WARNING, "deedbook"):
        after = told.latestOffset(stop, ALL)
    assert "had read nothing of it and goes on without the log" in caplog.text
    assert set(after["logs"]) == {f"{logs}/a", f"{logs}/c"}
    assert read(told, stop, after) == []


def test_unread_store_that_was_removed_is_lost_data(tmp_path: Path) -> None:
    """The place of the store is empty, because the query read no event there."""
    for name in ("a", "b"):
        append_to("nostr", tmp_path / name, [made(name)])
    stream = reader(tmp_path, maxRowsPerTrigger="1")
    _, stop = begin(stream, stream.getDefaultReadLimit())
    shutil.rmtree(tmp_path / "b")
    with pytest.raises(LostRecordsError):
        stream.latestOffset(stop, stream.getDefaultReadLimit())


def test_single_trigger_query_stops_at_the_stores_end(tmp_path: Path) -> None:
    path = tmp_path / "store"
    EventStore.create(path).close()
    stream = reader(path)
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    append_to("nostr", path, [made("event")])
    assert stream.latestOffset(start, ALL) == start
    assert len(all_after(reader(path), start, ALL)) == 1


def test_next_query_reads_a_reopened_goal(logs: Path) -> None:
    aside = hide(logs / "b")
    stream = reader(logs, mode="PERMISSIVE")
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    mend(logs / "b", aside)
    stop = stream.latestOffset(start, ALL)
    rows = read(stream, start, stop)
    assert jams(rows) == sorted(payloads(0, 3) * 2)
    assert len([row for row in rows if row[2] is None]) == 1
    assert stream.latestOffset(stop, ALL) == stop
    again = reader(logs, mode="PERMISSIVE")
    assert jams(all_after(again, stop, ALL)) == payloads(0, 3)


def test_unopenable_log_fails_queries_starting_at_latest(logs: Path) -> None:
    hide(logs / "b")
    with pytest.raises(Error, match="logs/b"):
        reader(logs, mode="PERMISSIVE", startingPosition="latest").initialOffset()


def test_consumer_of_an_unopenable_log_does_not_move(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", "b"):
        append(tmp_path / name, 0, 3)
    stream = reader(tmp_path, mode="PERMISSIVE", consumer="query")
    _, stop = begin(stream)
    stream.commit(stop)
    note = tmp_path / "b" / ".deedbook" / "loss"
    note.write_bytes(b"no note of a loss")
    append(tmp_path / "a", 3, 4)
    after = stream.latestOffset(stop, ALL)
    stream.commit(after)
    with caplog.at_level(logging.WARNING, "deedbook"):
        stream.commit(stop)  # as if the log stopped to open after the plan
    assert "the consumer was not set" in caplog.text
    with pytest.raises(Error):
        reader(tmp_path, consumer="query").commit(stop)
    note.unlink()
    with Wal.open(tmp_path / "b") as wal:
        assert wal.consumers() == {"query": wal.end}


def test_missing_records_are_lost_data_in_every_mode(tmp_path: Path) -> None:
    path = tmp_path / "store"
    append_to("nostr", path, [made("event")])
    stream = reader(path, mode="DROPMALFORMED")
    start = stream.initialOffset()
    segments = path / "data" / "segments"
    (segments / "data.0.seg").rename(segments / "data.7.seg")
    with pytest.raises(Error):
        stream.latestOffset(start, ALL)


def test_gap_after_a_reopened_epoch_is_refused(tmp_path: Path) -> None:
    some, few = payloads(0, 3), payloads(0, 2)
    log = make_epochs(tmp_path / "pier", {0: some, 3: few, 6: some})  # event 6 is missing
    aside = hide(log / "0i3")
    stream = reader(tmp_path / "pier", mode="PERMISSIVE")
    _, place = begin(stream)
    mend(log / "0i3", aside)
    with pytest.raises(ContiguityError, match="events 6 to 6 are missing"):
        stream.latestOffset(place, ALL)


def test_epochs_after_an_unopenable_epoch_are_read(tmp_path: Path) -> None:
    epochs = {number: payloads(number, number + 3) for number in (0, 3, 6)}
    log = make_epochs(tmp_path / "pier", epochs)
    hide(log / "0i3")
    stream = reader(tmp_path / "pier", mode="PERMISSIVE")
    rows = all_after(stream, stream.initialOffset(), ALL)
    assert jams(rows) == sorted([*payloads(0, 3), *payloads(6, 9)])
    assert len([row for row in rows if row[2] is None]) == 1


def test_unopenable_wals_and_stores_are_reported(tmp_path: Path) -> None:
    (tmp_path / "wals").mkdir()
    for name in ("a", "b"):
        append(tmp_path / "wals" / name, 0, 3)
    loss = tmp_path / "wals" / "b" / ".deedbook" / "loss"
    loss.write_bytes(b"no note of a loss")
    stream = reader(tmp_path / "wals", mode="PERMISSIVE")
    start, stop = begin(stream)
    rows = read(stream, start, stop)
    assert len(rows) == 4 and "the log does not open: " in rows[-1][-1]
    loss.unlink()
    assert len(all_after(stream, stop, ALL)) == 3
    EventStore.create(tmp_path / "store").close()
    (segment,) = (tmp_path / "store" / "data" / "segments").iterdir()
    segment.write_bytes(b"\xee" * 8192)
    stream = reader(tmp_path / "store", mode="PERMISSIVE")
    (row,) = all_after(stream, stream.initialOffset(), ALL)
    assert "the log does not open: " in row[-1]
