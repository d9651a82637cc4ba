"""Arrow: books as tables for every library, arrays of every library into books."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from deedbook import Book, Deed, InvalidArgumentError
from log_bytes import make_book, packed
from logs import span

pa = pytest.importorskip("pyarrow")

JAMS = [b"one", b"", b"three\0\xff"]
MUGS = [1, 2**31, 2**32 - 1]
TABLE = {"event": [11, 12, 13], "mug": [1, -(2**31), -1], "jam": JAMS}


@pytest.fixture
def book(path: Path) -> Iterator[Book]:
    with Book.create(path, epoch=10) as book:
        book.append_many(JAMS, MUGS)
        yield book


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Book]:
    with Book.create(tmp_path / "empty", durability="manual") as book:
        yield book


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    log = bytearray(packed([b"deed"] * 50_000))
    log[16 + 28 * 40_000 + 12] ^= 1
    return make_book(tmp_path / "damaged", bytes(log))


SCHEMA = pa.schema(
    [
        pa.field("event", pa.int64()),
        pa.field("mug", pa.int32(), False),
        pa.field("jam", pa.binary(), False),
    ]
)


def test_pyarrow_reads_books_and_ranges(book: Book) -> None:
    assert pa.table(book).to_pydict() == TABLE
    for source in (book, book[:], book.batches()):
        assert pa.schema(source) == SCHEMA, "without reading"
    assert pa.table(book[12:13]).to_pydict() == {"event": [12], "mug": [-(2**31)], "jam": [b""]}
    assert pa.table(book[20:]).num_rows == 0
    snapshot = pa.RecordBatchReader.from_stream(book)
    book.append(b"four")
    batches = list(snapshot)
    for batch in batches:
        batch.validate(full=True)
    assert sum(batch.num_rows for batch in batches) == 3 and pa.table(book).num_rows == 4


def test_an_empty_book_is_an_empty_table(empty: Book) -> None:
    assert pa.table(empty).num_rows == 0 and pa.table(empty).schema == SCHEMA


def test_duckdb_reads_a_book_three_times_per_query(book: Book) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as db:
        db.register("deeds", book)
        query = """
            select a.event, a.jam, (select count(*) from deeds)
            from deeds a join deeds b using (event) order by event
        """
        for _ in range(2):
            assert db.sql(query).fetchall() == [(11, b"one", 3), (12, b"", 3), (13, JAMS[2], 3)]
    assert duckdb.sql("select sum(event) from book").fetchall() == [(36,)], "by its variable"


def test_a_table_outlives_its_book(path: Path) -> None:
    with Book.create(path) as book:
        book.append_many(JAMS)
        reader, table = pa.RecordBatchReader.from_stream(book), pa.table(book)
    del book
    assert table["jam"].to_pylist() == JAMS
    # Closing released the files, so later reads fail.
    with pytest.raises(pa.ArrowException):
        reader.read_all()


def test_a_consumer_may_ask_for_another_schema(book: Book) -> None:
    wanted = pa.schema(
        [
            pa.field("event", pa.int64()),
            pa.field("mug", pa.int32()),
            pa.field("jam", pa.large_binary()),
        ]
    )
    found = pa.RecordBatchReader.from_stream(book, schema=wanted).read_all()
    assert found["jam"].to_pylist() == JAMS
    assert found.schema.field("jam").type in (pa.large_binary(), pa.binary())


def rows(stream: object) -> list[int]:
    return [pa.record_batch(batch).num_rows for batch in stream]  # type: ignore[attr-defined]


def test_batches_respect_batch_rows_and_batch_bytes(empty: Book) -> None:
    empty.append_many([b"deed"] * 10)
    assert rows(empty.batches(batch_rows=4)) == [4, 4, 2]
    assert rows(empty.batches(3, 9, batch_rows=5)) == [5, 1]
    empty.append_many([bytes(100)] * 10 + [bytes(5000)] + [b""] * 3)
    assert rows(empty.batches(11, batch_bytes=300)) == [3, 3, 3, 2, 3]
    assert rows(empty.batches(11, batch_bytes=1)) == [1] * 11 + [3]


def test_columns_come_as_asked_for(book: Book) -> None:
    table = pa.table(book.batches(columns=("jam", "length", "offset")))
    assert table.to_pydict() == {"jam": JAMS, "length": [27, 24, 31], "offset": [16, 43, 67]}


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"batch_rows": -1}, OverflowError),
        ({"batch_bytes": -1}, OverflowError),
        ({"columns": "event"}, TypeError),
        ({"columns": [1]}, TypeError),
        ({"columns": 5}, TypeError),
        ({"columns": iter(["event"])}, TypeError),
        ({"columns": ["sum"]}, InvalidArgumentError),
        ({"columns": []}, InvalidArgumentError),
    ],
    ids=str,
)
def test_batches_of_other_sizes_and_columns_are_refused(book: Book, wrong, error) -> None:
    with pytest.raises(error):
        book.batches(**wrong)


def test_batch_stream_exports_only_once_even_when_started(book: Book) -> None:
    stream = book.batches(batch_rows=2)
    assert pa.record_batch(next(stream)).num_rows == 2
    assert pa.table(stream)["event"].to_pylist() == [13]
    with pytest.raises(InvalidArgumentError, match="handed over already"):
        pa.table(stream)
    assert list(stream) == []


def test_every_arrow_consumer_raises_damage_with_its_place(damaged: Path) -> None:
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    with Book.open(damaged) as book:
        for consume in (
            pa.table,
            lambda book: pa.RecordBatchReader.from_stream(book).read_all(),
            polars.DataFrame,
            lambda book: duckdb.sql("select count(jam) from book").fetchall(),
        ):
            with pytest.raises(Exception, match=r"deed 40001: checksum.*byte 1,120,016"):
                consume(book)


def test_what_lies_before_the_damage_can_be_had(damaged: Path) -> None:
    with Book.open(damaged) as book:
        assert pa.table(book[:40_001]).num_rows == 40_000
        assert pa.table(book[40_002:]).num_rows == 9_999
        stream = book.batches(on_corrupt="skip", batch_rows=30_000)
        assert [pa.record_batch(batch).num_rows for batch in stream] == [30_000, 19_999]
        assert [(d.first_lost, d.records_lost) for d in stream.damages] == [(40_001, 1)]
        stream = book.batches()
        with pytest.raises(Exception, match="deed 40001"):
            list(stream)
        assert rows(stream) == []


BINARY = [pa.binary(), pa.large_binary(), pa.binary_view()]
TEXT = [pa.string(), pa.large_string(), pa.string_view()]


@pytest.mark.parametrize("kind", BINARY + TEXT, ids=str)
def test_book_appends_every_binary_and_string_arrow_type(empty: Book, kind) -> None:
    values = ["one", "", "a text of more than twelve bytes"]
    if kind in BINARY:
        values = [value.encode() for value in values]
    array = pa.array(values, kind)
    assert span(empty.append_many(array)) == (1, 4)
    assert span(empty.append_many(array[1:])) == (4, 6)
    stored = [value if isinstance(value, bytes) else value.encode() for value in values]
    assert [deed.jam for deed in empty] == stored + stored[1:]


def test_chunked_arrays_tables_batches_and_readers_are_appended(empty: Book) -> None:
    chunks = pa.chunked_array([[b"a"], [], [b"b", b"c"]], pa.binary())
    table = pa.table({"jam": chunks, "mug": pa.array([1, 2, 3], pa.uint32()), "note": ["x"] * 3})
    for number, source in enumerate((chunks, table, table.to_batches()[0], table.to_reader())):
        before = empty.last
        numbers = empty.append_many(source)
        assert span(numbers) == (before + 1, empty.last + 1)
        assert next(empty.payloads(before + 1)) == b"a", number
    assert [deed.mug for deed in empty][3:6] == [1, 2, 3]


def test_a_book_is_copied_with_its_mugs(book: Book, empty: Book) -> None:
    assert span(empty.append_many(book)) == (1, 4)
    assert [deed.mug for deed in empty] == MUGS
    empty.append_many(book[13:])
    assert empty[4] == Deed(4, MUGS[2], JAMS[2])
    assert span(book.append_many(book)) == (14, 17), "to itself"
    assert list(book.payloads()) == JAMS * 2


def test_series_and_frames_are_appended(empty: Book) -> None:
    polars = pytest.importorskip("polars")
    empty.append_many(polars.Series([b"a", b"b"]))
    empty.append_many(polars.Series(["text"]))
    empty.append_many(
        polars.DataFrame({"mug": [7], "jam": [b"c"]}, schema_overrides={"mug": polars.UInt32})
    )
    assert list(empty.payloads()) == [b"a", b"b", b"text", b"c"] and empty[4].mug == 7
    pandas = pytest.importorskip("pandas")
    empty.append_many(pandas.Series([b"d"], dtype=pandas.ArrowDtype(pa.binary())))
    assert empty[5].jam == b"d"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (pa.array([b"a", None]), "jam is null in row 1"),
        (pa.array([1, 2]), "jam of Arrow type Int64"),
        (pa.array([b"a"]).dictionary_encode(), "jam of Arrow type Dictionary"),
        (pa.array([[b"a"]]), "jam of Arrow type List"),
        (pa.table({"a": [b"x"], "b": [b"y"]}), 'no column "jam" among a, b'),
        (pa.table({"x": [b"a"]}), 'no column "jam" among x'),
        (pa.table({"jam": [b"x"], "mug": [1]}), "mug of Arrow type Int64"),
        (pa.table({"jam": [b"x"], "mug": pa.array([None], pa.int32())}), "mug is null in row 0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_payload_is_refused(empty: Book, wrong: object, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        empty.append_many(wrong)
    with pytest.raises(InvalidArgumentError, match="mug column"):
        empty.append_many(pa.array([b"a"]), [1])
    assert empty.append(b"usable") == 1


def test_a_batch_takes_an_array_by_its_elements(empty: Book) -> None:
    assert span(empty.append_many(pa.array([b"a", b"b"]), atomic=True)) == (1, 3)
    for wrong in (pa.array([1, 2]), pa.array([b"c", None])):
        with pytest.raises((TypeError, ValueError)):
            empty.append_many(wrong, atomic=True)
    assert list(empty.payloads()) == [b"a", b"b"]


def test_a_producer_that_fails_keeps_what_it_gave(empty: Book) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"jam": [b"a", b"b"]})
        raise LookupError("broken producer")

    source = pa.RecordBatchReader.from_batches(pa.schema({"jam": pa.binary()}), batches())
    with pytest.raises(InvalidArgumentError, match="broken producer"):
        empty.append_many(source)
    assert list(empty.payloads()) == [b"a", b"b"]


def test_a_producer_may_append_to_the_same_book(empty: Book) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(3):
            empty.append(b"inner")
            yield pa.record_batch({"jam": [b"%d" % number * 300_000]})

    source = pa.RecordBatchReader.from_batches(pa.schema({"jam": pa.binary()}), batches())
    empty.append_many(source)
    assert [len(jam) for jam in empty.payloads()] == [5, 300_000] * 3


def test_large_arrow_table_survives_a_round_trip(empty: Book) -> None:
    jams = pa.array(b"%d" % number * (number % 7) for number in range(300_000))
    assert span(empty.append_many(jams)) == (1, 300_001)
    assert pa.table(empty)["jam"].combine_chunks() == jams
