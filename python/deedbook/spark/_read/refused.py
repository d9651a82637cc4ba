"""Places of logs that do not open, in the checkpoint of a stream that skips damage.

A place keeps the last known place, if any, and the reason. The batch in which the reason appears
has the damage. Once the log opens, the stream reads on from the last known place.
"""

from __future__ import annotations

import logging

from deedbook import Error, LostRecordsError, MissingError
from deedbook.spark._logs.format import Place
from deedbook.spark._logs.parts import Loss
from deedbook.spark._options.options import ReadOptions

__all__ = ["is_refused", "known", "loss", "refused", "refused_as", "warn"]

_log = logging.getLogger("deedbook")

_REASON, _FILE, _AT = "refused", "refusedFile", "refusedAt"
_NEVER = "neverOpened"
"""Marks a log that has not opened since the query began, and has no known place."""


def refused(path: str, before: Place | None, error: Error, options: ReadOptions) -> Place:
    """The place of a log that does not open: ``before`` with the reason.

    Raises the error in mode FAILFAST, and with ``failOnDataLoss`` the error of lost records.
    """
    is_loss = isinstance(error, LostRecordsError | MissingError)
    if options.mode == "FAILFAST" or (is_loss and options.fail_on_data_loss):
        raise error
    why: Place = {_REASON: str(error), _FILE: error.path or path, _AT: error.offset or 0}
    return refused_as(before, why)


def refused_as(before: Place | None, other: Place) -> Place:
    """``before`` with the reason of ``other``; unchanged if ``before`` has a reason."""
    if before is not None and is_refused(before):
        return before
    why = {key: other[key] for key in (_REASON, _FILE, _AT)}
    place = known(before)
    return {_NEVER: 1, **why} if place is None else {**place, **why}


def is_refused(place: Place | None) -> bool:
    """Whether a log did not open."""
    return place is not None and _REASON in place


def known(place: Place | None) -> Place | None:
    """A place for formats; None for a log that has not opened since the query began."""
    if place is None or _NEVER in place:
        return None
    return {key: value for key, value in place.items() if key not in (_REASON, _FILE, _AT)}


def loss(start: Place | None, stop: Place) -> Loss | None:
    """The damage of a batch that ends at ``stop``, for a log that no longer opens."""
    if is_refused(start) or not is_refused(stop):
        return None
    at = int(stop[_AT])
    return Loss(str(stop[_FILE]), at, at, f"the log does not open: {stop[_REASON]}")


def warn(path: str, before: Place | None, place: Place) -> None:
    """Warn of a log that no longer opens."""
    damage = loss(before, place)
    if damage is not None:
        _log.warning("%s: passed over until it opens: %s", path, damage.reason)
