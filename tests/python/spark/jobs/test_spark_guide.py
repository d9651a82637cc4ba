"""The examples of the pages on Spark run as shown, one after the other."""

import re
from pathlib import Path
from typing import Any

import pytest

from deedbook import Wal
from logs import append_to, make_epochs, payloads
from nostr_events import SMALL, events
from places import DOCS

GUIDES = [DOCS / f"spark{of}.md" for of in ("", "-streams", "-writing", "-jobs")]
# The inputs and outputs of the examples, here in a new directory.
PATHS = ("pier", "spool", "notes", "orders", "copies", "checkpoint", "incoming", "events", "bad")
PATHS += (
    "archives",
    "queue",
    "checkpoints",
    "archived",
    "exported",
    "dumps",
    "migrated",
    "small",
    "few",
)


def blocks(guide: Path) -> list[tuple[int, str, str]]:
    text = guide.read_text(encoding="utf-8")
    found = re.finditer(r"^```(python|sql)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, match.start()) + 2, match[1], match[2]) for match in found]


def placed(text: str, directory: Path) -> str:
    for name in PATHS:
        text = re.sub(rf"(['\"]){name}(?=[./'\"])", rf"\g<1>{directory}/{name}", text)
    return text


def test_the_examples_of_the_guides_run(spark: Any, tmp_path: Path) -> None:
    if not DOCS.exists():
        pytest.skip("no docs")
    archive = pytest.importorskip("deedbook.archive", reason="obstore is not installed")
    (tmp_path / "incoming").mkdir()
    (tmp_path / "incoming" / "a.jsonl").write_text('{"a":1}\n{"a":\n')
    (tmp_path / "dumps").mkdir()
    (tmp_path / "dumps" / "a.jsonl").write_text(SMALL.read_text() + "{}\n")
    make_epochs(tmp_path / "pier", {0: [b"jam"] * 2000})
    with Wal.create(tmp_path / "orders.wal") as wal:
        wal.append_many([b"order %d" % number for number in range(30)])
        wal.sync()
    (tmp_path / "small").mkdir()
    for number in range(3):
        append_to("wal", tmp_path / "small" / f"{number}", [b"record"])
    append_to("ledger", tmp_path / "spool", [b"event"] * 10, base="events")
    append_to("nostr", tmp_path / "notes", events(0, 9))
    store = (tmp_path / "archives").as_uri()
    with Wal.create(tmp_path / "queue", segment_bytes=20_000) as wal:
        wal.append_many(bytes(1000) for _ in range(100))
    archive.upload(tmp_path / "queue", f"{store}/queue", catalog=store)
    names: dict[str, Any] = {"spark": spark}
    found = [(guide, *block) for guide in GUIDES for block in blocks(guide)]
    assert len(found) >= 13
    for guide, line, language, text in found:
        text = placed(text, tmp_path)
        if language == "python":
            exec(compile("\n" * (line - 1) + text, str(guide), "exec"), names)
            continue
        for statement in filter(str.strip, text.split(";")):
            names["answer"] = spark.sql(statement).collect()
    # The examples wrote the documented records.
    written = payloads(tmp_path / "copies.wal")
    assert written[:3] == [b"first", b"second", b"order 0"]
    assert (written[-1], len(written)) == (b"third", 33)
    assert spark.read.parquet(str(tmp_path / "orders.parquet")).count() == 30
    assert names["notes"].columns == ["created_at", "content"]
    assert names["damage"].count() == 0
    archived = names["all_logs"].count()
    assert (names["some"].count(), names["both"].count()) == (archived - 1, 100)
    assert spark.read.parquet(str(tmp_path / "archived.parquet")).count() == archived > 90
    assert (names["imported"].stored, names["imported"].bad) == (31, 1)
    for view in ("deeds", "copies"):
        spark.catalog.dropTempView(view)
