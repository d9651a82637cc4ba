"""An archive's place in an object store, through obstore: reads, puts, and the conditional put.

The library finds the credentials by its own chain. An error of the library may quote requests, so
the text stops here: an error of this module holds the URL, the call, and a reason from a list.
"""

from __future__ import annotations

import copy
import hashlib
import os
import queue
import re
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeVar, cast
from urllib.parse import unquote, urlsplit

from deedbook._errors import (
    InvalidArgumentError,
    IoError,
    MissingError,
    UnsupportedError,
)
from deedbook._system.durable import Unnamed, sync_file, sync_folders
from deedbook._system.lock import alone

try:
    import obstore
    from obstore.exceptions import (
        AlreadyExistsError,
        BaseError,
        PermissionDeniedError,
        PreconditionError,
        UnauthenticatedError,
    )
except ImportError as missing:
    raise ImportError(
        "archives need obstore: pip install 'deedbook[s3]'", name=missing.name
    ) from missing

_T = TypeVar("_T")
SCHEMES: Final = ("s3", "gs", "az", "file")
TIMEOUT_SECONDS: Final = 120.0
"""The limit of a request together with the repeats."""
RANGE_BYTES: Final = 16 << 20
"""Most bytes of a request for reading."""
_FAILURES: Final = (BaseError, OSError, NotImplementedError, ValueError)
"""The errors that the library raises."""
_CODE: Final = re.compile(r"<Code>(\w{1,64})</Code>")
_STATUS: Final = re.compile(r"status(?: code)?:? ?(\d{3})\b")
_VARIABLES: Final = {"s3": "AWS", "gs": "GOOGLE", "az": "AZURE"}
"""The first word of the variables of a store."""
_PHRASES: Final = {
    "timed out": "the store did not answer in time",
    "TimedOut": "the store did not answer in time",
    "onnection refused": "the store refused the connection",
    "onnectionRefused": "the store refused the connection",
    "dns error": "the store's name is not known",
    "onnection reset": "the connection broke",
    "IncompleteMessage": "the connection broke",
    "No space left": "no space is left",
    "ermission denied": "permission denied",
    "Not a directory": "not a directory",
    "Account must be specified": "AZURE_STORAGE_ACCOUNT_NAME is not set",
    "scheme is not allowed": "{}_ALLOW_HTTP=true allows http",
    "builder error": "{}_ALLOW_HTTP=true allows http",
    "xpected bytes": "the object ends too early",
}


Version = dict[str, str]
"""Names of an object's version: the etag, or another name of the store."""


class Conflict(Exception):
    """Another writer stored the object in between."""


class Store:
    """The objects below a URL."""

    def __init__(self, url: str, timeout: float, *, creates: bool = False) -> None:
        parts = urlsplit(url)
        if parts.scheme not in SCHEMES or not parts.path.strip("/") + parts.netloc:
            known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
            raise InvalidArgumentError(f"the URL of an archive must begin with one of {known}")
        if parts.query or parts.fragment or "@" in parts.netloc:
            raise InvalidArgumentError(
                "the URL of an archive has no user, password, query or fragment: the credentials"
                " come from the environment"
            )
        self.url = url.rstrip("/")
        self._prefix = ""
        self._folder = Path(unquote(parts.path)) if parts.scheme == "file" else None
        within = timedelta(seconds=timeout)
        options: dict[str, Any] = {
            # Given options replace those of the environment.
            "client_options": {"timeout": within, "allow_http": _is_http_allowed(parts.scheme)},
            "retry_config": {
                "max_retries": 10,
                "backoff": {"init_backoff": min(within, timedelta(seconds=0.1))},
                "retry_timeout": within,
            },
        }
        try:
            if self._folder is not None:
                if parts.netloc not in ("", "localhost"):
                    raise InvalidArgumentError(f"{url}: a file:// URL names no other machine")
                if creates:
                    self._folder.mkdir(parents=True, exist_ok=True)
                elif not self._folder.is_dir():
                    raise FileNotFoundError
                self._store: Any = obstore.store.LocalStore(self._folder)
            else:
                self._store = obstore.store.from_url(self.url, **options)
        except _FAILURES as error:
            raise self._failed("open", "", error) from None

    def below(self, folder: str) -> Store:
        """The objects below a folder, by the same connections."""
        below = copy.copy(self)
        below.url = f"{self.url}/{folder}"
        below._prefix = f"{self._prefix}{folder}/"
        return below

    def where(self, name: str) -> str:
        """The URL of an object."""
        return f"{self.url}/{name}"

    def size(self, name: str) -> int | None:
        """Bytes of an object; None without the object."""
        try:
            found = _waiting(lambda: obstore.head(self._store, self._prefix + name))
            return int(found["size"])
        except FileNotFoundError:
            return None
        except _FAILURES as error:
            raise self._failed("look for", name, error) from None

    def get(self, name: str) -> tuple[bytes, Version]:
        """An object, and its version for `replace`. Raises `MissingError`."""
        try:
            found, data = _waiting(lambda: self._get(name))
            version = {"e_tag": found["e_tag"], "version": found["version"]}
            return data, {key: value for key, value in version.items() if value is not None}
        except _FAILURES as error:
            raise self._failed("read", name, error) from None

    def _get(self, name: str) -> tuple[Any, bytes]:
        found = obstore.get(self._store, self._prefix + name)
        return found.meta, bytes(found.bytes())

    def range(self, name: str, start: int, end: int) -> memoryview:
        """The bytes ``start..end`` of an object. Raises `MissingError`."""
        try:
            key = self._prefix + name
            return memoryview(
                _waiting(lambda: obstore.get_range(self._store, key, start=start, end=end))
            )
        except _FAILURES as error:
            raise self._failed("read", name, error) from None

    def chunks(self, name: str, size: int) -> Iterator[memoryview]:
        """The first ``size`` bytes of an object, by ranges."""
        for start in range(0, size, RANGE_BYTES):
            yield self.range(name, start, min(start + RANGE_BYTES, size))

    def sha256(self, name: str, size: int) -> str:
        """The checksum of the first ``size`` bytes of an object, read back by ranges."""
        found = hashlib.sha256()
        for chunk in self.chunks(name, size):
            found.update(chunk)
        return found.hexdigest()

    def names(self, folder: str, after: str | None = None) -> Iterator[tuple[str, int]]:
        """The objects below a folder with their sizes; only names greater than ``after``."""
        try:
            offset = None if after is None else self._prefix + after
            key = self._prefix + folder
            pages = _waiting(lambda: list(obstore.list(self._store, key, offset=offset)))
            for page in pages:
                yield from ((one["path"].removeprefix(self._prefix), one["size"]) for one in page)
        except _FAILURES as error:
            raise self._failed("list", folder, error) from None

    def put_new(self, name: str, data: bytes) -> bool:
        """Store an object that must not exist; return whether the call stored it."""
        return self._put(name, data, "create")

    def put(self, name: str, data: bytes | Path) -> None:
        """Store an object, in place of an earlier one; a file goes up in parts."""
        self._put(name, data, None)

    def _put(self, name: str, data: bytes | Path, mode: Any) -> bool:
        key, is_file = self._prefix + name, isinstance(data, Path)
        try:
            _waiting(lambda: obstore.put(self._store, key, data, mode=mode, use_multipart=is_file))
        except AlreadyExistsError:
            return False
        except _FAILURES as error:
            raise self._failed("store", name, error) from None
        if self._folder is not None:  # the library leaves the sync to the system
            file = self._folder / key
            sync_file(file)
            sync_folders(self._folder, [file])
        return True

    def replace(self, name: str, data: bytes, version: Version | None) -> None:
        """Store an object if the stored object has the version; with None, if there is no object.

        Raises `Conflict`.
        """
        if self._folder is not None:
            self._replace_file(self._folder, name, data, version)
            return
        mode: Any = "create" if version is None else version
        key = self._prefix + name
        try:
            _waiting(lambda: obstore.put(self._store, key, data, mode=mode, use_multipart=False))
        except (AlreadyExistsError, PreconditionError):
            raise Conflict from None
        except FileNotFoundError:  # the answer of S3 if the object went in between
            raise Conflict from None
        except _FAILURES as error:
            raise self._failed("store", name, error) from None

    def _replace_file(self, folder: Path, name: str, data: bytes, version: Version | None) -> None:
        """`replace` in a directory: a file system compares no versions, so a lock helps."""
        target = folder / self._prefix / name
        with alone(folder / ".lock", f"archives to {self.url}"):
            now = None if self.size(name) is None else self.get(name)[1]
            if now != version:
                raise Conflict
            with Unnamed.beside(folder, ".manifest-") as new:
                new.file.write(data)
                new.name(target)
            sync_folders(folder, [target])

    def _failed(self, doing: str, name: str, error: Exception) -> Exception:
        """The error to raise in place of an error of the library."""
        if isinstance(error, InvalidArgumentError):
            return error
        place = self.where(name) if name else self.url
        if isinstance(error, FileNotFoundError):
            made: IoError | UnsupportedError = MissingError(f"{place}: no such object or bucket")
        elif isinstance(error, NotImplementedError):
            made = UnsupportedError(f"{place}: the store has no conditional put")
        else:
            made = IoError(f"{doing} {place}: {_reason(error, urlsplit(self.url).scheme)}")
        made.path = place
        return made


def begin_call(call: Callable[[], _T]) -> Callable[[], _T]:
    """Make a call in a thread; the returned function waits for the result."""
    done: queue.SimpleQueue[tuple[_T | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put((call(), None))
        except BaseException as error:
            done.put((None, error))

    def wait() -> _T:
        value, error = done.get()
        if error is not None:
            raise error
        return cast("_T", value)

    # At the exit of the process, nobody waits for a daemon.
    threading.Thread(target=run, name="deedbook-archive", daemon=True).start()
    return wait


def _waiting(call: Callable[[], _T]) -> _T:
    """The result of a call of the library. Ctrl-C ends the wait at once, not the request."""
    is_main = threading.current_thread() is threading.main_thread()
    return begin_call(call)() if is_main else call()


def _is_http_allowed(scheme: str) -> bool:
    return os.environ.get(f"{_VARIABLES.get(scheme, '')}_ALLOW_HTTP", "").lower() in ("1", "true")


def _reason(error: Exception, scheme: str) -> str:
    """Why a call failed, in words that hold no part of the request."""
    if isinstance(error, PermissionDeniedError):
        return "the store denied access with these credentials"
    if isinstance(error, UnauthenticatedError):
        return "the store takes no such credentials"
    text = str(error)
    said = [match[1] for match in (_STATUS.search(text), _CODE.search(text)) if match]
    said += [
        shown.format(_VARIABLES.get(scheme, ""))
        for phrase, shown in _PHRASES.items()
        if phrase in text
    ]
    kind = type(error).__name__
    return f"the store failed ({', '.join(dict.fromkeys(said)) or kind})"
