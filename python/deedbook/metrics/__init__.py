"""Metrics of logs for Prometheus: what they hold, and what this process did to them.

`text` gives them in Prometheus' text format, and needs nothing else installed; `Collector` hands
them to the package ``prometheus-client``. The command ``deedbook metrics`` serves them from outside
the process that writes.

A source is an open log, or a path. An open log also counts its appends and syncs. A path is opened
for reading whenever the metrics are asked for.

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
    """The same for ``prometheus_client``: register it, and every scrape has the logs as they are.

    ``REGISTRY.register(Collector({"orders": orders, "events": "events.book"}))``
    """

    def __init__(self, logs: Mapping[str, Source]) -> None:
        self.logs = logs
        """Looked up for each scrape, so it may change."""

    def describe(self) -> list[Metric]:
        """Nothing, so that no log is opened for being registered."""
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
