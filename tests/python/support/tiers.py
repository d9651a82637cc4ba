"""How much the tests try: a number of the tier that ``DEEDBOOK_TIER`` names."""

import os
from typing import Any

from places import ROOT

TIERS = ("quick", "full", "trust")
TABLE = ROOT / "tests" / "tiers.txt"


def tier() -> str:
    return os.environ.get("DEEDBOOK_TIER", TIERS[0])


def number(name: str) -> int:
    """The variable ``DEEDBOOK_NAME``, or else what ``tests/tiers.txt`` has for the tier."""
    given = os.environ.get(f"DEEDBOOK_{name}")
    if given is not None:
        return int(given)
    column = 1 + TIERS.index(tier())
    rows = (line.split() for line in TABLE.read_text().splitlines() if not line.startswith("#"))
    return int(next(row[column] for row in rows if row[0] == name))


def histories(share: int = 1) -> Any:
    """The settings of a stateful machine, with a share of the tier's examples."""
    from hypothesis import HealthCheck, settings

    return settings(
        max_examples=max(1, number("EXAMPLES") // share),
        stateful_step_count=25,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
