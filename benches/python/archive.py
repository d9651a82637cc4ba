"""Measure archives at a real S3 server on this machine, next to the store's own PUT and GET.

Needs versitygw (scripts/s3.sh). Without options: some minutes. Writes archive.json and archive.md.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).absolute().parents[2] / "tests" / "python" / "support"))

import obstore
from clock import Figures, Watch, human, say
from facts import compared, facts, load, occasion, on_machine, when
from report import Row
from run import RESULTS_HELP, command, completed, data_dir, write

from deedbook import Wal, archive
from deedbook.spark._read.archive_stream import ArchiveStreamReader
from deedbook.spark._read.reader import default_schema, make_reader
from object_store import BUCKET, KEY, SECRET, Server

PUT, GET = "store files", "read a range"
PLAIN, OURS = "plain PUT", "archive.upload"
RANGES, RECORDS, ROWS = "plain GET of the ranges", "records in Python", "a task of Spark"
PLAN = "plan the archived logs of a catalog"
SPARK, SEGMENT = "Spark's reader", 16 << 20
RANGE_BYTES = 16 << 20


def arguments() -> argparse.Namespace:
    """The command line; `--quick` changes the defaults of the sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="small sizes, to try the benchmark itself")
    add("--segments", type=int, help="sealed files of 16 MiB (16)")
    add("--record-bytes", type=int, nargs="+", default=[1000, 65536], help="payloads")
    add("--logs", type=int, help="archived logs of the catalog (10000)")
    add("--repetitions", type=int, help="of which the median is taken (7)")
    add("--seed", type=int, default=20260219)
    add("--dir", type=Path, help="where the data goes; on a disk, not in memory")
    add("--results", type=Path, help=RESULTS_HELP)
    quick = {"segments": (3, 16), "logs": (200, 10_000), "repetitions": (2, 7)}
    return completed(parser, quick)


def make(given: argparse.Namespace, path: Path, size: int) -> int:
    """Write a log with as many sealed segments; return their bytes."""
    blob = Random(given.seed).randbytes(1 << 20)
    total = given.segments * SEGMENT
    with Wal.create(path, segment_bytes=SEGMENT, durability="manual") as wal:
        wal.append_many(blob[n % 1000 : n % 1000 + size] for n in range(total // size + 100))
        wal.sync()
    return total


def turns(
    figures: Figures, count: int, megabytes: float, calls: dict[tuple[str, str], Any]
) -> None:
    """Call all in turn, beginning with another one each time."""
    listed = list(calls.items())
    for repetition in range(count):
        for turn in range(len(listed)):
            (measure, name), call = listed[(repetition + turn) % len(listed)]
            watch = Watch()
            call(repetition)
            wall, busy = watch.stop()
            figures.value(measure, name, megabytes / wall, "MB/s")
            figures.by[measure][name].cpu.append(megabytes / max(busy, 1e-9))


def moves(figures: Figures, given: argparse.Namespace, place: Path, size: int) -> None:
    """Uploads and reads of a log of records of a size."""
    log, url = place / f"log{size}", f"s3://{BUCKET}/{size}"
    total = make(given, log, size)
    files = sorted(log.glob("*.wal"))[: given.segments]
    store: Any = obstore.store.from_url(f"{url}/plain", client_options={"allow_http": True})

    def put(repetition: int) -> None:
        for file in files:
            obstore.put(store, f"{repetition}/{file.name}", file.read_bytes(), use_multipart=False)

    def upload(repetition: int) -> None:
        report = archive.upload(log, f"{url}/{repetition}", consumer=None)
        assert report.sent_bytes == total

    of = f", records of {size} bytes"
    calls: dict[tuple[str, str], Callable[[int], None]] = {
        (PUT + of, PLAIN): put,
        (PUT + of, OURS): upload,
    }
    turns(figures, given.repetitions, total / 1e6, calls)
    opened = archive.open(f"{url}/0")
    whole = archive.open(f"{url}/0").bounds
    assert whole is not None

    def get(_: int) -> None:
        for file in files:
            for at in range(0, SEGMENT, RANGE_BYTES):
                end = min(at + RANGE_BYTES, SEGMENT)
                obstore.get_range(store, f"0/{file.name}", start=at, end=end)

    def records(_: int) -> None:
        assert sum(1 for _ in opened.payloads()) > 0

    def rows(_: int) -> None:
        path = {"path": f"{url}/0", "splitSize": "1g"}
        reader = make_reader(path, default_schema(path))
        for partition in reader.partitions():
            for _batch in reader.read(partition):
                pass

    calls = {(GET + of, RANGES): get, (GET + of, RECORDS): records, (GET + of, ROWS): rows}
    turns(figures, given.repetitions, total / 1e6, calls)


def plans(figures: Figures, given: argparse.Namespace, place: Path) -> None:
    """Plan a read of many archived logs. Their pieces are the same 1 MiB; planning opens none."""
    root = f"s3://{BUCKET}/many"
    with Wal.create(place / "small", segment_bytes=1 << 20) as wal:
        wal.append_many(bytes(1000) for _ in range(1100))
    archive.upload(place / "small", f"{root}/log1", catalog=root)
    catalog = archive.Catalog(root)
    value = next(catalog._values(0, 1, ()))
    say(f"  storing {human(given.logs)} entries")
    for number in range(2, given.logs + 1):
        assert catalog._put(number, {**value, "number": number, "log": f"log{number}"})
    path = {"path": root}
    for _ in range(given.repetitions):
        watch = Watch()
        parts = make_reader(path, default_schema(path)).partitions()
        figures.span(PLAN, SPARK, watch)
        assert sum(len(part.pieces) for part in parts) == given.logs
        figures.value("bytes of the partitions", SPARK, len(pickle.dumps(parts)), "bytes")
        stream = ArchiveStreamReader(path, default_schema(path))
        offset = stream.latestOffset(stream.initialOffset(), stream.getDefaultReadLimit())
        assert offset["entry"] == given.logs
        figures.value("bytes of the offset", "a stream", len(json.dumps(offset)), "bytes")


def promises(figures: Figures, given: argparse.Namespace) -> list[Row]:
    """The ratios, next to the required ones."""
    rows = []
    for size in given.record_bytes:
        of = f", records of {size} bytes"
        for measure, beside, names in ((PUT, PLAIN, [OURS]), (GET, RANGES, [RECORDS, ROWS])):
            other = figures.median(measure + of, beside) or 0.0
            for name in names:
                mine = figures.median(measure + of, name) or 0.0
                shown = f"{beside} {other:.0f} MB/s"
                ratio = mine / other
                what = f"{measure}{of}: {name}"
                rows.append(
                    Row(what, f"{mine:.0f} MB/s", shown, f"{ratio:.2f}", "0.8", ratio >= 0.8)
                )
    took = (figures.median(PLAN, SPARK) or 0.0) / 1e3
    logs = human(given.logs)
    rows.append(Row(f"{PLAN}, {logs}", f"{took:.2f} s", "", "", "2 s", took <= 2))
    size = figures.median("bytes of the offset", "a stream") or 0.0
    rows.append(Row("offset of a stream", f"{size:.0f} bytes", "", "", "200 bytes", size < 200))
    return rows


def markdown(figures: Figures, given: argparse.Namespace, about: dict[str, Any]) -> str:
    run, machine = about["run"], about["machine"]
    nice = f", at nice {run['nice']}" if run["nice"] else ""
    lines = [
        "# Archives at an S3 server",
        "",
        f"Made by `{run['command']}`{when(run)}: {given.segments} sealed files of 16 MiB, medians"
        f" of {given.repetitions} repetitions in which all take turns. The server, versitygw, runs"
        f" on the same machine. {on_machine(machine)}{nice}. Absolute figures move between"
        " machines; compare within the table. All runs: [archive.json](archive.json).",
        "",
    ]
    rows = [row.line() for row in promises(figures, given)]
    lines += compared(machine, rows, quick=given.quick)
    lines += [
        "",
        "An upload reads and checks each record, and hashes each file, before it stores the file. A"
        " read has every record, checked; a plain GET has bytes. Ranges have 16 MiB. The catalog's"
        " archives share one piece of 1 MiB, because planning opens no piece.",
        "",
        "| what | of | median | by processor time | lowest | highest |",
        "|---|---|---|---|---|---|",
    ]
    for measure, stores in figures.by.items():
        for name, figure in stores.items():
            busy = figure.median_by_cpu
            low, high = human(min(figure.wall)), human(max(figure.wall))
            shown = "" if busy is None else human(busy)
            middle = f"{human(figure.median or 0.0)} {figure.unit}"
            lines.append(f"| {measure} | {name} | {middle} | {shown} | {low} | {high} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    given = arguments()
    place = data_dir(given.dir)
    begun = time.monotonic()
    machine, day = facts(place), occasion()
    figures = Figures()
    (place / "s3").mkdir()
    server = Server(place / "s3")
    os.environ |= {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
    }
    try:
        for size in given.record_bytes:
            moves(figures, given, place, size)
        plans(figures, given, place)
    finally:
        server.close()
        shutil.rmtree(place)
    machine["load_after"] = load()
    sizes = ("segments", "record_bytes", "logs", "repetitions", "seed", "quick")
    about: dict[str, Any] = {
        "run": {
            "command": command(sys.argv[1:], make="make bench-archive"),
            **day,
            "seconds": round(time.monotonic() - begun),
            "nice": os.nice(0),
            **{name: getattr(given, name) for name in sizes},
        },
        "machine": machine,
    }
    text = markdown(figures, given, about)
    print(text)
    shown = json.dumps({**about, "figures": figures.to_json()}, indent=1)
    write(given.results, {"archive.json": shown + "\n", "archive.md": text})


if __name__ == "__main__":
    main()
