"""Event sourcing: a book of deposits and withdrawals is the truth, balances are derived from it.

    python event_sourcing.py bank deposit ada 100
    python event_sourcing.py bank withdraw ada 30
    python event_sourcing.py bank balances

Each command appends one event. The program replays the balances from the last snapshot, a JSON file
with the last event included. You may delete the snapshot: the replay then takes longer.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from deedbook import Book

SNAPSHOT_EVERY = 1000  # events


class Bank:
    """Balances by name, as of an event of the book."""

    def __init__(self, directory: str) -> None:
        self.book = Book.open(Path(directory) / "events", "a")
        self.snapshot = Path(directory) / "snapshot.json"
        self.event = 0
        self.balances: dict[str, int] = {}
        self._load()
        self._snapshot_event = self.event
        for deed in self.book.iter(self.event + 1):
            self._apply(deed.position or 0, deed.payload)

    def _load(self) -> None:
        try:
            saved = json.loads(self.snapshot.read_text())
        except FileNotFoundError:
            return
        # A snapshot of an event beyond the book belongs to another book.
        if saved["event"] > self.book.last:
            event, last = saved["event"], self.book.last
            raise ValueError(f"{self.snapshot} is of event {event}, and the book's last is {last}")
        self.event, self.balances = saved["event"], saved["balances"]

    def _apply(self, event: int, payload: bytes) -> None:
        change = json.loads(payload)
        name = change["name"]
        self.balances[name] = self.balances.get(name, 0) + change["amount"]
        self.event = event

    def change(self, name: str, amount: int) -> int:
        """Append a deposit, or a withdrawal below 0, if the balance is high enough."""
        if self.balances.get(name, 0) + amount < 0:
            raise ValueError(f"{name} has {self.balances.get(name, 0)}, and {-amount} is more")
        payload = json.dumps({"name": name, "amount": amount}).encode()
        event = self.book.append(payload)  # on stable storage; only now is it true
        self._apply(event, payload)
        if event - self._snapshot_event >= SNAPSHOT_EVERY:
            self.save()
        return event

    def save(self) -> None:
        """Replace the snapshot. A crash leaves the old or the new snapshot."""
        beside = self.snapshot.with_suffix(".new")
        with open(beside, "w") as file:
            json.dump({"event": self.event, "balances": self.balances}, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.snapshot)
        self._snapshot_event = self.event

    def __enter__(self) -> Bank:
        return self

    def __exit__(self, *_: object) -> None:
        self.book.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory")
    parser.add_argument("verb", choices=["deposit", "withdraw", "balances", "snapshot"])
    parser.add_argument("name", nargs="?")
    parser.add_argument("amount", nargs="?", type=int)
    options = parser.parse_args()
    os.makedirs(options.directory, exist_ok=True)
    with Bank(options.directory) as bank:
        if options.verb == "balances":
            for name, balance in sorted(bank.balances.items()):
                print(f"{name} {balance}")
        elif options.verb == "snapshot":
            bank.save()
        elif options.name is None or options.amount is None or options.amount <= 0:
            parser.error("a name and an amount above 0 are needed")
        else:
            sign = 1 if options.verb == "deposit" else -1
            try:
                print(f"event {bank.change(options.name, sign * options.amount)}")
            except ValueError as error:
                print(f"refused: {error}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
