"""The page of conformance, its rows, and the files and tests that the rows name."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import conformance  # noqa: E402
from conformance import Row  # noqa: E402


def test_the_page_is_made_from_the_rows() -> None:
    assert (ROOT / conformance.PAGE).read_text() == conformance.document(conformance.rows())


def test_every_demand_of_the_documents_has_a_row() -> None:
    numbers = {"U": 64, "P": 29, "L": 105, "W": 43, "N": 115, "C": 16}
    expected = [f"{letter}{n}" for letter, last in numbers.items() for n in range(1, last + 1)]
    assert [row.id for row in conformance.rows()] == expected
    assert len(expected) == 372


def test_rows_name_existing_files_pages_and_tests() -> None:
    assert [text for row in conformance.rows() for text in conformance.wrong(row)] == []


def test_rows_without_proof_or_reason_are_wrong(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.rs").write_text("fn unit() {}\n")
    done = Row("U1", "A demand.", "done", "src/a.rs", "lib::a::unit", "", "")
    assert conformance.wrong(done, tmp_path) == []
    for changed, complaints in [
        (done._replace(file="src/b.rs"), ["U1: no file src/b.rs"]),
        (done._replace(file=""), ["U1: no file"]),
        (done._replace(tests="lib::a::other"), ["U1: no test lib::a::other"]),
        (done._replace(tests="src/a.rs::unit lib::b::unit"), ["U1: no test lib::b::unit"]),
        (done._replace(state="deviates", note="x"), ["U1: no state 'deviates'"]),
        (done._replace(asks=""), ["U1: no demand"]),
        (done._replace(state="partly"), ["U1: no note"]),
        (done._replace(state="missing", file="", tests=""), ["U1: no note"]),
        (done._replace(state="ruled", note="x"), ["U1: no page that decides"]),
    ]:
        assert conformance.wrong(changed, tmp_path) == complaints
