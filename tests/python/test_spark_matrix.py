"""One matrix of damage, read by Spark in each mode, by iteration, `verify` and `salvage`.

There is one answer: that of an oracle which knows what was appended and acknowledged.
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from damaged_logs import Case, cases, encode
from spark_cluster import local_session, require_spark

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from pyspark.errors import PySparkException

from deedbook import Book, CorruptError, SalvageReport, VerifyReport, Wal
from deedbook.spark._reader import default_schema, make_reader

pytestmark = pytest.mark.spark

FORMATS = ("book", "wal")


class Given(NamedTuple):
    """A record as a reader gives it."""

    number: int | None
    offset: int
    payload: bytes


class Answer(NamedTuple):
    """What the package says of a log without Spark."""

    given: list[Given]
    damages: list[tuple[int, int]]
    verified: VerifyReport
    salvaged: SalvageReport
    copied: list[bytes]


class Rows(NamedTuple):
    """What Spark gives of a log."""

    given: list[Given]
    damages: list[tuple[int, int]]


def format_of(case: Case) -> str:
    return "book" if case.log.kind == "book" else "wal"


@pytest.fixture(scope="module")
def spark() -> Any:
    require_spark()
    return local_session()


@pytest.fixture(scope="module")
def answers() -> Iterator[dict[str, tuple[Case, Answer]]]:
    """Every case and the package's answer, by the path that Spark's rows name.

    In memory where that is possible: thousands of syncs are no part of the question.
    """
    shared = Path("/dev/shm")
    where = shared if os.access(shared, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="deedbook-matrix-", dir=where) as root:
        found = {}
        for case in cases(Path(root)):
            file = case.path / "book.log" if case.log.kind == "book" else case.path
            found[str(file)] = case, answer(case)
        assert len(found) > 300
        yield found


def answer(case: Case) -> Answer:
    of: Any = Book if case.log.kind == "book" else Wal
    with of.open(case.path) as log:
        records = log.iter(on_corrupt="skip")
        given = list(given_of(case, records))
        damages = [(damage.offset, damage.end) for damage in records.damages]
    target = case.path.parent / ("saved.wal" if case.log.kind == "single" else "saved")
    salvaged = of.salvage(case.path, target)
    with of.open(target) as log:
        copied = [bytes(record.payload) for record in log]
    return Answer(given, damages, of.verify(case.path), salvaged, copied)


def given_of(case: Case, records: Iterable[Any]) -> Iterator[Given]:
    """A deed does not say where it lies: no two are alike, so its bytes are looked for."""
    at = 0
    for record in records:
        if case.log.kind == "book":
            at = case.space.index(encode("book", record.jam), at)
            yield Given(record.event, at, record.jam)
        else:
            yield Given(record.lsn, record.lsn, record.payload)


def read(spark: Any, log: str, paths: list[str], mode: str) -> dict[str, Rows]:
    """The rows of many logs by one query, by path."""
    columns = {
        "book": ["path", "event", "offset", "length", "jam"],
        "wal": ["path", "lsn", "length", "payload"],
    }[log]
    if mode == "PERMISSIVE":
        columns.append("_corrupt_record")
    frame = (
        spark.read.format("deedbook")
        .options(mode=mode, log=log, columns=",".join(columns))
        .load(paths)
    )
    found: dict[str, Rows] = defaultdict(lambda: Rows([], []))
    for row in frame.collect():
        offset = row.offset if log == "book" else row.lsn
        if mode == "PERMISSIVE" and row._corrupt_record is not None:
            found[row.path].damages.append((offset, offset + row.length))
        elif log == "book":
            found[row.path].given.append(Given(row.event, offset, bytes(row.jam)))
        else:
            found[row.path].given.append(Given(offset, offset, bytes(row.payload)))
    return found


def wrongs(answers: dict[str, tuple[Case, Answer]], check: Any) -> list[str]:
    """Every case that fails a check: one that does must not hide the others."""
    failed = []
    for path, (case, said) in answers.items():
        try:
            check(path, case, said)
        except AssertionError as error:
            failed.append(f"{case}: {error}")
    return failed


def test_the_package_says_what_the_oracle_says(answers: dict[str, tuple[Case, Answer]]) -> None:
    def check(_: str, case: Case, said: Answer) -> None:
        places = {record.offset for record in said.given}
        must = {case.log.edges[i] for i in case.expected}
        assert must <= places, f"not given: {sorted(must - places)}"
        others = [r for r in said.given if not case.is_appended(r.offset, r.payload)]
        assert all(case.is_there(r.offset, r.payload) for r in others), "gave what is not there"
        extra = [r for r in others if "swapped" not in case.damage and "written" not in case.damage]
        assert len(extra) <= said.verified.uncertain, f"never appended: {extra}"
        known = {case.log.edges[i]: i for i in range(len(case.log.payloads))}
        if case.log.kind == "book":
            right = [r for r in said.given if r.offset in known and r.number is not None]
            assert all(r.number == known[r.offset] + 1 for r in right), "wrong event numbers"
        assert said.verified.valid_end == case.valid_end
        assert said.verified.lost_acknowledged == (case.valid_end < case.acknowledged)
        verdict = {"clean": "whole", "open": "whole"}.get(
            said.verified.verdict, said.verified.verdict
        )
        assert verdict == case.verdict
        assert said.verified.records == len(said.given)

    assert wrongs(answers, check) == []


def test_a_salvage_copies_what_is_given_and_marks_the_rest(
    answers: dict[str, tuple[Case, Answer]],
) -> None:
    def check(_: str, case: Case, said: Answer) -> None:
        assert said.salvaged.records == len(said.copied)
        left = iter(said.copied)
        assert all(record.payload in left for record in said.given), "not copied, in order"
        more = len(said.copied) - len(said.given)
        assert more <= said.salvaged.uncertain, f"{more} more, {said.salvaged.uncertain} uncertain"

    assert wrongs(answers, check) == []


@pytest.mark.parametrize("log", FORMATS)
@pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])
def test_spark_reads_on_as_iteration_does(
    spark: Any, answers: dict[str, tuple[Case, Answer]], mode: str, log: str
) -> None:
    mine = {path: it for path, it in answers.items() if format_of(it[0]) == log}
    rows = read(spark, log, [str(case.path) for case, _ in mine.values()], mode)

    def check(path: str, case: Case, said: Answer) -> None:
        known = numbered_as_far(rows[path].given, said.given)
        assert known == said.given, differences(known, said.given)
        if mode == "PERMISSIVE":
            # What is missing at the end has no bytes; Spark's row has the length that it had.
            ends = [(at, end if end > at else case.acknowledged) for at, end in said.damages]
            assert rows[path].damages == ends
            assert bool(said.damages) == (case.verdict == "corrupt")

    assert wrongs(mine, check) == []


def numbered_as_far(got: list[Given], expected: list[Given]) -> list[Given]:
    """With the numbers that are expected where there is none: a part of a log may know less."""
    numbers = {record.offset: record.number for record in expected}
    return [r if r.number is not None else r._replace(number=numbers.get(r.offset)) for r in got]


def differences(got: Iterable[Given], expected: Iterable[Given]) -> str:
    got, expected = list(got), list(expected)
    return f"more: {[r[:2] for r in got if r not in expected]}, missing: " + str(
        [r[:2] for r in expected if r not in got]
    )


@pytest.mark.parametrize("log", FORMATS)
def test_failfast_reads_what_has_no_damage(
    spark: Any, answers: dict[str, tuple[Case, Answer]], log: str
) -> None:
    mine = {
        path: it
        for path, it in answers.items()
        if format_of(it[0]) == log and it[0].verdict != "corrupt"
    }
    rows = read(spark, log, [str(case.path) for case, _ in mine.values()], "FAILFAST")

    def check(path: str, case: Case, said: Answer) -> None:
        assert rows[path].given == said.given
        assert [r.offset for r in said.given] == [case.log.edges[i] for i in case.expected]

    assert wrongs(mine, check) == []


def is_named(error: Exception, case: Case) -> None:
    assert f": byte {case.valid_end}: " in str(error)
    assert "mode DROPMALFORMED or PERMISSIVE reads on after it" in str(error)


def test_failfast_names_the_first_damaged_byte(answers: dict[str, tuple[Case, Answer]]) -> None:
    """As a worker of Spark's reads, in this process: each failed query takes Spark a second."""

    def check(_: str, case: Case, said: Answer) -> None:
        options = {"path": str(case.path), "mode": "FAILFAST"}
        reader = make_reader(options, default_schema(options))
        payloads = []
        try:
            for partition in reader.partitions():
                for batch in reader.read(partition):
                    payloads += batch.column(batch.num_columns - 1).to_pylist()
        except CorruptError as error:
            assert case.verdict == "corrupt", error
            is_named(error, case)
        else:
            assert case.verdict != "corrupt", "no error"
        prefix = [record.payload for record in said.given if record.offset < case.valid_end]
        assert payloads == prefix[: len(payloads)]

    assert wrongs(answers, check) == []


def test_failfast_fails_the_query(spark: Any, answers: dict[str, tuple[Case, Answer]]) -> None:
    """Every third damage, of another kind of log and with another sidecar each time."""
    corrupt = defaultdict(list)
    for case, _ in answers.values():
        if case.verdict == "corrupt":
            corrupt[case.damage].append(case)
    sample = {
        str(cases[number % len(cases)]): cases[number % len(cases)]
        for number, cases in enumerate(list(corrupt.values())[::3], 1)
    }
    assert len(sample) >= 8

    def check(_: str, case: Case, __: Answer) -> None:
        with pytest.raises(PySparkException) as caught:
            read(spark, format_of(case), [str(case.path)], "FAILFAST")
        is_named(caught.value, case)

    some = {path: it for path, it in answers.items() if str(it[0]) in sample}
    assert wrongs(some, check) == []


def test_the_matrix_holds_every_outcome(answers: dict[str, tuple[Case, Answer]]) -> None:
    """A matrix of clean logs would agree as well."""
    verdicts = defaultdict(set)
    for case, said in answers.values():
        verdicts[case.verdict].add(case.damage)
        verdicts["lost"] |= {case.damage} if said.verified.lost_acknowledged else set()
        verdicts["uncertain"] |= {case.damage} if said.salvaged.uncertain else set()
    assert len(verdicts["corrupt"]) >= 20 and len(verdicts["torn"]) >= 5
    assert len(verdicts["lost"]) >= 15 and len(verdicts["uncertain"]) >= 3
