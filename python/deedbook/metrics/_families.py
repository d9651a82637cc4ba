"""Metrics as values, and as Prometheus' text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from deedbook._show.text import escape_steering

__all__ = ["CONTENT_TYPE", "Family", "Sample", "in_text"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of `deedbook.metrics.text`, for an HTTP server."""


class Sample(NamedTuple):
    """A value with labels."""

    name: str
    """The family's name. A histogram adds ``_bucket``, ``_sum`` or ``_count``."""
    labels: Mapping[str, str]
    """Names and values, such as the log's name."""
    value: float
    """The number."""


class Family(NamedTuple):
    """All values of a metric."""

    name: str
    """The name, with the prefix ``deedbook_``."""
    kind: Literal["gauge", "counter", "histogram"]
    """The type in Prometheus."""
    help: str
    """The meaning, in a sentence."""
    samples: list[Sample]
    """The values, by their labels."""


def in_text(families: Iterable[Family]) -> str:
    """Metrics in Prometheus' text format, version 0.0.4."""
    lines = []
    for family in families:
        lines.append(f"# HELP {family.name} {_escaped(family.help)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        lines += [f"{_series(sample)} {number(sample.value)}" for sample in family.samples]
    return "".join(f"{line}\n" for line in lines)


def number(value: float) -> str:
    """A number in the text format. Whole numbers have no fraction."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(value)


def _series(sample: Sample) -> str:
    labels = ",".join(
        '{}="{}"'.format(name, _escaped(value).replace('"', '\\"'))
        for name, value in sample.labels.items()
    )
    return f"{sample.name}{{{labels}}}"


def _escaped(text: str) -> str:
    # Stray bytes of a path have no place in UTF-8. A text may be shown by a terminal.
    shown = escape_steering(text.encode("utf-8", "backslashreplace").decode("utf-8"))
    return shown.replace("\\", "\\\\").replace("\n", "\\n")
