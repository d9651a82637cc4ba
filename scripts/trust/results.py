"""The results of a run of the proofs: the parts, the commit of each, and the skipped tests."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

# Files made from the proofs, not inputs of the proofs.
MADE = {"docs/trust.json", "docs/trust.md", "docs/index.md"}
RUN = "run"
SKIPPED_PY = re.compile(r"^SKIPPED \[\d+\] tests/python/(?:\w+/)*([\w.]+):\d+: (.*)$")


class Stale(Exception):
    """Results that must not be published."""


def commit_of(root: Path) -> str:
    """The commit of the sources, with ``-changed`` for changed sources."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, check=False
        )
        return done.stdout

    changed = {line[3:] for line in git("status", "--porcelain").splitlines()}
    return git("rev-parse", "HEAD").strip()[:12] + ("-changed" if changed - MADE else "")


def skipped_in(output: str) -> dict[str, str]:
    """The Python tests skipped by pytest, by file, and the reasons."""
    lines = (SKIPPED_PY.match(line) for line in output.splitlines())
    return {f"py:{line[1]}": line[2] for line in lines if line}


def skipped_by(junit: Path, since: float) -> dict[str, str]:
    """The Rust tests with ``skipped: WHY`` in a run of nextest, by their names in markers."""
    if not junit.exists() or junit.stat().st_mtime < since:
        return {}
    found = {}
    for case in ElementTree.parse(junit).getroot().iter("testcase"):
        program = case.get("classname", "").rpartition("::")[2]
        *modules, name = case.get("name", "").split("::")
        said = re.search(r"^skipped: (.*)$", case.findtext("system-out") or "", re.MULTILINE)
        if said:
            found["::".join([program, *modules[:1], name])] = said[1]
    return found


def failures_in(result: Any) -> bool:
    """Whether a part counted failures, however well it ended."""
    if isinstance(result, dict):
        own = result.get("failures")
        return bool(own) or any(failures_in(one) for one in result.values())
    return isinstance(result, list) and any(failures_in(one) for one in result)


def read(trust: Path) -> dict[str, Any]:
    """All results below a directory, by file name."""
    return {file.stem: json.loads(file.read_text()) for file in sorted(trust.glob("*.json"))}


def merge(trust: Path, commit: str, wanted: Mapping[str, str]) -> dict[str, Any]:
    """The results to publish: every part was run, of this commit, without a failure.

    ``wanted`` has the present inputs of each part. A part of an earlier commit stands with the same
    inputs.
    """
    results = read(trust)
    run = results.get(RUN, {})
    parts = run.get("parts", {})
    if commit.endswith("-changed"):
        raise Stale("the sources differ from the commit: commit first")
    for name in wanted:
        part = parts.get(name)
        if part is None:
            raise Stale(f"part {name} was not run")
        if part["commit"] != commit and part.get("inputs") != wanted[name]:
            raise Stale(f"part {name} is of commit {part['commit']}, the sources are of {commit}")
        if part["code"] != 0:
            raise Stale(f"part {name} failed")
    written = [file for name in wanted for file in parts[name]["results"]]
    for name in written:
        if name not in results:
            raise Stale(f"the result {name} is gone")
        if failures_in(results[name]):
            raise Stale(f"the result {name} has failures")
    return {name: results[name] for name in [*written, RUN]}
