"""Merge the parts' results and write the published pages from them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from rows import ROWS, Row

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
    crashes = [part["total"] for name, part in results.items() if name.startswith("crash-")]
    if crashes:
        total = {key: sum(one[key] for one in crashes) for key in crashes[0]}
        found += [
            ("histories of operations", count(total["histories"]), "crash"),
            ("crash states checked", count(total["checked"]), "crash"),
            ("of them distinct", count(total["distinct"]), "crash"),
            ("second crashes, during recovery", count(total["second_checked"]), "crash"),
        ]
    if "faults" in results:
        tried = sum(one["faults"] for one in results["faults"]["faults"].values())
        found.append(("storage calls that failed, each in every way", count(tried), "faults"))
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
            system = name.removeprefix("power cuts, ")
            found.append((f"power cuts on {system}", count(one["cycles"]), "power"))
    if "fuzz" in results:
        targets = results["fuzz"]["targets"]
        execs = sum(target["execs"] for target in targets.values())
        found.append((f"inputs by {len(targets)} fuzzers", count(execs), "fuzz"))
    if "mutants" in results:
        mutants = results["mutants"]
        caught = f"{mutants['caught']} of {mutants['seeded']}"
        found.append(("seeded bugs caught", caught, "mutants"))
    return found


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
        "## Seeded bugs",
        "",
        "A test that cannot fail proves nothing. `python tests/mutants/run.py` puts each of these",
        "bugs into a copy of the sources and runs the tests that are to catch it.",
        "",
        "| bug | breaks the promise for | caught by |",
        "|---|---|---|",
        *(
            f"| {bug['name']} | {bug['row']} | `{bug['caught_by'] or 'NOT CAUGHT'}` |"
            for bug in results.get("mutants", {}).get("bugs", [])
        ),
        "",
    ]
    return "\n".join(parts)


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
    for test in (test for row in ROWS for test in row.tests):
        kind, _, name = test.partition(":")
        if kind == "py":
            there = (root / "tests" / "python" / name).exists()
        elif kind == "power":
            there = name in (root / "examples" / "power").joinpath("main.rs").read_text()
        else:
            target, name = test.split("::")
            files = root.glob("src/**/*.rs") if target == "lib" else [root / f"tests/{target}.rs"]
            pattern = re.compile(rf"\bfn {name}\(")
            there = any(file.exists() and pattern.search(file.read_text()) for file in files)
        if not there:
            missing.append(test)
    return missing


if __name__ == "__main__":
    top = Path(__file__).resolve().parents[2]
    publish(top, json.loads((top / DATA).read_text()))
    sys.exit(1 if missing_tests(top) else 0)
