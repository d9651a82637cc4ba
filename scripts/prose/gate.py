"""The gate of the prose: plain sentences in pages, docstrings and comments.

    python scripts/prose/gate.py                 every file, as in `make check`
    python scripts/prose/gate.py docs/book.md    the sentences to rewrite, and the counts of a file
    python scripts/prose/gate.py --shrink        takes the files that pass off the list

A file passes with less than 1 % inverted sentences (beginning with What, Where, Of, Which ...), at
most 6 pronouns in 100 words, and no word of refused.txt. Code, tables and titles do not count.
pending.txt lists the files still to rewrite. A listed file that passes is an error, too: the list
can only shrink.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
HERE = Path("scripts/prose")
PAGES = r"(README|CONTRIBUTING|CHANGELOG|SECURITY)\.md|(docs|examples)/.*\.md|src/\w+/FORMAT\.md"
CODE = r".*\.(rs|py|pyi)"

INVERTED = {"what", "where", "of", "which", "those", "whatever", "whose", "else"}
PRONOUNS = {"it", "its", "that", "those", "these", "this", "one", "ones", "which", "what"}
PRONOUNS |= {"they", "them", "their", "such", "so"}
MAX_INVERTED, MAX_PRONOUNS = 0.01, 0.06  # of the sentences, of the words
FEWEST_WORDS = 100  # a shorter file may have as many pronouns as one of this length

WORDS_OF_A_NAME = 8
TEST = re.compile(
    r"#\[test\](?:\s*(?:#\[[^\]]*\]|//.*))*\s*fn (\w+)|^ *(?:async )?def test_(\w+)", re.M
)

QUOTED = re.compile(r"`[^`]*`|<[^<>]+>")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
NO_PROSE = re.compile(r"\s*(\||#|>>>|\.\.\. |:::|\[\S+\]: |-{3,}|={3,})")
END = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n|\n\s*(?:[-*]|\d+\.) ")
WORD = re.compile(r"[A-Za-z']+")


class Sentence(NamedTuple):
    line: int
    text: str

    @property
    def words(self) -> list[str]:
        return WORD.findall(self.text.lower())

    @property
    def pronouns(self) -> int:
        return sum(word in PRONOUNS for word in self.words)


def of_comments(text: str) -> list[str]:
    """Rust: the lines with nothing but a comment."""
    found = (re.match(r"\s*//[/!]?(?: (.*))?$", line) for line in text.splitlines())
    return [(one[1] or "") if one else "" for one in found]


def of_python(text: str) -> list[str]:
    """Docstrings, and lines with nothing but a comment."""
    lines = text.splitlines()
    kept = [one[1] if (one := re.match(r"\s*#:? (.*)$", line)) else "" for line in lines]
    for node in ast.walk(ast.parse(text)):
        value = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
            continue
        assert value.end_lineno is not None
        example = False
        for number in range(value.lineno - 1, value.end_lineno):
            line = lines[number].strip().removeprefix('r"""').replace('"""', "")
            example = bool(line) and (example or line.startswith(">>>"))  # its output, too
            kept[number] = "" if example else line
    return kept


def prose(path: str, text: str) -> str:
    """The prose of a file; every line stays where it is."""
    lines = text.splitlines()
    if path.endswith(".rs"):
        lines = of_comments(text)
    elif path.endswith((".py", ".pyi")):
        lines = of_python(text)
    fenced = False
    for number, line in enumerate(lines):
        fence = line.lstrip().startswith("```")
        lines[number] = "" if fence or fenced or NO_PROSE.match(line) else line
        fenced ^= fence

    def short(match: re.Match[str]) -> str:
        return "x" + "\n" * match[0].count("\n")

    def label(match: re.Match[str]) -> str:
        return match[1] + "\n" * (match[0].count("\n") - match[1].count("\n"))

    return LINK.sub(label, QUOTED.sub(short, "\n".join(lines)))


def sentences(path: str, text: str) -> Iterator[Sentence]:
    """The sentences with their lines. Sentences of less than four words are titles and labels."""
    of, begin = prose(path, text), 0
    for end in [*END.finditer(of), None]:
        part = of[begin : end.start() if end else len(of)]
        line = of.count("\n", 0, begin + len(part) - len(part.lstrip())) + 1
        begin = end.end() if end else 0
        one = Sentence(line, " ".join(part.split()))
        if len(one.words) >= 4:
            yield one


def refused(root: Path = ROOT) -> list[tuple[re.Pattern[str], str]]:
    """The refused words, and the better words."""
    found = []
    for line in (root / HERE / "refused.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            word, instead = re.split(r"\s{2,}", line)
            pattern = rf"\b{re.escape(word)}\b".replace(r"\*", r"\w*")
            found.append((re.compile(pattern, re.IGNORECASE), instead))
    return found


class Counts(NamedTuple):
    sentences: int
    inverted: int
    words: int
    pronouns: int

    def __str__(self) -> str:
        share = 100 * self.inverted / max(self.sentences, 1)
        pronouns = 100 * self.pronouns / max(self.words, 1)
        return f"{share:.1f} % of {self.sentences} inverted, {pronouns:.1f} pronouns in 100 words"


def judge(
    path: str, text: str, words: list[tuple[re.Pattern[str], str]]
) -> tuple[list[str], Counts]:
    """The complaints about a file, and its counts."""
    all_of = list(sentences(path, text))
    inverted = [one for one in all_of if one.words[0] in INVERTED]
    total = Counts(
        len(all_of),
        len(inverted),
        sum(len(one.words) for one in all_of),
        sum(one.pronouns for one in all_of),
    )
    said = []
    if len(inverted) >= MAX_INVERTED * max(len(all_of), 1 / MAX_INVERTED):
        said += [f"{path}:{one.line}: inverted: {one.text}" for one in inverted]
    if total.pronouns > MAX_PRONOUNS * max(total.words, FEWEST_WORDS):
        worst = sorted(all_of, key=lambda one: one.pronouns / (len(one.words) + 4), reverse=True)
        # Name enough sentences to bring the file below the limit.
        over = total.pronouns - MAX_PRONOUNS * total.words
        for one in worst:
            if over > 0:
                said.append(f"{path}:{one.line}: {one.pronouns} pronouns: {one.text}")
            over -= one.pronouns
    for test in TEST.finditer(text) if path.endswith((".rs", ".py")) else ():
        name = test[1] or test[2]
        if name.count("_") >= WORDS_OF_A_NAME:
            said.append(f"{path}:{text.count(chr(10), 0, test.end()) + 1}: long name: {name}")
    for one in all_of:
        for pattern, instead in words:
            if match := pattern.search(one.text):
                said.append(f"{path}:{one.line}: {match[0]}, better {instead}: {one.text}")
    return said, total


def files(root: Path = ROOT) -> list[str]:
    """The tracked files with prose."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=root, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    either = re.compile(f"{PAGES}|{CODE}")
    return [name for name in listed if either.fullmatch(name) and (root / name).exists()]


def check(root: Path, names: Iterable[str]) -> list[str]:
    """All complaints about the files and about the list of pending files."""
    pending = (root / HERE / "pending.txt").read_text().split()
    words, names, said = refused(root), list(names), []
    for name in names:
        complaints, _ = judge(name, (root / name).read_text(), words)
        if name not in pending:
            said += complaints
        elif not complaints:
            said.append(f"{name} passes: remove it from {HERE}/pending.txt")
    return said + [
        f"{name} is gone: remove it from {HERE}/pending.txt"
        for name in pending
        if name not in names
    ]


def shrink(root: Path, names: list[str]) -> None:
    """Remove passing and missing files from the list."""
    pending, words = root / HERE / "pending.txt", refused(root)
    still = [name for name in pending.read_text().split() if name in names]
    still = [name for name in still if judge(name, (root / name).read_text(), words)[0]]
    pending.write_text("".join(f"{name}\n" for name in still))


def main(arguments: list[str]) -> int:
    """Print the complaints; the exit code."""
    if arguments == ["--shrink"]:
        shrink(ROOT, files())
        arguments = []
    said = [] if arguments else check(ROOT, files())
    for name in arguments:
        complaints, counts = judge(name, (ROOT / name).read_text(), refused())
        said += complaints
        print(f"{name}: {counts}")
    print("\n".join(said))
    return bool(said)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
