"""The needs of well-known endpoints: envelope, headers, limits, statuses.

A preset is a value; `dataclasses.replace` makes a changed copy. The limits are as published by the
services, in bytes before compression.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Final
from urllib.parse import urlsplit

from deedbook._errors import InvalidArgumentError
from deedbook.http._flow.plan import Limits
from deedbook.http._policy import Action, Answer
from deedbook.transient import Envelope

__all__ = [
    "Preset",
    "json_array",
    "ndjson",
    "otlp_logs",
    "posthog",
    "rudderstack",
    "segment",
]


@dataclass(frozen=True)
class Preset:
    """The needs of a kind of endpoint. A sender's own arguments come before the preset's."""

    name: str
    """The kind of endpoint, in a word."""
    url: str | None = None
    """The URL for events, if all users have the same URL."""
    envelope: Envelope | None = None
    """The body around the events; None: the store's own."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # keys are secret
    """Headers of each request."""
    limits: Limits = field(default_factory=Limits)
    """The limits for a request."""
    statuses: Mapping[int, Action] = field(default_factory=dict)
    """Statuses with an unusual meaning."""
    partly_refused: Callable[[Answer], tuple[int, str] | None] | None = None
    """How many events an accepting answer says were dropped, and why; None: none."""


def segment(write_key: str, *, url: str = "https://api.segment.io/v1/batch") -> Preset:
    """Segment's batch API: 2,500 events and 500 KB in a request, 32 KB in an event.

    Segment answers 400 to a batch that is too large, so a sender splits the batch after a 400, too.
    """
    return Preset(
        "segment",
        url=url,
        envelope=_batch_envelope({"writeKey": write_key}, sent="sentAt"),
        headers={"Authorization": _basic(write_key)},
        limits=Limits(2_500, 500_000, 32_000),
        statuses={400: "split"},
    )


def rudderstack(write_key: str, data_plane: str) -> Preset:
    """RudderStack's batch API: 4 MB in a request, 32 KB in an event.

    ``data_plane`` is the URL of the data plane, without a path.
    """
    return Preset(
        "rudderstack",
        url=_at(data_plane, "/v1/batch"),
        envelope=_batch_envelope({}, sent="sentAt"),
        headers={"Authorization": _basic(write_key)},
        limits=Limits(None, 4_000_000, 32_000),
        statuses={400: "split"},
    )


def posthog(api_key: str, *, host: str = "https://us.i.posthog.com") -> Preset:
    """PostHog's batch API: 20 MB in a request.

    ``host`` is ``https://eu.i.posthog.com`` in Europe, or your own.
    """
    return Preset(
        "posthog",
        url=_at(host, "/batch/"),
        envelope=_batch_envelope({"api_key": api_key}, sent="sentAt"),
        limits=Limits(None, 20_000_000, None),
        statuses={400: "split"},
    )


def ndjson(url: str | None = None) -> Preset:
    """JSON lines, each with a final newline: ``application/x-ndjson``."""
    return Preset(
        "ndjson",
        url=url,
        envelope=Envelope(b"", b"\n", b"\n"),
        headers={"Content-Type": "application/x-ndjson"},
    )


def json_array(url: str | None = None) -> Preset:
    """A JSON array of the events."""
    return Preset("json_array", url=url, envelope=Envelope())


OTLP_STATUSES: Final[Mapping[int, Action]] = {
    **{status: "refuse" for status in (408, 409, 423, 425, *range(500, 600))},
    **{status: "retry" for status in (502, 503, 504)},
}
"""OTLP repeats requests after 429, 502, 503 and 504 only."""


def otlp_logs(
    endpoint: str,
    *,
    resource: Mapping[str, str] | None = None,
    scope: str = "deedbook",
    headers: Mapping[str, str] | None = None,
) -> Preset:
    """OpenTelemetry logs over HTTP as JSON; each event is a ``LogRecord`` in JSON.

    ``endpoint`` is the collector's base URL, often ``http://localhost:4318``. A path stays, and
    ``/v1/logs`` is added, as OTEL_EXPORTER_OTLP_ENDPOINT has it. Resource
    attributes are strings, such as ``{"service.name": "shop"}``.
    """
    attributes = [
        {"key": key, "value": {"stringValue": value}} for key, value in (resource or {}).items()
    ]
    before = (
        f'{{"resourceLogs":[{{"resource":{{"attributes":{_json(attributes)}}},'
        f'"scopeLogs":[{{"scope":{{"name":{_json(scope)}}},"logRecords":['
    )
    return Preset(
        "otlp_logs",
        url=_below(endpoint, "/v1/logs"),
        envelope=Envelope(before.encode(), b"]}]}]}"),
        headers=dict(headers or {}),
        statuses=OTLP_STATUSES,
        partly_refused=_otlp_partly_refused,
    )


_REJECTED: Final = re.compile(rb'"rejectedLogRecords"\s*:\s*"?([1-9][0-9]*)')


def _otlp_partly_refused(answer: Answer) -> tuple[int, str] | None:
    if b"partialSuccess" not in answer.body:
        return None
    try:
        partial = json.loads(answer.body)["partialSuccess"]
        refused = int(partial.get("rejectedLogRecords", 0))  # int64 is a string in JSON
        message = str(partial.get("errorMessage", ""))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        found = _REJECTED.search(answer.body)  # the number comes before the message
        return (int(found[1]), "the answer is longer than what is kept of it") if found else None
    return (refused, message) if refused > 0 else None


def _batch_envelope(fields: Mapping[str, str], *, sent: str) -> Envelope:
    """``{"batch":[...],"sentAt":"...", fields}``, the time made for each body."""

    def footer() -> bytes:
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        values = {sent: now.replace("+00:00", "Z"), **fields}
        return b"]," + _json(values).encode()[1:]

    return Envelope(b'{"batch":[', footer)


def _basic(user: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:".encode()).decode()


def _below(base: str, path: str) -> str:
    if urlsplit(base).query or urlsplit(base).fragment:
        raise InvalidArgumentError(f"give the URL without a query; {path} is added")
    return base.rstrip("/") + path


def _at(base: str, path: str) -> str:
    if urlsplit(base).path not in ("", "/"):
        raise InvalidArgumentError(f"give the URL without a path; {path} is added")
    return base.rstrip("/") + path


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
