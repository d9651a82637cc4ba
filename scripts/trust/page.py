"""The published pages, from the results of one run, the promises and their markers."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import markers

DOCUMENT = "docs/trust.md"
DATA = "docs/trust.json"
INDEX = "docs/index.md"
# The figures of the first screen, and the first screen's names for the figures.
NUMBERS = {
    "crash states opened and judged": "crash states",
    "writers killed with SIGKILL": "writers killed",
    "storage calls that failed, each in 7 ways": "storage calls",
}
# The names in power.json of the parts of scripts/power.sh.
POWER = {
    "cuts": "power cuts",
    "full": "full disk",
    "readonly": "read-only",
    "shim": "shim",
    "strace": "strace",
}


def publish(root: Path, results: dict[str, Any]) -> None:
    """Write docs/trust.json and docs/trust.md, and the figures in docs/index.md."""
    text = json.dumps(results, indent=1, sort_keys=True) + "\n"
    (root / DATA).write_text(text)
    results = json.loads(text)  # in the order in which the pages are checked
    (root / DOCUMENT).write_text(document(root, results))
    index = root / INDEX
    index.write_text(with_numbers(index.read_text(), figures(results)))
    print(f"wrote {DATA}, {DOCUMENT}, and the figures in {INDEX}")


def with_numbers(text: str, rows: list[tuple[str, str, str]]) -> str:
    """A first screen with the three numbers taken from the figures."""
    numbers = {what: number.split(", ")[0] for what, number, _ in rows}
    for what, words in NUMBERS.items():
        if what in numbers:
            pattern = rf"\*\*[\d,]+(?: of \d+)? {words}\*\*"
            text = re.sub(pattern, f"**{numbers[what]} {words}**", text)
    return text


def figures(results: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The tried events, the counts, and the part of the command for each."""
    found: list[tuple[str, str, str]] = []
    for of, format_name in (("", "book"), ("WAL: ", "wal"), ("Event store's log: ", "nostr")):
        found += crashes(
            of, [p for n, p in results.items() if n.startswith(f"crash-{format_name}")]
        )
        faults = [part for name, part in results.items() if is_faults_of(name, format_name)]
        if faults:
            found.append(failed(of, faults))
    if "ledger-crash" in results:
        crash = results["ledger-crash"]
        found += [
            ("Ledger: histories of operations", count(crash["histories"]), "ledger"),
            ("Ledger: crash states opened and judged", count(crash["power_cuts"]), "ledger"),
            ("Ledger: crashes again in a fetch", count(crash["second_power_cuts"]), "ledger"),
        ]
    found += of_store(results)
    if "damage-cuts" in results:
        found.append(("logs cut at one byte more", count(results["damage-cuts"]["cuts"]), "damage"))
    if "damage-flips" in results:
        found.append(("single bits flipped", count(results["damage-flips"]["flips"]), "damage"))
    if "ledger-flips" in results:
        found.append(
            ("Ledger: single bits flipped", count(results["ledger-flips"]["flips"]), "ledger")
        )
    if "kill" in results:
        found.append(("writers killed with SIGKILL", count(results["kill"]["cycles"]), "kill"))
        if slots := results["kill"].get("slots_cycles"):
            found.append(("slots: writers killed with SIGKILL", count(slots), "kill"))
    for name, one in results.get("power", {}).get("parts", {}).items():
        if name.startswith("power cuts") and "cycles" in one:
            system, _, layout = name.removeprefix("power cuts, ").partition(", wal ")
            system = system.removesuffix(", slots")
            what = f"WAL: power cuts on {system}, {layout}" if layout else f"power cuts on {system}"
            if name.endswith(", slots"):
                what = f"slots: {what}"
            found.append((what, count(one["cycles"]), "power"))
    if "fuzz" in results:
        targets = results["fuzz"]["targets"]
        execs = sum(target["execs"] for target in targets.values())
        found.append((f"inputs by {len(targets)} fuzzers", count(execs), "fuzz"))
    if "stories" in results:
        stories = results["stories"]
        caught = f"{stories['caught']} of {stories['stories']}"
        found.append(("seeded stories caught", caught, "stories"))
    return found


def of_store(results: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The figures of the event store as a whole."""

    def all_of(prefix: str) -> list[dict[str, Any]]:
        return [one for name, one in results.items() if name.startswith(prefix)]

    def total(parts: list[dict[str, Any]], key: str) -> str:
        return count(sum(part[key] for part in parts))

    found: list[tuple[str, str, str]] = []
    if crash := all_of("store-crash-"):
        states = (
            f"{total(crash, 'power_cuts')}, {total(crash, 'distinct_power_cuts')} of them distinct"
        )
        found += [
            ("Event store: histories of operations", total(crash, "histories"), "store"),
            ("Event store: crash states opened and judged", states, "store"),
            (
                "Event store: crashes again at a call of that opening",
                total(crash, "second_power_cuts"),
                "store",
            ),
        ]
    if mend := all_of("store-mend-"):
        what = "Event store: crash states of repairs and salvages, mended and judged"
        cuts = sum(part["power_cuts"] + part["second_power_cuts"] for part in mend)
        found.append((what, count(cuts), "store"))
    if faults := all_of("store-faults"):
        what = f"Event store: storage calls that failed, in {faults[0]['ways']} ways by turns"
        found.append((what, total(faults, "calls"), "store"))
    if kills := all_of("store-kill-"):
        found.append(
            ("Event store: processes killed with SIGKILL", total(kills, "cycles"), "store")
        )
    return found


def is_faults_of(name: str, of: str) -> bool:
    """Whether a result comes from the fault loops of a format."""
    return name.startswith(f"faults-{of}")


def crashes(of: str, parts: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """The figures of the crash enumerator, over all layouts of a format."""
    if not parts:
        return []
    totals = [one["total"] for one in parts]
    total = {key: sum(one[key] for one in totals) for key in totals[0]}

    def distinct(all_of: str, of_them: str) -> str:
        return f"{count(total[all_of])}, {count(total[of_them])} of them distinct"

    return [
        (f"{of}histories of operations", count(total["histories"]), "crash"),
        (
            f"{of}crash states opened and judged",
            distinct("power_cuts", "distinct_power_cuts"),
            "crash",
        ),
        (
            f"{of}crashes again at a call of that opening, opened and judged",
            distinct("second_power_cuts", "distinct_second_power_cuts"),
            "crash",
        ),
    ]


def failed(of: str, parts: list[dict[str, Any]]) -> tuple[str, str, str]:
    """The number of failed storage calls. A call counts once, in however many ways it failed."""
    calls = sum(max(one["faults"] for one in part["faults"].values()) for part in parts)
    ways = max(len(part["faults"]) for part in parts)
    return (f"{of}storage calls that failed, each in {ways} ways", count(calls), "faults")


def count(number: int) -> str:
    """1234567 as 1,234,567."""
    return f"{number:,}"


def table(rows: list[tuple[str, str, str]]) -> str:
    """The figures as a Markdown table."""
    lines = ["| tried | count | part |", "|---|---|---|"]
    lines += [f"| {what} | {number} | `{part}` |" for what, number, part in rows]
    return "\n".join(lines) + "\n"


def document(root: Path, results: dict[str, Any]) -> str:
    """docs/trust.md."""
    run = results.get("run", {})
    facts = ", ".join(f"{key}: {value}" for key, value in run.get("facts", {}).items())
    if run.get("minutes"):
        seconds = sum(part["seconds"] for part in run["parts"].values())
        facts += f"; a long run of {seconds / 60:.0f} minutes"
    parts = [
        "# Trust: what is promised, and how it is proved",
        "",
        "`make trust` runs every proof below again, and writes this page. [trust.json](trust.json)",
        f"has all counts and seeds. The last run: {facts}. All figures are of this commit: a part",
        "of an earlier run stands if its inputs are unchanged (`scripts/trust/inputs.py`). Results",
        "of another commit, or with a failure, are not published. Promises and proofs are those of",
        "the sources next to this page, so the run may lack newer tests. Seeded bugs have",
        "[a page of their own](seeded-bugs.md).",
        "",
        *([run["note"], ""] if run.get("note") else []),
        "`python scripts/trust/run.py --minutes N` is the long run, with new seeds every time. A",
        "crash state is the whole disk after a power cut: any subset of the unsynced sectors and",
        "directory changes. No acknowledged record may be missing, no foreign record may appear,",
        "and opening must succeed. For some of the states, the run crashes the opening",
        "again at each of its calls, opens the result, and judges it.",
        "",
        table(figures(results)),
        markers.outcomes(root) + "\n",
        *promises(root, results),
    ]
    return "\n".join(parts)


def promises(root: Path, results: dict[str, Any]) -> list[str]:
    """The tables of promises."""
    skipped, proofs = skips(results), markers.proofs(root)
    lines = []
    for section in markers.sections(root):
        lines += [f"## {section.heading}", "", "| fault | outcome | proved by |", "|---|---|---|"]
        lines += [promise(one, proofs.get(one.name, []), skipped) for one in section.promises]
        lines += [""]
    return lines


def skips(results: dict[str, Any]) -> dict[str, str]:
    """The tests skipped by this run, by their names in markers, and the reasons."""
    found: dict[str, str] = {}
    for part in results.get("run", {}).get("parts", {}).values():
        found.update(part["skipped"])
    for name, why in results.get("power", {}).get("skipped", {}).items():
        for short, long in POWER.items():
            if name.startswith(long):
                found[f"power:{short}"] = why
    return found


def promise(one: markers.Promise, tests: list[str], skipped: dict[str, str]) -> str:
    """One line of the table of promises. A skipped test proves nothing."""
    ran = [f"`{test}`" for test in tests if test not in skipped]
    proved = ", ".join(ran) or "**not proved**"
    left = "; ".join(f"skipped: `{test}`, {skipped[test]}" for test in tests if test in skipped)
    notes = "".join(f" — {note}" for note in (one.note, left) if note)
    return f"| {one.fault} | {one.outcome} | {proved}{notes} |"


def python_files(root: Path) -> list[str]:
    """The paths in the repository of the Python test files that prove a promise."""
    tests = [test for proofs in markers.proofs(root).values() for test in proofs]
    names = {test.split(":")[1] for test in tests if test.startswith("py:")}
    files = [file for file in markers.python_tests(root) if file.name in names]
    return [file.relative_to(root).as_posix() for file in files]


if __name__ == "__main__":
    top = Path(__file__).resolve().parents[2]
    publish(top, json.loads((top / DATA).read_text()))
    sys.exit("\n".join(markers.wrong(top)))
