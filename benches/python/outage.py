"""A producer appends at a steady rate while the server fails and recovers: the counts, and a
picture.

python benches/python/outage.py [--seconds 60] PICTURE.svg
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clock import say
from spools import events

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RATE = 20_000
"""Events appended per second."""
RATE_MAX = 60_000
"""The sender's limit of events per second: low enough to see the catching up."""
TICK = 0.01
SAMPLE = 0.1
WINDOW = 5
"""Samples per rate."""

PHASES: list[tuple[float, str, dict[str, Any]]] = [
    (0.10, "", {}),
    (0.18, "503, Retry-After: 3", {"statuses": {503: 1.0}, "retry_after": "3"}),
    (0.16, "", {}),
    (0.14, "80 % of the requests reset", {"reset": 0.8}),
    (0.12, "", {}),
    (0.16, "no answers", {"stall": 1.0}),
    (0.14, "", {}),
]
"""Share of the time, behaviour of the server, and the faults that cause the behaviour."""


@dataclass
class Story:
    """The samples, with a value for each time."""

    times: list[float] = field(default_factory=list)
    appended: list[int] = field(default_factory=list)
    arrived: list[int] = field(default_factory=list)
    retries: list[int] = field(default_factory=list)
    outages: list[tuple[float, float, str]] = field(default_factory=list)
    """Begin, end and name of each outage."""
    requests: int = 0
    repeated: int = 0
    """Requests whose events had arrived before; the server recognizes them by their key."""

    def to_json(self) -> dict[str, Any]:
        """The totals."""
        return {
            "appended": self.appended[-1],
            "arrived": self.arrived[-1],
            "backlog_max": max(self.backlog()),
            "requests": self.requests,
            "retries": self.retries[-1],
            "arrived_twice": self.repeated,
        }

    def backlog(self) -> list[int]:
        """Events that wait."""
        return [a - b for a, b in zip(self.appended, self.arrived, strict=True)]

    def rates(self, counts: list[int]) -> list[float]:
        """Rates per second, over the last samples."""
        found = []
        for i, (now, count) in enumerate(zip(self.times, counts, strict=True)):
            first = max(i - WINDOW, 0)
            spent = now - self.times[first]
            found.append((count - counts[first]) / spent if spent else 0.0)
        return found


class Producer(threading.Thread):
    """Appends events at a steady rate until stopped."""

    def __init__(self, ledger: Any) -> None:
        super().__init__(daemon=True)
        self.ledger = ledger
        self.events = events(1000, 256, 1)
        self.appended = 0
        self.stopped = threading.Event()

    def run(self) -> None:
        begun = time.monotonic()
        while not self.stopped.wait(TICK):
            due = int((time.monotonic() - begun) * RATE)
            while self.appended < due:
                self.ledger.append(self.events[self.appended % len(self.events)])
                self.appended += 1


def story(path: Path, seconds: float) -> Story:
    """Run the phases, and check that every event arrives."""
    from deedbook import Ledger
    from deedbook.http import Policy, Rates, Sender

    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    from endpoint import Endpoint, Faults

    say(f"a server that fails and recovers, {seconds} s")
    seen = Story()
    with Ledger.open(path, "a") as ledger, Endpoint(keep=False) as endpoint:
        sender = Sender(
            ledger,
            endpoint.url,
            interval_seconds=0.25,
            read_seconds=1.0,
            policy=Policy(delay_seconds=0.25, delay_seconds_max=4.0),
            rates=Rates(events_per_second=RATE_MAX),
        )
        producer = Producer(ledger)
        begun = time.monotonic()

        def sample() -> float:
            seen.times.append(time.monotonic() - begun)
            # In this order, because an event is appended before it arrives.
            seen.arrived.append(endpoint.stats().events)
            seen.appended.append(producer.appended)
            seen.retries.append(sender.stats().retries)
            return seen.times[-1]

        with sender:
            producer.start()
            end = 0.0
            for share, name, faults in PHASES:
                start, end = end, end + share * seconds
                if name:
                    seen.outages.append((start, end, name))
                endpoint.faults = Faults(**faults, stall_seconds=seconds)
                while sample() < end:
                    time.sleep(SAMPLE)
            producer.stopped.set()
            producer.join()
            assert sender.drain(timeout_seconds=60), sender.stats()
            sample()
        stats = endpoint.stats()
        seen.requests, seen.repeated = stats.requests, stats.duplicates
        assert not ledger.has_data() and stats.events == producer.appended, stats
        assert sender.stats().events_dead == 0
    return seen


def draw(seen: Story, path: Path) -> None:
    """Backlog above rates above retries, as SVG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from deedbook._show.style import COLOURS, INK, STYLE

    blue, _, red, _, green, *_ = COLOURS
    # Without the salt and the missing date the file would differ each time.
    style: dict[Any, Any] = {**STYLE, "svg.hashsalt": "deedbook"}
    with plt.rc_context(style):
        figure, (upper, middle, lower) = plt.subplots(
            3, 1, figsize=(11, 7.5), height_ratios=(3, 3, 1.6), sharex=True, layout="constrained"
        )
        result = seen.to_json()
        figure.suptitle(
            f"{result['appended']:,} events appended, all arrived; {result['requests']:,} "
            f"requests, {result['retries']:,} of them again",
            fontweight="bold",
            color=INK,
        )
        upper.fill_between(seen.times, seen.backlog(), color=blue, alpha=0.25, linewidth=0)
        upper.plot(seen.times, seen.backlog(), color=blue, linewidth=1.5)
        upper.set_title("Events that wait in the ledger")
        middle.plot(seen.times, seen.rates(seen.arrived), color=green, linewidth=1.5)
        middle.plot(seen.times, seen.rates(seen.appended), color=INK, linewidth=1.2)
        top = 1.12 * max(seen.rates(seen.arrived))
        middle.set_ylim(0, top)
        middle.set_title(
            f"Events per second: arrived (green; the sender may send {RATE_MAX:,}), and appended"
        )
        lower.step(seen.times, seen.retries, color=red, linewidth=1.5, where="post")
        lower.set_title("Requests made again, in all")
        lower.set_xlabel("seconds")
        for axes in (upper, middle, lower):
            shade(axes, seen)
        for start, end, name in seen.outages:
            upper.text(
                (start + end) / 2,
                0.97,
                name,
                ha="center",
                va="top",
                transform=upper.get_xaxis_transform(),
            )
        upper.set_ylim(0, 1.25 * max(seen.backlog()))
        figure.savefig(path, format="svg", metadata={"Date": None})
        plt.close(figure)


def shade(axes: Axes, seen: Story) -> None:
    """Mark the outages."""
    from matplotlib.ticker import StrMethodFormatter

    from deedbook._show.style import COLOURS

    for start, end, _ in seen.outages:
        axes.axvspan(start, end, color=COLOURS[2], alpha=0.12, linewidth=0)
    axes.set_xlim(0, seen.times[-1])
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.grid(axis="y", color="#d8dee4", linewidth=0.6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="deedbook-bench-"))
    try:
        seen = story(place / "ledger", given.seconds)
    finally:
        shutil.rmtree(place)
    draw(seen, given.picture)
    print(seen.to_json())


if __name__ == "__main__":
    main()
