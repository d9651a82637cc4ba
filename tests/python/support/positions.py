"""The result of appending many, as numbers for comparisons."""

from typing import Any


def span(added: Any) -> tuple[Any, Any]:
    """The first position, and the position after the last."""
    return added.first, added.end
