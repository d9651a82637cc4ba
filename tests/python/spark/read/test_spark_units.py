"""The parts of the Spark source that need no session: options, schemas, paths, documentation."""

import os
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from deedbook import EventStore, InvalidArgumentError, MissingError
from deedbook.spark import _doc
from deedbook.spark._logs.book import BOOK
from deedbook.spark._options.option_table import OPTIONS
from deedbook.spark._options.options import ReadOptions, parse
from deedbook.spark._options.paths import find_logs, input_paths, local_path
from deedbook.spark._options.schema import bind, resolve
from deedbook.spark._read.detect import detect_logs
from deedbook.spark._read.reader import make_reader
from log_bytes import write_book
from logs import append_to
from nostr_events import made
from places import DOCS
from spark_session import reader_of

DOCUMENT = DOCS / "spark.md"


def test_discovery_imports_neither_native_module_nor_pyarrow() -> None:
    script = (
        "import sys, pyspark.sql.datasource; before = set(sys.modules); import pyspark_deedbook;"
        "print(sorted(set(sys.modules) - before))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert result.stdout.decode().strip() == "['pyspark_deedbook']"


def test_documented_tables_are_current() -> None:
    if not DOCUMENT.exists():
        pytest.skip("docs/spark.md is not in this checkout")
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text == _doc.render(text), "run: python -m deedbook.spark._doc docs/spark.md"


def test_table_and_parsed_options_name_the_same() -> None:
    names = {option.name.lower() for option in OPTIONS}
    assert names == {field.replace("_", "") for field in ReadOptions.__dataclass_fields__}


def test_options_parse_in_any_case() -> None:
    given = {"path": "x", "START": "5", "columns": "jam, event", "splitsize": "64K"}
    given |= {"minPartitions": "12", "batchBytes": "3 mb", "verify": "NONE", "log": "Book"}
    given |= {"mode": "permissive", "columnNameOfCorruptRecord": "bad"}
    assert parse(given) == ReadOptions(
        log="book",
        start=5,
        columns=("jam", "event"),
        split_size=65536,
        min_partitions=12,
        batch_bytes=3 << 20,
        verify="none",
        mode="PERMISSIVE",
        column_name_of_corrupt_record="bad",
    )


BAD_VALUES = {
    "log": ["tape"],
    "start": ["-1", "ten"],
    "end": ["9223372036854775808"],
    "columns": ["event,,jam"],
    "splitSize": ["0", "64x", "1025g"],
    "minPartitions": ["0"],
    "batchRows": ["0", "1000001"],
    "batchBytes": ["2g"],
    "verify": ["sha256"],
    "mode": ["IGNORE"],
    "columnNameOfCorruptRecord": [""],
    "ignoreMissingFiles": ["yes"],
    "include": ["dead"],
}


@pytest.mark.parametrize("name", BAD_VALUES)
def test_bad_value_names_option_value_and_allowed(name: str) -> None:
    allowed = next(option.allowed for option in OPTIONS if option.name == name)
    for text in BAD_VALUES[name]:
        with pytest.raises(InvalidArgumentError) as caught:
            parse({name.lower(): text})
        assert str(caught.value) == f"option {name}: {text!r} is not allowed; allowed: {allowed}"


@pytest.mark.parametrize(
    ("option", "value", "of"),
    [
        ("base", "events", "ledgers"),
        ("ignoreMissingFiles", "true", "ledgers"),
        ("filter", "{}", "event stores"),
        ("include", "all", "event stores"),
    ],
)
def test_options_of_one_format_are_refused_for_others(
    tmp_path: Path, option: str, value: str, of: str
) -> None:
    formats = {"book": [b"1"], "wal": [b"1"]}
    formats |= {"ledger": [b"1"]} if of == "event stores" else {"nostr": [made()]}
    for format, records in formats.items():
        append_to(format, tmp_path / format, records)
        with pytest.raises(
            InvalidArgumentError, match=f"option {option}: is for {of}, there is a {format}"
        ):
            reader_of(tmp_path / format, **{option: value})


def test_unknown_option_names_the_nearest_and_all() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse({"splitsizes": "1m"})
    assert "unknown option splitsizes (did you mean splitSize?)" in str(caught.value)
    assert all(option.name in str(caught.value) for option in OPTIONS)


@pytest.mark.parametrize(
    ("columns", "schema"),
    [
        (None, "event bigint, mug int, jam binary"),
        ("jam,event", "jam binary, event bigint"),
        ("PATH", "path string"),
        ("length,offset", "length bigint, offset bigint"),
    ],
)
def test_columns_make_the_schema(columns: str | None, schema: str) -> None:
    options = parse({"columns": columns} if columns else {})
    made = resolve(BOOK.columns, options)
    assert ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in made) == schema
    assert all(field.nullable for field in made)


def test_permissive_adds_the_corrupt_record_column_once() -> None:
    assert resolve(BOOK.columns, parse({"mode": "PERMISSIVE"})).names[-1] == "_corrupt_record"
    chosen = parse({"mode": "PERMISSIVE", "columns": "_corrupt_record,event"})
    assert resolve(BOOK.columns, chosen).names == ["_corrupt_record", "event"]


@pytest.mark.parametrize(
    ("ddl", "options", "message"),
    [
        ("event int", {}, "schema: column event is bigint, not int"),
        ("jam string", {}, "schema: column jam is binary, not string"),
        ("_corrupt_record int", {}, "schema: column _corrupt_record is string, not int"),
        ("number bigint", {}, "schema: unknown column number; allowed: event bigint, mug int"),
        ("event bigint, EVENT bigint", {}, "schema: column EVENT is there twice"),
        (
            "event bigint NOT NULL",
            {"mode": "DROPMALFORMED"},
            "schema: column event can be null in mode DROPMALFORMED; declare it nullable",
        ),
        ("jam binary NOT NULL", {"mode": "PERMISSIVE"}, "column jam can be null in mode PERM"),
        (
            "event bigint",
            {"columnNameOfCorruptRecord": "event"},
            "option columnNameOfCorruptRecord: event is a column of the log",
        ),
        ("", {}, "schema: no column; allowed: event bigint"),
    ],
)
def test_schema_that_does_not_fit(ddl: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        bind(BOOK.columns, _schema(ddl), parse(options))
    assert message in str(caught.value)


def test_columns_beside_another_schema_are_refused(tmp_path: Path) -> None:
    book = write_book(tmp_path / "book", [b"x"])
    with pytest.raises(InvalidArgumentError, match="give one of the two"):
        make_reader({"path": str(book), "columns": "event"}, _schema("jam binary"))


books_at = partial(BOOK.expand, options=ReadOptions())


def test_path_is_required_and_local() -> None:
    with pytest.raises(InvalidArgumentError, match="option path is missing"):
        input_paths({})
    with pytest.raises(InvalidArgumentError, match="option path: 's3://bucket/log' is not"):
        find_logs(["s3://bucket/log"], books_at)
    assert input_paths({"paths": '["a","b"]'}) == ["a", "b"]


def test_paths_find_books_in_numeric_order(tmp_path: Path) -> None:
    books = [write_book(tmp_path / "log" / f"0i{n}", [], first=n + 1) for n in (10, 9, 100, 0)]
    ordered = [books[3], books[1], books[0], books[2]]
    (tmp_path / "log" / "notes").mkdir()
    log = tmp_path / "log"
    for given in (
        [str(log)],
        [f"file://{log}"],
        [str(log / "0i*")],
        [str(log / "*")],
        [str(book / "book.log") for book in ordered],
        [os.path.relpath(log)],
    ):
        assert find_logs(given, books_at) == ordered, given


def test_a_name_with_a_time_is_no_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("export-2026-12-01T10:00", "a:b", "C:x"):
        assert local_path(name) == tmp_path / name
    assert local_path("FILE:///x%20y") == Path("/x y")
    for url in ("s3://bucket/x", "hdfs:/x", "file://host/x"):
        with pytest.raises(InvalidArgumentError, match=rf"^aside: '{url}' is not allowed"):
            local_path(url, "aside")


def test_pier_and_glob_like_names_are_taken_literally(tmp_path: Path) -> None:
    epoch = write_book(tmp_path / "zod" / ".urb" / "log" / "0i0", [b"x"])
    assert find_logs([str(tmp_path / "zod")], books_at) == [epoch]
    book = write_book(tmp_path / "a[1]", [b"x"])
    write_book(tmp_path / "a1", [b"x"])
    assert find_logs([str(book)], books_at) == [book]


def test_unfinished_log_is_not_listed(tmp_path: Path) -> None:
    book = write_book(tmp_path / "few" / "00003", [b"x"])
    making = write_book(tmp_path / "few" / ".00003.making-7", [b"x"])
    for log in ("wal", "ledger", "store"):
        (tmp_path / "few" / f".{log}").mkdir()
    (tmp_path / "few" / ".wal" / f"{0:020d}.wal").touch()
    append_to("ledger", tmp_path / "few" / ".ledger", [b"x"])
    EventStore.create(tmp_path / "few" / ".store").close()
    log, series = detect_logs({"path": str(tmp_path / "few")}, parse({}))
    assert (log, [one.logs for one in series]) == (BOOK, [(str(book),)])
    assert find_logs([str(making)], books_at) == [making]  # as it is named


def test_paths_without_a_log_are_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for given, reason in (
        (tmp_path / "none", "no such file or directory"),
        (tmp_path / "empty", "no log there"),
        (tmp_path / "none*", "the glob matches nothing"),
    ):
        with pytest.raises(MissingError) as caught:
            find_logs([str(given)], books_at)
        assert reason in str(caught.value) and str(given) in str(caught.value)
        assert caught.value.path == str(given)


def test_pickles_are_small(tmp_path: Path) -> None:
    book = write_book(tmp_path / "book", [bytes(1000)] * 5000)
    reader = reader_of(book, splitSize="64k")
    parts = reader.partitions()
    assert len(parts) > 50
    assert len(pickle.dumps(reader)) < 1500 + len(str(tmp_path))
    assert max(len(pickle.dumps(part)) for part in parts) < 250 + len(str(tmp_path))


def _schema(ddl: str) -> StructType:
    schema = StructType()
    types = {"bigint": "long", "int": "integer"}
    for column in filter(None, ddl.split(", ")):
        name, kind, *null = column.split(" ", 2)
        schema.add(name, types.get(kind, kind), nullable=not null)
    return schema
