"""Streams: skipped, reordered and lost records, with epochs of piers and files of ledgers."""

import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from deedbook import Book, CorruptError, Ledger, LostRecordsError, Pier
from ledgers import events, file_of, files
from log_bytes import flip
from logs import make_epochs
from streams import ALL, all_after, begin, read, reader

pytestmark = pytest.mark.promise("spark-log-changed", "spark-log-appears", "spark-dropped")


def epochs(pier: Path, *counts: int, size: int = 20) -> list[Path]:
    jams: dict[int, list[bytes]] = {}
    for count in counts:
        number = sum(map(len, jams.values()))
        jams[number] = [b"%0*d" % (size - 24, number + n + 1) for n in range(count)]
    log = make_epochs(pier, jams)
    return [log / f"0i{number}" for number in jams]


def batches(pier: Path, **options: str) -> list[list[Any]]:
    found, stream = [], reader(pier, **options)
    start = stream.initialOffset()
    while (stop := stream.latestOffset(start, stream.getDefaultReadLimit())) != start:
        found.append([row[0] for row in read(stream, start, stop)])
        start = stop
    return found


def damage(epoch: Path, event: int) -> None:
    """Change the length of an event, and delete the sidecar, so that opening scans the log."""
    with Book.open(epoch) as book:
        at = book.bookmark(event).offset
    flip(epoch / "book.log", at, 4)
    shutil.rmtree(epoch / ".deedbook")


def test_byte_limit_keeps_the_order_of_epochs(tmp_path: Path) -> None:
    epochs(tmp_path, 3, 2, size=600)
    assert batches(tmp_path, maxBytesPerTrigger="900") == [[1], [2], [3], [4], [5]]
    assert batches(tmp_path, maxBytesPerTrigger="1900") == [[1, 2, 3], [4, 5]]
    assert batches(tmp_path, maxBytesPerTrigger="2500") == [[1, 2, 3, 4], [5]]


def test_records_after_damage_precede_the_next_epoch(tmp_path: Path) -> None:
    first, _, _ = epochs(tmp_path, 9, 5, 3)
    damage(first, 4)
    for limit in ({}, {"maxRowsPerTrigger": "4"}):
        found = batches(tmp_path, mode="DROPMALFORMED", **limit)
        assert [event for batch in found for event in batch] == [1, 2, 3, *range(5, 18)]
    strict = reader(tmp_path)
    start, stop = begin(strict)
    assert [row[0] for row in read(strict, start, stop)] == [1, 2, 3], "what is intact is given"
    with pytest.raises(CorruptError):
        read(strict, stop, strict.latestOffset(stop, ALL))


def test_an_epoch_that_was_read_may_be_dropped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    epochs(tmp_path, 3, 2, 4)
    stream = reader(tmp_path)
    _, stop = begin(stream)
    with Pier.open(tmp_path, "a") as pier:
        assert pier.retain(max_bytes=0).epochs == [0, 3]
        pier.append_many([b"ten", b"eleven"])
    after = stream.latestOffset(stop, ALL)
    assert [row[0] for row in read(stream, stop, after)] == [10, 11]
    assert list(after["logs"]) == [str(tmp_path / ".urb" / "log" / "0i5")]
    assert stream.latestOffset(after, ALL) == after
    assert caplog.text == ""


@pytest.mark.parametrize(("rows", "lost"), [(2, "0i0"), (3, "0i3"), (4, "0i3")])
def test_epoch_dropped_before_reading_is_lost(tmp_path: Path, rows: int, lost: str) -> None:
    """The events of epoch 0 end with 3, and of epoch 3 with 5; one event less is not all."""
    log = epochs(tmp_path, 3, 2, 4)[0].parent
    stream = reader(tmp_path, maxRowsPerTrigger=str(rows))
    start, stop = begin(stream, stream.getDefaultReadLimit())
    assert len(read(stream, start, stop)) == rows
    with Pier.open(tmp_path, "a") as pier:
        assert pier.retain(max_bytes=0).epochs == [0, 3]
    with pytest.raises(LostRecordsError, match=f"{log / lost}: .*not there any more"):
        stream.latestOffset(stop, ALL)


def test_epoch_created_and_dropped_between_batches_is_lost(tmp_path: Path) -> None:
    """The query read epoch 0 completely, but never saw epoch 3, so epoch 3 is lost."""
    first = epochs(tmp_path, 3)[0]
    stream = reader(tmp_path)
    _, stop = begin(stream)
    with Pier.open(tmp_path, "a") as pier:
        pier.roll()
        pier.append_many([b"four", b"five"])
        pier.roll()
        pier.append(b"six")
        assert pier.retain(max_bytes=0).epochs == [0, 3]
    with pytest.raises(LostRecordsError, match=f"{first}: .*not there any more"):
        stream.latestOffset(stop, ALL)


def payloads(rows: Sequence[tuple[Any, ...]]) -> list[bytes]:
    return [row[-1] for row in rows]


def test_gap_in_unread_files_is_reported_and_skipped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = tmp_path / "spool"
    files(log, 0)
    _, start = begin(reader(log))
    files(log, 1, 2, 3, 4)
    (log / "3-events").unlink()
    goes_on = reader(log, failOnDataLoss="false")
    with caplog.at_level(logging.WARNING, "deedbook"):
        rows = all_after(goes_on, start, ALL)
    assert payloads(rows) == [p for index in (1, 2, 4) for p in events(index)]
    assert "file 3 is not there any more" in caplog.text
    assert "had read up to {'after': 2, 'origin': -1, 'last': '0:" in caplog.text
    assert "goes on at {'after': 3, 'origin': -1}" in caplog.text
    strict = reader(log)
    stop = strict.latestOffset(start, ALL)
    assert payloads(read(strict, start, stop)) == [p for index in (1, 2) for p in events(index)]
    with pytest.raises(LostRecordsError, match="file 3 is not there any more"):
        strict.latestOffset(stop, ALL)


@pytest.mark.parametrize("sent", [(3,), (1, 2), (3, 4), (1, 2, 3, 4)])
def test_gap_in_a_planned_batch_skips_no_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, sent: tuple[int, ...]
) -> None:
    """A sender removes some files of a batch before Spark requests it again: the rest is read."""
    log = tmp_path / "spool"
    files(log, 0)
    _, start = begin(reader(log))
    files(log, 1, 2, 3, 4, 5)
    stop = reader(log).latestOffset(start, ReadMaxRows(12))
    assert stop["logs"][str(log)]["after"] == 4
    for index in sent:
        (log / f"{index}-events").unlink()
    with caplog.at_level(logging.WARNING, "deedbook"):
        rows = read(reader(log, failOnDataLoss="false"), start, stop)
    left = [index for index in (1, 2, 3, 4) if index not in sent]
    assert payloads(rows) == [p for index in left for p in events(index)]
    gap = f"file {sent[0]} is" if len(sent) == 1 else f"files {sent[0]} to {sent[-1]} are"
    assert f"{gap} not there any more" in caplog.text
    assert f"had read up to {{'after': {sent[0] - 1}, 'origin': -1}}" in caplog.text
    assert f"goes on at {{'after': {sent[-1]}, 'origin': -1}}" in caplog.text
    with pytest.raises(LostRecordsError, match=f"{gap} not there any more"):
        reader(log).partitions(start, stop)


def send(ledger: Ledger, files: int) -> None:
    for _ in range(files):
        fetched = ledger.fetch(1)
        assert fetched is not None
        ledger.remove(fetched.removable)


@pytest.mark.parametrize("sent", [1, 2])
def test_stream_from_drained_ledger_notices_sent_files(tmp_path: Path, sent: int) -> None:
    log = tmp_path / "spool"
    with Ledger.open(log, "a", batch_records=3) as ledger:
        ledger.append_many(events(0))
        send(ledger, 1)
        stream = reader(log)
        start = stream.initialOffset()
        ledger.append_many([*events(1), *events(2), *events(3)[:1]])
        stop = stream.latestOffset(start, ALL)
        assert payloads(read(stream, start, stop)) == [*events(1), *events(2)]
        send(ledger, sent)
        with pytest.raises(LostRecordsError, match=r"files? 1 (to 2 are|is) not there any more"):
            stream.partitions(start, stop)
        goes_on = reader(log, failOnDataLoss="false")
        assert payloads(read(goes_on, start, stop)) == (events(2) if sent == 1 else [])


@pytest.mark.parametrize(
    ("made", "sent", "why"),
    [
        (1, 0, "its next file is 1"),
        (3, 3, "its next file is 3"),
        (5, 0, "other records are in its file 3"),
    ],
)
def test_recreated_ledger_counts_as_another_ledger(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, made: int, sent: int, why: str
) -> None:
    log = tmp_path / "spool"
    files(log, 0, 1, 2, 3)
    stream = reader(log)
    start, stop = begin(stream)
    assert len(read(stream, start, stop)) == 12
    with Ledger.open(log, "a") as ledger:
        send(ledger, 4)
    assert stream.latestOffset(stop, ALL) == stop, "all was sent, and the next file is 4"
    shutil.rmtree(log)
    for index in range(made):
        file_of(log, index, [b"again %d" % index])
    with Ledger.open(log, "a") as ledger:
        send(ledger, sent)
    text = f"another ledger than the one that was read up to file 3, .*: {why}"
    with pytest.raises(LostRecordsError, match=text):
        stream.latestOffset(stop, ALL)
    with pytest.raises(LostRecordsError, match=text):  # Spark requests a batch again
        stream.partitions(start, stop)
    goes_on = reader(log, failOnDataLoss="false")
    assert read(goes_on, start, stop) == [], "they come with the next batch"
    after = goes_on.latestOffset(stop, ALL)
    left = [b"again %d" % index for index in range(sent, made)]
    for _ in range(2):  # the second time as after a crash
        assert payloads(read(goes_on, stop, after)) == left
    assert "another ledger than the one that was read up to file 3" in caplog.text
    assert goes_on.latestOffset(after, ALL) == after


def test_starting_position_may_be_a_future_file(tmp_path: Path) -> None:
    log = tmp_path / "spool"
    files(log, 0, 1)
    stream = reader(log, startingPosition="4")
    start = stream.initialOffset()
    assert stream.latestOffset(start, ALL) == start
    files(log, 2, 3, 4)
    assert payloads(read(stream, start, stream.latestOffset(start, ALL))) == events(4)
