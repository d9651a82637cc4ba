"""Merge the parts' results and write the published pages from them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from rows import ROWS, Row
from wal_rows import WAL_ROWS

BEGIN, END = "<!-- begin trust -->", "<!-- end trust -->"
DOCUMENT = "docs/trust.md"
DATA = "docs/trust.json"


def merge(trust: Path) -> dict[str, Any]:
    """All results below a directory, by the name of their file."""
    return {file.stem: json.loads(file.read_text()) for file in sorted(trust.glob("*.json"))}


def publish(root: Path, results: dict[str, Any]) -> None:
    """Write docs/trust.json, docs/trust.md and the table in README.md."""
    text = json.dumps(results, indent=1, sort_keys=True) + "\n"
    (root / DATA).write_text(text)
    results = json.loads(text)  # in the order in which the pages are checked
    (root / DOCUMENT).write_text(document(results))
    readme = root / "README.md"
    readme.write_text(with_table(readme.read_text(), results))
    print(f"wrote {DATA}, {DOCUMENT} and the table in README.md")


def with_table(readme: str, results: dict[str, Any]) -> str:
    """The README with its trust table replaced."""
    before, rest = readme.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table(figures(results))}{END}{after}"


def figures(results: dict[str, Any]) -> list[tuple[str, str, str]]:
    """What was tried, how often, and by which command's part."""
    found: list[tuple[str, str, str]] = []
    books = {name: part for name, part in results.items() if name.startswith("crash-book")}
    found += crashes("", list(books.values()), "crash")
    faults = {name: part for name, part in results.items() if name.startswith("faults")}
    failing = [part for name, part in faults.items() if "wal" not in name]
    if failing:
        what = "storage calls that failed, each in every way"
        found.append((what, failed(*failing), "faults"))
    wals = {name: part for name, part in results.items() if name.startswith("crash-wal")}
    found += crashes("WAL: ", list(wals.values()), "crash")
    failing = [part for name, part in faults.items() if "wal" in name]
    if failing:
        found.append(
            ("WAL: storage calls that failed, each in every way", failed(*failing), "faults")
        )
    if "damage-cuts" in results:
        cuts = results["damage-cuts"]["cuts"]
        found.append(("logs cut at one byte more", count(cuts), "damage"))
    if "damage-flips" in results:
        flips = results["damage-flips"]["flips"]
        found.append(("single bits flipped", count(flips), "damage"))
    if "kill" in results:
        kills = results["kill"]["cycles"]
        found.append(("writers killed with SIGKILL", count(kills), "kill"))
    for name, one in results.get("power", {}).get("parts", {}).items():
        if name.startswith("power cuts") and "cycles" in one:
            system, _, layout = name.removeprefix("power cuts, ").partition(", wal ")
            what = f"WAL: power cuts on {system}, {layout}" if layout else f"power cuts on {system}"
            found.append((what, count(one["cycles"]), "power"))
    if "fuzz" in results:
        targets = results["fuzz"]["targets"]
        execs = sum(target["execs"] for target in targets.values())
        found.append((f"inputs by {len(targets)} fuzzers", count(execs), "fuzz"))
    for name, of, part in [
        ("mutants", "", "mutants"),
        ("mutants-wal", "WAL: ", "wal-mutants"),
        ("mutants-log", "of all formats: ", "log-mutants"),
    ]:
        if name in results:
            mutants = results[name]
            caught = f"{mutants['caught']} of {mutants['seeded']}"
            found.append((f"{of}seeded bugs caught", caught, part))
    return found


def crashes(of: str, parts: list[dict[str, Any]], part: str) -> list[tuple[str, str, str]]:
    """The figures of the crash enumerator, over all layouts of a format."""
    if not parts:
        return []
    totals = [one["total"] for one in parts]
    total = {key: sum(one[key] for one in totals) for key in totals[0]}
    return [
        (f"{of}histories of operations", count(total["histories"]), part),
        (f"{of}crash states checked", count(total["checked"]), part),
        (f"{of}of them distinct", count(total["distinct"]), part),
        (f"{of}second crashes, during recovery", count(total["second_checked"]), part),
    ]


def failed(*parts: dict[str, Any]) -> str:
    """How many storage calls were made to fail."""
    return count(sum(one["faults"] for part in parts for one in part["faults"].values()))


def count(number: int) -> str:
    """1234567 as 1,234,567."""
    return f"{number:,}"


def table(rows: list[tuple[str, str, str]]) -> str:
    """The figures as a Markdown table."""
    lines = ["| tried | count | part |", "|---|---|---|"]
    lines += [f"| {what} | {number} | `{part}` |" for what, number, part in rows]
    return "\n".join(lines) + "\n"


def document(results: dict[str, Any]) -> str:
    """docs/trust.md."""
    run = results.get("run", {})
    facts = ", ".join(f"{key}: {value}" for key, value in run.get("facts", {}).items())
    if run.get("minutes"):
        facts += f"; a long run of {sum(run['seconds'].values()) / 60:.0f} minutes"
    parts = [
        "# Trust: what is promised, and how it is proved",
        "",
        "Made by `make trust`, which runs everything below again; all counts and seeds are in",
        f"[trust.json](trust.json). This run: {facts}.",
        "",
        "`python scripts/trust/run.py --minutes N` is the long run, with new seeds every time. A",
        "crash state is the whole disk after a power cut: any subset of the unsynced sectors and",
        "directory changes. Nothing of what was acknowledged may be missing, nothing that was",
        "never appended may be there, and opening may not be refused. Then comes a second crash at",
        "every call of the recovery.",
        "",
        table(figures(results)),
        "## Promises",
        "",
        row_docs(),
        "| fault | outcome | proved by |",
        "|---|---|---|",
        *(promise(row) for row in ROWS),
        "",
        *wal_promises(results),
        "## Seeded bugs",
        "",
        "A test that cannot fail proves nothing. `python tests/mutants/run.py` puts each of these",
        "bugs into a copy of the sources and runs the tests that are to catch it.",
        "",
        "| bug | breaks the promise for | caught by |",
        "|---|---|---|",
        *(
            f"| {bug['name']} | {bug['row']} | `{bug['caught_by'] or 'NOT CAUGHT'}` |"
            for name in ("mutants", "mutants-wal", "mutants-log")
            for bug in results.get(name, {}).get("bugs", [])
        ),
        "",
    ]
    return "\n".join(parts)


def wal_promises(results: dict[str, Any]) -> list[str]:
    """The promises of the write-ahead log, once they were tried."""
    if not any(name.startswith("crash-wal") for name in results):
        return []
    columns = ["| fault | outcome | proved by |", "|---|---|---|"]
    rows = [promise(row) for row in WAL_ROWS]
    return ["## Promises of the write-ahead log", "", *columns, *rows, ""]


def row_docs() -> str:
    """The meaning of the outcomes' letters."""
    import rows

    text = (rows.__doc__ or "").split("Outcomes. ")[1].split("\n\n")[0]
    return text.replace("\n", " ") + "\n"


def promise(row: Row) -> str:
    """One line of the table of promises."""
    tests = ", ".join(f"`{test}`" for test in row.tests) or "**not proved**"
    return f"| {row.fault} | {row.outcome} | {tests}{' — ' + row.note if row.note else ''} |"


def missing_tests(root: Path) -> list[str]:
    """Tests that the table names and that are not there."""
    missing = []
    for test in (test for row in [*ROWS, *WAL_ROWS] for test in row.tests):
        kind, _, name = test.partition(":")
        if kind == "py":
            there = (root / "tests" / "python" / name).exists()
        elif kind == "power":
            there = name in (root / "examples" / "power").joinpath("main.rs").read_text()
        else:
            target, name = test.split("::")
            places = (
                ["src/**/*.rs"]
                if target == "lib"
                else [f"tests/{target}.rs", f"tests/{target}/*.rs"]
            )
            pattern = re.compile(rf"\bfn {name}\(")
            files = (file for place in places for file in root.glob(place))
            there = any(pattern.search(file.read_text()) for file in files)
        if not there:
            missing.append(test)
    return missing


if __name__ == "__main__":
    top = Path(__file__).resolve().parents[2]
    publish(top, json.loads((top / DATA).read_text()))
    sys.exit(1 if missing_tests(top) else 0)
