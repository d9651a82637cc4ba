"""The arguments that both senders have, checked and merged with a preset."""

from __future__ import annotations

import logging
import random
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from os import PathLike
from typing import Any, Literal, TypedDict, cast
from urllib.parse import urlsplit

from deedbook._core import __version__
from deedbook._errors import InvalidArgumentError
from deedbook._system.hosts import is_loopback
from deedbook._system.sidecar import dead_letters_of
from deedbook.http._dead import DeadLetters
from deedbook.http._flow.encode import Codings
from deedbook.http._flow.plan import Limits
from deedbook.http._policy import Answer, Policy
from deedbook.http._rates import Clock, Rates
from deedbook.http.presets import Preset
from deedbook.transient import DataStore, Envelope

log = logging.getLogger("deedbook.http")
_warned: set[str] = set()


@dataclass(frozen=True)
class Settings:
    """The arguments of a sender, checked."""

    store: DataStore
    url: str
    dead_letters: DeadLetters
    envelope: Envelope | None
    headers: Mapping[str, str]
    key_header: str | None
    limits: Limits
    policy: Policy
    rates: Rates
    compression: str | None
    concurrency: int
    interval_seconds: float
    connect_seconds: float
    read_seconds: float
    request_seconds: float
    ssl_context: ssl.SSLContext | None
    preset: Preset
    clock: Clock
    chance: random.Random

    def partly_refused(self, answer: Answer) -> tuple[int, str] | None:
        """How many events an accepting answer says were dropped, and why, if the preset knows."""
        return None if self.preset.partly_refused is None else self.preset.partly_refused(answer)


class Options(TypedDict, total=False):
    """The options of a sender: see `deedbook.http.Sender`."""

    envelope: Envelope | None
    headers: Mapping[str, str] | None
    dead_letters: str | PathLike[str] | DeadLetters | None
    key_header: str | None
    limits: Limits | None
    policy: Policy | None
    rates: Rates | None
    compression: Literal["auto", "gzip", "zstd"] | None
    concurrency: int
    interval_seconds: float
    connect_seconds: float
    read_seconds: float
    request_seconds: float
    ssl_context: ssl.SSLContext | None
    clock: Clock
    chance: random.Random


def settings(
    store: DataStore, url: str | None, preset: Preset | None, options: Options
) -> Settings:
    """The settings that the arguments of a sender make; InvalidArgumentError names the wrong one.

    A preset gives what is not given otherwise.
    """
    unknown = set(options) - set(Options.__annotations__)
    if unknown:
        raise TypeError(f"a sender has no option {', '.join(sorted(unknown))}")
    chosen = preset or Preset("none")
    url = chosen.url if url is None else url
    if url is None:
        raise InvalidArgumentError("no url is given, and the preset has none")
    compression = options.get("compression")
    Codings(compression)  # raises
    concurrency = options.get("concurrency", 1)
    if concurrency < 1:
        raise InvalidArgumentError(f"concurrency is {concurrency}, not 1 or more")
    seconds = {
        "interval_seconds": 5.0,
        "connect_seconds": 10.0,
        "read_seconds": 30.0,
        "request_seconds": 300.0,
    }
    for name in seconds:
        seconds[name] = value = cast("dict[str, Any]", options).get(name, seconds[name])
        if not 0 < value < inf:
            raise InvalidArgumentError(f"{name} is {value}, not more than 0")
    fixed = {"Content-Type": "application/json", "User-Agent": f"deedbook/{__version__}"}
    given = options.get("headers") or {}
    if not isinstance(given, Mapping):
        raise TypeError(f"headers is a {type(given).__name__}, not a mapping of names to values")
    for more in (chosen.headers, given):
        names = {name.lower() for name in more}
        fixed = {name: value for name, value in fixed.items() if name.lower() not in names}
        fixed.update(more)
    _check_headers(fixed)
    policy = options.get("policy")
    if policy is None:
        policy = Policy()
    if not isinstance(policy, Policy):
        raise TypeError(f"policy is a {type(policy).__name__}, not a deedbook.http.Policy")
    if chosen.statuses:
        policy = replace(policy, statuses={**chosen.statuses, **policy.statuses})
    url = _checked_url(url)
    _warn_of_plain_text(url, fixed)
    return Settings(
        store=store,
        url=url,
        dead_letters=_dead_letters(options.get("dead_letters"), store),
        envelope=options.get("envelope") or chosen.envelope,
        headers=fixed,
        key_header=options.get("key_header", "Idempotency-Key"),
        limits=options.get("limits") or chosen.limits,
        policy=policy,
        rates=options.get("rates") or Rates(),
        compression=compression,
        concurrency=concurrency,
        **seconds,
        ssl_context=options.get("ssl_context"),
        preset=chosen,
        clock=options.get("clock") or Clock(),
        chance=options.get("chance") or random.Random(),
    )


def shown_url(url: str) -> str:
    """The URL's host. User, password, path and query may be secret: a hook has its key there."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = "" if parts.port is None else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        good = parts.scheme in ("http", "https") and bool(host) and parts.port != 0
    except ValueError:
        good, host = False, ""
    if not good:
        raise InvalidArgumentError("url is not a http or https URL with a host")
    if not all(0 < len(label) < 64 for label in host.removesuffix(".").split(".")):
        raise InvalidArgumentError(
            "the host of url is not valid: each part between dots must have 1 to 63 characters"
        )
    return url


def _warn_of_plain_text(url: str, headers: Mapping[str, str]) -> None:
    """Warn where each machine on the way can read the credentials. Once for each host."""
    parts = urlsplit(url)
    if parts.scheme != "http" or is_loopback(parts.hostname or ""):
        return
    if any(name.lower() == "authorization" for name in headers) and parts.netloc not in _warned:
        _warned.add(parts.netloc)
        log.warning("%s gets the header Authorization without encryption", shown_url(url))


def _check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            kinds = f"{type(name).__name__} and {type(value).__name__}"
            raise TypeError(f"headers has a name and a value of {kinds}, not two of str")
        if not name.isascii() or not name.isprintable() or set(name) & set(" :"):
            raise InvalidArgumentError(f"{name!r} is not the name of a header")
        if not value.isprintable():  # not shown: it may be a key
            raise InvalidArgumentError(f"the value of the header {name} is not printable")
        if any(char > "\xff" for char in value):
            raise InvalidArgumentError(f"the value of the header {name} is beyond Latin-1")
        if name.lower() in ("content-length", "transfer-encoding", "content-encoding"):
            raise InvalidArgumentError(f"the header {name} is the sender's own")


def _dead_letters(given: Any, store: DataStore) -> DeadLetters:
    if isinstance(given, DeadLetters):
        return given
    if given is None:
        path = getattr(store, "path", None)
        if path is None:
            raise InvalidArgumentError(
                "dead_letters is missing: a folder for the events that the server refuses"
            )
        given = dead_letters_of(path, getattr(store, "base", "events"))
    return DeadLetters(given)
