"""The decisions of a sender, step by step: scripted answers, and a clock that skips."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from deedbook import CorruptError
from deedbook.http import Answer, Policy
from deedbook.http._flow.flow import Flow
from deedbook.http._flow.steps import Send, Step, Wait, Worker, perform
from deedbook.http._settings import settings
from http_kinds import Highest, SkippingClock

URL = "http://127.0.0.1:1/v1/batch"


class Run:
    """A flow driven step by step. Waits take no time; requests get the answers of a script."""

    def __init__(self, store: Any, folder: Path, answers: Iterable[Any] = (), **options: Any):
        self.clock = SkippingClock()
        options = {"chance": Highest(), "policy": Policy(delay_seconds=1.0), **options}
        made = {"dead_letters": folder, "clock": self.clock, **options}
        self.settings = settings(store, URL, made.pop("preset", None), made)  # type: ignore[arg-type]
        self.flow = Flow(self.settings)
        self.answers = list(answers)
        self.steps: list[Step] = []
        self.waits: list[float] = []
        self.sent: list[tuple[str, list[bytes]]] = []

    def answer(self, step: Step) -> Any:
        self.steps.append(step)
        if isinstance(step, Wait):
            assert step.seconds is not None
            self.waits.append(step.seconds)
            return self.clock.wait_seconds(step.seconds)
        if isinstance(step, Send):
            part = step.prepared.part
            records = list(part.batch.records(part.start, part.stop))
            self.sent.append((step.headers["Idempotency-Key"], records))
            given = self.answers.pop(0) if self.answers else 200
            return Answer(given) if isinstance(given, int) else given
        return perform(self.settings, step)

    def drive(
        self,
        worker: Worker,
        until: type | None = None,
        before: Callable[[Step], object] = lambda step: None,
    ) -> bool:
        """Run to the end, or to before a step of a kind; `before` sees each step, and may raise."""
        try:
            step = next(worker)
            while until is None or not isinstance(step, until):
                try:
                    before(step)
                    outcome = self.answer(step)
                except (OSError, CorruptError) as error:
                    step = worker.throw(error)
                else:
                    step = worker.send(outcome)
            self.steps.append(step)
            return False
        except StopIteration as end:
            return bool(end.value)

    def drain(self) -> "Run":
        self.flow.close(float("inf"))
        assert self.drive(self.flow.worker())
        return self

    def kinds(self) -> list[str]:
        return [type(step).__name__ for step in self.steps if not isinstance(step, Wait)]
