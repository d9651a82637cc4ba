"""Pages agree with the files that they describe, and are complete."""

import importlib
import json
import re
import sys
from functools import cache
from pathlib import Path

import pytest

import deedbook
from deedbook import _errors
from doc_blocks import blocks

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def sections(page: str, level: str) -> dict[str, str]:
    text = (DOCS / page).read_text()
    parts = re.split(rf"^{level} (.+)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_errors_page_shows_every_error_being_raised() -> None:
    found = sections("errors.md", "###")
    for name in set(_errors.__all__) - {"Error"}:
        assert f"deedbook.{name}: " in found.get(name, ""), name


def test_recovery_has_an_entry_for_every_verdict() -> None:
    stub = Path(deedbook.__file__).with_name("_core.pyi").read_text()
    verdicts = re.search(r"^_Verdict = Literal\[(.*)\]", stub, re.MULTILINE)
    assert verdicts is not None
    found = sections("recovery.md", "###")
    for verdict in re.findall(r'"(\w+)"', verdicts[1]):
        assert "```" in found.get(verdict, ""), verdict


def test_every_public_name_is_in_the_reference() -> None:
    pages = "".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    shown = re.findall(r"^::: deedbook\.(\w+)$", pages, re.MULTILINE)
    assert sorted(shown) == sorted(set(deedbook.__all__) - {"__version__"})


def test_durability_page_figures_are_in_their_sources() -> None:
    page = (DOCS / "durability.md").read_text()
    rows = re.findall(r"^\|[^|]*\|([^|]*)\|([^|]*)\| \[.*\]\(\.\./(.*)\) \|$", page, re.MULTILINE)
    assert len(rows) >= 10
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "k/s": 1e3, "M/s": 1e6}
    names = re.findall(r"^\| ([^|]*) \| [\d.]+ [kM]/s", page, re.MULTILINE)
    for name, (rate, each, source) in zip(names, rows, strict=True):
        text = (ROOT / source).read_text()
        assert rate.strip().removesuffix("/s").strip() in text, (rate, source)
        waiting = re.search(r"of ([\d,]+) (?:threads|asyncio tasks)", name)
        many = int(waiting[1].replace(",", "")) if waiting else 1
        (per, of_rate), (took, of_time) = rate.split(), each.split()
        mean = many / (float(per) * units[of_rate])
        assert float(took) * units[of_time] == pytest.approx(mean, rel=0.005), name


def test_rust_page_links_to_the_generated_rustdoc() -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    site = importlib.import_module("site_pages")
    shown = site.for_site((DOCS / "rust.md").read_text(), "rust.md")
    assert f'<a href="{site.RUSTDOC}">' in shown
    folder, crate = site.RUSTDOC.split("/")[:2]
    recipe = (ROOT / "Makefile").read_text().split("\ndocs: ")[1].split("\n\n")[0]
    assert crate == "deedbook" and "cargo doc" in recipe.partition("mkdocs build")[0]
    made = '"$${CARGO_TARGET_DIR:-target}/doc"'
    assert recipe.rstrip().endswith(f"cp -r {made} target/site/{folder}")


def test_durability_page_waits_match_the_measurement() -> None:
    measured = json.loads((ROOT / "benches" / "results" / "rust.json").read_text())
    row = r"^\| ([\w, ]+) \| ([\d.]+) us \| ([\d.]+) us \| ([\d.]+) ms \| (\d+) \| (\d+) \|$"
    rows = re.findall(row, (DOCS / "durability.md").read_text(), re.MULTILINE)
    assert len(rows) == 3
    for log, half, most, longest, long, syncs in rows:
        found = measured[f"waits: {log}, syncs of 20 ms, beside sync"]
        assert (float(half), float(most)) == (found["median_us"], found["p99_us"])
        assert float(longest) == round(found["longest_us"] / 1000, 1)
        assert (int(long), int(syncs)) == (found["over_10_ms"], found["rounds"])


def test_formats_page_quotes_the_whole_toy() -> None:
    """Change both together: the page quotes the whole file, in parts."""
    quoted = [block.text for block in blocks(DOCS / "format.md", "rust")]
    assert len(quoted) == 4
    assert "\n".join(quoted) == (ROOT / "examples" / "rust" / "toy.rs").read_text()


def test_every_path_that_a_page_names_is_there() -> None:
    """Paths in backticks, relative to the repository, must exist."""
    named = re.compile(r"`((?:src|docs|scripts|tests|benches|capi|examples|fuzz|python)/[^`\s]*)`")
    count = 0
    for page in (*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("src/*/FORMAT.md")):
        for path in named.findall(page.read_text()):
            count += 1
            assert (ROOT / path).exists() or [*ROOT.glob(path)], f"{page.name}: {path}"
    assert count > 40


README = ROOT / "README.md"


def base() -> str:
    found = re.search(r"^site_url: (\S+)", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def test_readme_links_work_in_checkout_and_site() -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    host, site = importlib.import_module("host"), importlib.import_module("site_pages")
    brought = set(site.outside().values())
    links = re.findall(r"\]\(([^)]+)\)", README.read_text())
    assert len(links) > 15 and all((ROOT / link).exists() for link in links)
    places = host.Places("https://deedbook.test/docs/", "https://deedbook.test/code")
    moved = re.findall(r"\]\(([^)]+)\)", host.with_links(README.read_text(), places))
    for link, to in zip(links, moved, strict=True):
        if to == f"{places.repository}/blob/HEAD/{link}":
            continue  # no page of the site
        place = to.removeprefix(places.site)
        page = place.removesuffix(".html") + ".md" if place.endswith(".html") else place
        assert page in brought or (DOCS / page).exists(), (link, to)


def test_files_share_one_site_address_and_move_together(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    host = importlib.import_module("host")
    site, repository = host.wanted()
    assert site == base() and host.rewritten() == {}
    assert f'Documentation = "{site}"' in (ROOT / "pyproject.toml").read_text()
    assert f'homepage = "{site}"\n' in (ROOT / "Cargo.toml").read_text()
    assert f'repository = "{repository}"\n' in (ROOT / "Cargo.toml").read_text()
    template = ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml"
    assert f"url: {site}recovery.html" in template.read_text()
    elsewhere = "https://deedbook.test/docs/", "https://deedbook.test"  # one is the other's prefix
    for name in (*host.FILES, "mkdocs.yml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    settings = tmp_path / "mkdocs.yml"
    text = settings.read_text().replace(site, elsewhere[0]).replace(repository, elsewhere[1])
    settings.write_text(text)
    assert host.main(["--check"], tmp_path) == 1
    assert host.main([], tmp_path) == 0 and host.written(tmp_path) == elsewhere
    assert host.main(["--check"], tmp_path) == 0
    for name in host.FILES:
        moved, kept = (tmp_path / name).read_text(), (ROOT / name).read_text()
        assert site not in moved and repository not in moved, name
        assert name == "README.md" or moved.count(elsewhere[0]) == kept.count(site), name
    links = re.findall(r"\]\(([^)]+)\)", (tmp_path / "README.md").read_text())
    assert len(links) > 15 and all(link.startswith("https://deedbook.test") for link in links)


def test_proof_numbers_match_the_last_run() -> None:
    text = (DOCS / "index.md").read_text().split("## How it is proved\n")[1].split("\n## ")[0]
    counts = re.findall(r"\*\*([\d,]+(?: of \d+)?)", text)
    table = (DOCS / "trust.md").read_text().split("| tried | count |")[1]
    assert len(counts) == 3
    assert all(count in table for count in counts)


def test_the_figures_of_reopening_are_those_measured() -> None:
    figures = json.loads((ROOT / "benches" / "results" / "python.json").read_text())["figures"]
    text = " ".join((DOCS / "opening.md").read_text().split())
    found = re.search(
        r"a book opens in (\d+) ms for reading, and in (\d+) ms for appending.*?"
        r"SQLite takes ([\d.]+) ms, and LMDB ([\d.]+) ms",
        text,
    )
    assert found is not None
    after = {name: row["median"] for name, row in figures["reopen after kill -9"].items()}
    reading = figures["reopen after kill -9, for reading"]["deedbook"]["median"]
    wanted = (reading, after["deedbook"], after["sqlite3 (WAL)"], after["py-lmdb"])
    assert list(map(float, found.groups())) == [
        round(value, 0 if value > 5 else 1) for value in wanted
    ]


def test_the_cost_of_checking_lines_is_that_measured() -> None:
    measured = (ROOT / "benches" / "results" / "append.md").read_text()
    row = re.search(
        r"^\| `none` \|[^|]*\|[^|]*\| ([\d.]+) \|[^|]*\|[^|]*\| ([\d.]+) \|$", measured, re.M
    )
    text = " ".join((DOCS / "shell.md").read_text().split())
    found = re.search(
        r"it takes about ([\d.]+) times as many lines for a second of processor", text
    )
    assert row is not None and found is not None and found[1] == row[2]
    assert min(map(float, row.groups())) > 0.5  # the check must not halve the speed


def test_readme_is_short_and_matches_the_first_page() -> None:
    text, index = README.read_text(), (DOCS / "index.md").read_text()
    assert len(text.splitlines()) <= 90
    assert text.split("\n\n")[:2] == index.split("\n\n")[:2]
    assert blocks(README, "python")[0].text == blocks(DOCS / "index.md", "python")[0].text


def test_the_chart_is_made_from_the_results() -> None:
    sys.path.insert(0, str(ROOT / "benches" / "python"))
    first_minute = importlib.import_module("first_minute")
    results = json.loads(first_minute.SOURCE.read_text())
    assert first_minute.CHART.read_text() == first_minute.chart(results)
    del results["figures"]["iterate as bytes"]["py-lmdb"]
    assert first_minute.chart(results).count("not measured") == 1


def test_options_of_the_crate_may_grow() -> None:
    """A new field would break every program that names all fields."""
    # One macro makes the options of books and write-ahead logs.
    places = ("log/options", "book/lmdb/options", "ledger/options", "retention")
    places += ("nostr/pages/options", "nostr/log/wal_options", "nostr/bulk/import")
    for place in places:
        text = (ROOT / "src" / f"{place}.rs").read_text()
        kept = re.findall(r"#\[non_exhaustive\]\n *pub struct (?:\w*Options|Retention) ", text)
        assert len(kept) == 1 == len(re.findall(r"pub struct (?:\w*Options|Retention) ", text)), (
            place
        )


NAMING = ["docs/track-record.md", "docs/seeded-bugs.md", "docs/architecture.md", "docs/promises.md"]
NAMING += ["docs/threats.md", "CONTRIBUTING.md"]
NAMING += [str(page.relative_to(ROOT)) for page in ROOT.glob("src/*/FORMAT.md")]
FILE = re.compile(r"[\w./-]+\.(?:rs|pyi?|sh|c|txt|toml|md)")
PROGRAM = r"(?:lib|capi|book|engine|ledger|nostr|process|python|texts|wal)(?:::\w+)*"
# A file, then items in it: `src/a.rs` (`b`, `c`), or `src/a.rs`: `b`, `c`.
ITEMS = re.compile(r"`([\w./-]+)`(?:: | \()(`\w+`(?:, `\w+`)*)")
KINDS = r"(?:fn|struct|enum|trait|class|def|const|static|type)"
ITEM = KINDS + r" {0}\b|\b{0}: |\"{0}\"|derive.*\b(?i:{0})\b"


@cache
def functions(program: str) -> set[str]:
    sys.path.insert(0, str(ROOT / "scripts"))
    folders = importlib.import_module("conformance").FOLDERS
    first, *rest = program.split("::")
    top = ROOT.joinpath(folders.get(first, f"tests/{first}"), *rest)
    files = [*top.parent.glob(f"{top.name}.rs"), *top.rglob("*.rs"), *top.rglob("test_*.py")]
    return {name for file in files for name in re.findall(r"(?:fn|def) (\w+)", file.read_text())}


def lacking(page: str, text: str) -> list[str]:
    """The files, items and tests that a page names, and the repository lacks."""
    python = {file.name: file.read_text() for file in ROOT.glob("tests/**/test_*.py")}
    is_list = page in NAMING[:2]
    wrong = []
    for code in re.findall(r"`([^`\n]+)`", text):
        file, _, test = code.partition("::")
        is_wrong = False
        if FILE.fullmatch(file) and test:
            is_wrong = f"def {test}(" not in python.get(file, "")
        elif FILE.fullmatch(file):
            is_wrong = ("/" in file or is_list) and not (ROOT / file).is_file()
        elif is_list and (named := re.fullmatch(rf"({PROGRAM})(?: |::)([\w:]*_.*)", code)):
            tests = re.sub(r"\[.*\]|\(by \d+\)|\w+::", "", named[2]).split()
            is_wrong = not functions(named[1]).issuperset(tests)
        wrong += [code] * is_wrong
    for file, names in ITEMS.findall(text):
        source = (ROOT / file).read_text() if (ROOT / file).is_file() else ""
        items = re.findall(r"\w+", names) if source else []
        wrong += [f"{file}: {each}" for each in items if not re.search(ITEM.format(each), source)]
    return wrong


@pytest.mark.parametrize("page", NAMING)
def test_files_items_and_tests_that_pages_name_exist(page: str) -> None:
    assert lacking(page, (ROOT / page).read_text()) == []


def test_each_story_names_tests_that_exist() -> None:
    lines = (ROOT / "tests/stories.txt").read_text().splitlines()
    for line in filter(lambda line: "|" in line and not line.startswith("#"), lines):
        name, _, program, words = re.split(r" +\| +", line)
        parts = words.split()
        known = functions(program)
        if program == "python":
            (file,) = ROOT.glob(f"tests/python/**/{parts.pop(0)}*")
            known = set(re.findall(r"def (\w+)", file.read_text()))
        for part in parts:
            test = re.sub(r"\[.*", "", part).rpartition("::")[2]
            is_module = any(ROOT.glob(f"tests/**/{test}.rs"))
            assert is_module or any(test in one for one in known), f"{name}: no test {part}"


def test_a_page_with_a_wrong_name_fails() -> None:
    wrong = ["src/log/no.rs", "test_pages.py::test_no", "engine::log no_test", "lib::log::no_test"]
    wrong += ["src/ground/lines.rs: locked_no"]
    text = (
        " ".join(f"`{code}`" for code in wrong[:-1])
        + " `src/ground/lines.rs` (`locked`, `locked_no`)"
    )
    assert lacking(NAMING[0], text) == wrong
