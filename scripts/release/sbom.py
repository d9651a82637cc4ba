"""Make the list of materials (SBOM) of wheels name the linked crates, and no place of the build.

    python scripts/release/sbom.py WHEEL...            rewrite them
    python scripts/release/sbom.py --check WHEEL...    only look

maturin writes every crate of the lock file, also the crates for tests and other systems, and the
directory of the build. The script keeps the crates linked according to `cargo tree`, under names
without places.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

SBOM = re.compile(r".*\.dist-info/sboms/.*\.json")
OURS = re.compile(r"path\+file://[^\"]*?/?([a-z-]*)#(?:([a-z-]+)@)?([0-9][^\" ]*)")
PLACE = re.compile(r"file://")


def linked() -> set[tuple[str, str]]:
    """Name and version of each crate in the extension."""
    command = "cargo tree --locked -p deedbook-python -e normal,build --target all --prefix none"
    listed = subprocess.run(
        [*command.split(), "--format", "{p}"], capture_output=True, text=True, check=True
    )
    found = (line.split()[:2] for line in listed.stdout.splitlines() if line.strip())
    return {(name, version.removeprefix("v")) for name, version in found}


def cleaned(bill: dict[str, Any], crates: set[tuple[str, str]]) -> dict[str, Any]:
    """The bill of these crates alone, without places."""
    kept = [one for one in bill["components"] if (one["name"], one["version"]) in crates]
    refs = {one["bom-ref"] for one in kept} | {bill["metadata"]["component"]["bom-ref"]}
    graph = [
        {**one, "dependsOn": [ref for ref in one.get("dependsOn", []) if ref in refs]}
        for one in bill["dependencies"]
        if one["ref"] in refs
    ]
    text = json.dumps({**bill, "components": kept, "dependencies": graph})
    text = OURS.sub(lambda at: f"pkg:cargo/{at[2] or at[1] or 'deedbook'}@{at[3]}", text)
    text = re.sub(r"\?download_url=file://[^\"#]*", "", text)
    found: dict[str, Any] = json.loads(text)
    return found


def wrong_with(bill: bytes, crates: set[tuple[str, str]]) -> list[str]:
    """The errors of a bill, in words."""
    wrong = [f"a place of the build: {at}" for at in PLACE.findall(bill.decode())[:1]]
    listed = {(one["name"], one["version"]) for one in json.loads(bill)["components"]}
    strange, missing = sorted(listed - crates), sorted(crates - listed)
    wrong += [f"not linked: {name} {version}" for name, version in strange[:5]]
    ours = {"deedbook-python"}
    wrong += [f"left out: {name} {version}" for name, version in missing[:5] if name not in ours]
    return wrong


def rewrite(wheel: Path, crates: set[tuple[str, str]]) -> None:
    """Put the cleaned bills into a wheel, and the bills' hashes into the wheel's record."""
    with zipfile.ZipFile(wheel) as old:
        files = {info: old.read(info) for info in old.infolist()}
    changed = {}
    for info, content in files.items():
        if SBOM.fullmatch(info.filename):
            changed[info.filename] = json.dumps(cleaned(json.loads(content), crates)).encode()
    new = wheel.with_suffix(".new")
    with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as written:
        for info, content in files.items():
            content = changed.get(info.filename, content)
            if info.filename.endswith(".dist-info/RECORD"):
                content = recorded(content, changed)
            written.writestr(info, content, zipfile.ZIP_DEFLATED)
    new.replace(wheel)


def recorded(record: bytes, changed: dict[str, bytes]) -> bytes:
    """The RECORD of a wheel with the hashes of the changed files."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for name, digest, size in csv.reader(io.StringIO(record.decode())):
        if name in changed:
            hashed = base64.urlsafe_b64encode(hashlib.sha256(changed[name]).digest())
            digest, size = "sha256=" + hashed.rstrip(b"=").decode(), str(len(changed[name]))
        writer.writerow([name, digest, size])
    return out.getvalue().encode()


def main(words: list[str]) -> int:
    """Rewrite or check the wheels; the exit code."""
    only_look = "--check" in words
    crates, failed = linked(), 0
    for wheel in (Path(word) for word in words if word != "--check"):
        if not only_look:
            rewrite(wheel, crates)
        with zipfile.ZipFile(wheel) as read:
            bills = [name for name in read.namelist() if SBOM.fullmatch(name)]
            wrong = [one for name in bills for one in wrong_with(read.read(name), crates)]
        if not bills:
            wrong = ["no list of materials"]
        print(f"{wheel.name}: {'; '.join(wrong) if wrong else 'ok'}")
        failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
