"""Requests by aiohttp, for the tasks of an event loop."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from deedbook._system.threads import Worker
from deedbook.http._clients.urllib3 import ANSWER_BYTES, ANSWER_SECONDS, too_long
from deedbook.http._flow.encode import Prepared
from deedbook.http._policy import Answer
from deedbook.http._settings import Settings

if TYPE_CHECKING:
    import aiohttp


class AsyncTransport:
    """An endpoint, and its connections. The tasks of a loop share both."""

    def __init__(self, settings: Settings, worker: Worker) -> None:
        try:
            import aiohttp

            from deedbook.http._clients.upload import Upload
        except ImportError as error:
            raise ImportError(
                "deedbook.http.AsyncSender needs aiohttp: pip install 'deedbook[http]'"
            ) from error
        self._upload = Upload
        self._untrusted = aiohttp.ClientConnectorCertificateError
        self._settings = settings
        self._worker = worker
        self._session: aiohttp.ClientSession | None = None

    async def send(self, prepared: Prepared, headers: dict[str, str]) -> Answer:
        """POST a body. A failed request is an `Answer` without a status.

        But an error of reading the body is raised, because no server caused the error.
        """
        if self._session is None:
            self._session = self._made()
        read_seconds = self._settings.read_seconds
        body = self._upload(prepared, self._worker, read_seconds)
        try:
            async with self._session.post(
                self._settings.url,
                data=body,
                headers=headers,
                allow_redirects=False,
            ) as response:
                words = await _beginning(response.content)
                named = {name.lower(): value for name, value in response.headers.items()}
                return Answer(response.status, named, words)
        except self._untrusted as error:
            return Answer(None, error=_text(error), hold=True)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if body.failure is not None:
                raise body.failure from None
            if body.stalled:
                stalled = TimeoutError(f"the server took no byte for {read_seconds:g} seconds")
                return Answer(None, error=_text(stalled))
            if type(error) is asyncio.TimeoutError:  # aiohttp's own say of what
                return Answer(None, error=_text(too_long(self._settings.request_seconds)))
            return Answer(None, error=_text(error))

    async def close(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _made(self) -> aiohttp.ClientSession:
        import aiohttp

        settings = self._settings
        context = True if settings.ssl_context is None else settings.ssl_context
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=settings.concurrency, ssl=context),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept-Encoding": "identity"},  # as urllib3 asks; nothing is decoded
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(
                total=settings.request_seconds,
                sock_connect=settings.connect_seconds,
                sock_read=settings.read_seconds,
            ),
        )


async def _beginning(content: aiohttp.StreamReader) -> bytes:
    """The beginning of an answer. A single read returns only the bytes that have arrived."""
    body = bytearray()

    async def read() -> None:
        while len(body) < ANSWER_BYTES and (piece := await content.read(ANSWER_BYTES - len(body))):
            body.extend(piece)

    # If the rest does not arrive, the status decides.
    with contextlib.suppress(Exception):
        await asyncio.wait_for(read(), ANSWER_SECONDS)
    return bytes(body)


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
