"""The clock, the figures, and the progress lines."""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass, field
from typing import Any


def say(text: str) -> None:
    """A progress line on stderr."""
    print(text, file=sys.stderr, flush=True)


def human(value: float) -> str:
    """A count in three digits."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g}"


class Watch:
    """Wall and processor time from its making on."""

    def __init__(self) -> None:
        self.cpu = time.process_time()
        self.wall = time.perf_counter()

    def stop(self) -> tuple[float, float]:
        """Seconds of wall and processor time."""
        wall = time.perf_counter() - self.wall
        return wall, time.process_time() - self.cpu


@dataclass
class Figure:
    """The repetitions of one measurement of one store; the processor's time tells on a busy
    machine how much of the wall time was waiting."""

    unit: str
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    failed: str | None = None

    @property
    def median(self) -> float | None:
        return statistics.median(self.wall) if self.wall else None

    @property
    def median_by_cpu(self) -> float | None:
        return statistics.median(self.cpu) if self.cpu else None

    def to_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"unit": self.unit, "median": rounded(self.median)}
        shown["runs"] = [rounded(value) for value in self.wall]
        if self.cpu:
            shown["median_by_cpu_time"] = rounded(self.median_by_cpu)
        if self.failed:
            shown["failed"] = self.failed
        return shown


def rounded(value: float | None) -> float | None:
    """Four digits are more than a measurement has."""
    return None if value is None else float(f"{value:.4g}")


class Figures:
    """All figures of a run: measurement, then store."""

    def __init__(self) -> None:
        self.by: dict[str, dict[str, Figure]] = {}

    def of(self, measure: str, store: str, unit: str) -> Figure:
        return self.by.setdefault(measure, {}).setdefault(store, Figure(unit))

    def rate(self, measure: str, store: str, count: int, watch: Watch) -> None:
        """Note `count` things done since the watch began."""
        wall, cpu = watch.stop()
        figure = self.of(measure, store, "per s")
        figure.wall.append(count / wall)
        figure.cpu.append(count / max(cpu, 1e-9))
        say(f"  {measure}: {store}: {human(count / wall)}/s")

    def span(self, measure: str, store: str, watch: Watch) -> None:
        """Note the time since the watch began."""
        wall, cpu = watch.stop()
        figure = self.of(measure, store, "ms")
        figure.wall.append(wall * 1e3)
        figure.cpu.append(cpu * 1e3)
        say(f"  {measure}: {store}: {wall * 1e3:.3g} ms")

    def value(self, measure: str, store: str, value: float, unit: str) -> None:
        """Note a value that is no time."""
        self.of(measure, store, unit).wall.append(value)
        say(f"  {measure}: {store}: {value:.3g} {unit}")

    def fail(self, measure: str, store: str, error: BaseException) -> None:
        """Note that a store could not do it."""
        text = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        self.of(measure, store, "").failed = text
        say(f"  {measure}: {store}: {text}")

    def median(self, measure: str, store: str) -> float | None:
        figure = self.by.get(measure, {}).get(store)
        return figure.median if figure else None

    def to_json(self) -> dict[str, Any]:
        return {
            measure: {store: figure.to_json() for store, figure in stores.items()}
            for measure, stores in self.by.items()
        }
