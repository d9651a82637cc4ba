"""Filters choose tests by a program, or a module of it, and words of their names."""

from __future__ import annotations

import re

# The test target with the tests of pytest.
PYTHON = "python"


def failures(output: str) -> list[str]:
    """The failed tests with their modules, from the output of pytest or cargo-nextest."""
    of_python = re.findall(r"^(?:FAILED|ERROR) (\S+::\S+)", output, re.MULTILINE)
    of_rust = re.findall(r"^ *(?:FAIL|SIG\w+) \[.*\] (?:\(.*\) )?\S+ (\S+)$", output, re.MULTILINE)
    return list(dict.fromkeys(of_python or of_rust))


def out_of_time(output: str) -> list[str]:
    """The tests ended by cargo-nextest."""
    return re.findall(r"^ *TIMEOUT \[.*\] (?:\(.*\) )?\S+ (\S+)$", output, re.MULTILINE)


def program(target: str) -> str:
    """The program of ``engine::crash``."""
    return target.partition("::")[0]


def selected(name: str) -> list[str]:
    """The arguments for a program of the crate; ``lib`` is its unit tests."""
    return ["--lib"] if name == "lib" else ["--test", name]


def chosen(target: str, name: str) -> str:
    """The filter for the tests of a module with one of the words in the name."""
    module = target.partition("::")[2]
    within = f"test(/^{module}::/)" if module else "all()"
    words = " + ".join(f"test(~{word})" for word in name.split())
    return f"{within} & ({words})" if words else within
