"""Archives in Spark: the rows of the log, by ranges, from S3, with the live log, and as streams."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("obstore", reason="obstore is not installed")


import deedbook
from archived import FIRST, FORMATS, SEGMENT, archived, catalog, grow, rows
from deedbook import InvalidArgumentError, Ledger, Pier, Wal, archive
from deedbook.archive import _manifest
from deedbook.spark import register
from object_store import Gate
from spark_session import load, reader_of, rows_of, tuples
from streams import Query, reader


@pytest.fixture(params=FORMATS)
def format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def root(tmp_path: Path) -> str:
    return (tmp_path / "store").as_uri()


@pytest.fixture
def url(format: str, path: Path, root: str) -> str:
    grow(format, path, 0)
    archive.upload(path, f"{root}/log")
    return f"{root}/log"


def test_archive_has_the_rows_of_the_log(format: str, path: Path, url: str) -> None:
    expected = archived(format, path, url)
    assert len(expected) > 100
    for options in ({}, {"splitSize": "1k"}, {"batchRows": 7}):
        assert rows(url, **options) == expected
    columns = "path,length," + FIRST[format]
    found = rows(url, columns=columns)
    assert found == [
        (where.replace(str(path), url), *others)
        for where, *others in rows(path, columns=columns)[: len(expected)]
    ]


def test_ranges_have_the_rows_of_the_log(format: str, path: Path, url: str) -> None:
    places = [row[0] for row in archived(format, path, url)]
    for start, end in [(places[7], places[90]), (places[50], None), (places[0], places[40])]:
        limits = {"start": start} if end is None else {"start": start, "end": end}
        expected = [row for row in archived(format, path, url) if start <= row[0]]
        assert rows(url, **limits) == [row for row in expected if end is None or row[0] < end]
    assert rows(url, start=places[9], end=places[9]) == []


def test_limits_within_a_record_are_refused(path: Path, root: str) -> None:
    grow("wal", path, 0)
    archive.upload(path, root)
    lsn = rows(path, columns="lsn")[40][0]
    for limits in ({"start": lsn + 1}, {"end": lsn + 1}):
        with pytest.raises(deedbook.OutOfRangeError) as there:
            rows(path, **limits)
        with pytest.raises(deedbook.OutOfRangeError) as here:
            rows(root, **limits)
        assert str(here.value) == str(there.value).replace(str(path), root)


def drop(format: str, log: Path) -> int:
    before = rows(log)
    if format == "ledger":
        with Ledger.open(log, "a", batch_bytes=5000) as ledger:
            fetched = ledger.fetch(4)
            assert fetched is not None
            ledger.remove(fetched.removable)
    else:
        with deedbook.open(log, "a") as opened:
            assert isinstance(opened, Wal | Pier)
            opened.retain(max_bytes=0)
    return len([row for row in before if row not in rows(log)])


def test_archive_and_live_log_are_one(format: str, path: Path, url: str) -> None:
    everything = rows(path)
    assert drop(format, path) > 20
    grow(format, path, 120, 30)
    everything += [row for row in rows(path) if row not in everything]
    assert len(everything) == 150
    assert rows(url, liveLog=path) == everything
    places = [row[0] for row in everything]
    for start, end in [
        (places[3], places[130]),
        (places[3], places[8]),
        (places[140], places[145]),
    ]:
        found = rows(url, liveLog=path, start=start, end=end, splitSize="1k")
        assert found == [row for row in everything if start <= row[0] < end]


def test_live_log_must_be_the_archives_log(
    format: str, path: Path, url: str, tmp_path: Path
) -> None:
    grow(format, tmp_path / "other", 7)
    with pytest.raises(deedbook.NotALogError, match="the archive holds another log"):
        rows(url, liveLog=tmp_path / "other")
    with pytest.raises(deedbook.MissingError):
        rows(url, liveLog=tmp_path / "none")


def payloads(found: list[Any]) -> list[bytes]:
    return [row[-1] for row in found]


def test_catalog_is_read_as_one_table(format: str, tmp_path: Path, root: str) -> None:
    catalog(format, tmp_path, root)
    expected = payloads(archived(format, tmp_path / "a", f"{root}/a"))
    assert payloads(rows(root)) == expected * 3
    paths = [row[0] for row in rows(root, columns="path")]
    assert {path.removeprefix(f"{root}/")[0] for path in paths} == set("abc")
    with Wal.open(tmp_path / "wal", "a", segment_bytes=SEGMENT) as wal:
        wal.append_many(bytes(1000) for _ in range(100))
    other = "ledger" if format == "wal" else "wal"
    grow(other, tmp_path / "d", 0)
    archive.upload(tmp_path / "d", f"{root}/d", catalog=root)
    with pytest.raises(InvalidArgumentError, match=r"logs of several formats.*/d, a"):
        rows(root)
    named = "book" if format == "pier" else format
    assert payloads(rows(root, log=named)) == expected * 3
    assert len(rows(root, log=other)) > 100


def test_planning_asks_for_no_piece(format: str, tmp_path: Path, gate: Gate) -> None:
    url = f"s3://bucket/{tmp_path.name}"
    catalog(format, tmp_path, url)
    for source in (url, f"{url}/a"):
        gate.reset()
        frame = reader_of(source, splitSize="1k")
        parts = frame.partitions()
        asked = [request.name for request in gate.requests]
        assert not [name for name in asked if "pieces" in name] and len(asked) < 16
        gate.reset()
        assert len(parts) > 2 and len(rows_of(frame, parts)) > 100
        assert {name.split("/")[-2] for _, _, name in gate.requests} == {"pieces"}


def test_damaged_pieces_are_refused(format: str, path: Path, url: str, tmp_path: Path) -> None:
    expected = rows(url)
    pieces = sorted((tmp_path / "store" / "log" / "pieces").iterdir())
    data = pieces[1].read_bytes()
    pieces[1].write_bytes(data[:50] + bytes([data[50] ^ 1]) + data[51:])
    with pytest.raises(deedbook.CorruptError, match="mode DROPMALFORMED or PERMISSIVE") as raised:
        rows(url)
    place = (
        f"{url}: byte" if format == "wal" else f"{url}/pieces/{pieces[1].name}: SHA-256 [0-9a-f]+"
    )
    assert re.match(f"{place}.*({pieces[1].name[-64:]}|stored)", str(raised.value))
    intact = rows(url, mode="DROPMALFORMED")
    assert 50 < len(intact) < len(expected) and set(intact) < set(expected)
    shown = rows(url, mode="PERMISSIVE")
    assert [row[:-1] for row in shown if row[-1] is None] == intact
    assert next(row[-1] for row in shown if row[-1] is not None).startswith(url)
    pieces[1].unlink()
    for mode in ("FAILFAST", "DROPMALFORMED"):
        with pytest.raises(deedbook.MissingError, match=f"{pieces[1].name}: no such object"):
            rows(url, mode=mode)


def test_other_manifest_versions_are_refused(path: Path, root: str, tmp_path: Path) -> None:
    grow("wal", path, 0)
    archive.upload(path, root)
    file = tmp_path / "store" / "manifest.json"
    value = json.loads(file.read_text()) | {"deedbook_archive": 2}
    del value["sha256"]
    file.write_bytes(_manifest.with_checksum(value))
    with pytest.raises(deedbook.CorruptError, match=r"manifest.json: version 2, .* reads 1"):
        rows(root)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("ignoreMissingFiles", "true"),
        ("base", "events"),
        ("failOnDataLoss", "false"),
        ("readUntil", "written"),
        ("consumer", "me"),
    ],
)
def test_options_of_logs_are_refused(option: str, value: str, path: Path, root: str) -> None:
    grow("ledger", path, 0)
    archive.upload(path, f"{root}/log", catalog=root)
    for url in (root, f"{root}/log"):
        with pytest.raises(InvalidArgumentError, match=f"option {option}: is for "):
            reader(url, **{option: value}).initialOffset()
    with pytest.raises(
        InvalidArgumentError, match="option liveLog: is for archives, there is a le"
    ):
        rows(path, liveLog=path)
    with pytest.raises(InvalidArgumentError, match="option liveLog: is for one archive"):
        rows(root, liveLog=path)
    with pytest.raises(InvalidArgumentError, match="there is a ledger, not a wal"):
        rows(f"{root}/log", log="wal")
    with pytest.raises(InvalidArgumentError, match="allowed: paths of files"):
        rows(f"hdfs://{path}")


def session(spark: Any, gate: Gate) -> Any:
    """A session whose Python workers have the credentials."""
    made = spark.newSession()
    before = made.sparkContext.environment
    made.sparkContext.environment = {**before, **gate.environment}
    try:
        register(made)
    finally:
        made.sparkContext.environment = before
    return made


def test_spark_reads_and_streams_from_s3(spark: Any, gate: Gate, tmp_path: Path) -> None:
    url = f"s3://bucket/{tmp_path.name}"
    catalog("wal", tmp_path, url, "ab")
    mine = session(spark, gate)
    expected = [(row[0], bytes(row[1])) for row in rows(f"{url}/a")]
    frame = load(mine, f"{url}/a", splitSize="64k")
    assert tuples(frame) == expected and frame.rdd.getNumPartitions() > 1
    query = Query(mine, url, tmp_path / "checkpoint")
    assert len(query.run()) == 2 * len(expected)
    [offset] = (tmp_path / "checkpoint" / "offsets" / "0").read_text().splitlines()[-1:]
    assert json.loads(offset)["entry"] == 2 and len(offset) < 200
