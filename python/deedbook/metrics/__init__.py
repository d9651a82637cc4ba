"""Metrics of logs for Prometheus: their contents, and the appends and syncs of this process.

`text` returns Prometheus' text format and needs no other package. `Collector` is for the package
``prometheus-client``. The command ``deedbook metrics`` serves metrics from outside the writing
process.

A source is an open log, or a path. An open log also counts its appends and syncs. Each call opens a
path for reading.

>>> import deedbook, deedbook.metrics
>>> with deedbook.Wal.open("orders", "a") as orders:
...     orders.append(b"one")
...     print(deedbook.metrics.text({"orders": orders}).splitlines()[2])
0
deedbook_up{log="orders",format="wal"} 1
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from deedbook.metrics._families import CONTENT_TYPE, Family, in_text
from deedbook.metrics._logs import Source, families

if TYPE_CHECKING:
    from prometheus_client import Metric

__all__ = ["CONTENT_TYPE", "Collector", "Family", "Source", "families", "in_text", "text"]


def text(logs: Mapping[str, Source]) -> str:
    """The metrics of logs, each with its name as the label ``log``, in Prometheus' text format.

    A log that cannot be read has ``deedbook_up 0``, and the reason goes to the logger ``deedbook``.
    """
    return in_text(families(logs))


class Collector:
    """The metrics of `text` for ``prometheus_client``. Each scrape reads the logs.

    ``REGISTRY.register(Collector({"orders": orders, "events": "events.book"}))``
    """

    def __init__(self, logs: Mapping[str, Source]) -> None:
        self.logs = logs
        """Read at each scrape, so you may change the mapping."""

    def describe(self) -> list[Metric]:
        """Nothing, because a registration must not open a log."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The metrics. Raises nothing because of a log."""
        from prometheus_client import Metric

        for family in families(self.logs):
            name = family.name.removesuffix("_total") if family.kind == "counter" else family.name
            metric = Metric(name, family.help, family.kind)
            for sample in family.samples:
                metric.add_sample(sample.name, dict(sample.labels), sample.value)
            yield metric
