"""Bodies of batches as real clients send them to a real server."""

import asyncio
import contextlib
import http.client
from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

import pytest

from deedbook.transient import Batch
from endpoint import Endpoint
from http_kinds import events, store_of

EVENTS = events(2000, 250)


@pytest.fixture
def body() -> Batch:
    result = store_of(EVENTS, batch_bytes=1 << 20).fetch()
    assert result is not None
    return result.data[0]


Send = Callable[[str, Batch, int], list[int]]


def headers(body: Batch) -> dict[str, str]:
    return {"Content-Type": "application/json", "Content-Length": str(body.content_length)}


def again(body: Batch, times: int, post: Callable[[], int]) -> list[int]:
    statuses = []
    for _ in range(times):
        body.seek(0)
        statuses.append(post())
    return statuses


def by_requests(url: str, body: Batch, times: int) -> list[int]:
    requests = pytest.importorskip("requests")
    json = {"Content-Type": "application/json"}  # it finds the length
    with requests.Session() as session:
        return again(body, times, lambda: session.post(url, data=body, headers=json).status_code)


def by_http_client(url: str, body: Batch, times: int) -> list[int]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)

    def post() -> int:
        connection.request("POST", parts.path, body, headers(body))
        answer = connection.getresponse()
        answer.read()
        return answer.status

    with contextlib.closing(connection):
        return again(body, times, post)


def by_urllib3(url: str, body: Batch, times: int) -> list[int]:
    urllib3 = pytest.importorskip("urllib3")
    fixed = headers(body)
    with urllib3.PoolManager(retries=False) as pool:
        return again(
            body, times, lambda: pool.request("POST", url, body=body, headers=fixed).status
        )


def by_httpx(url: str, body: Batch, times: int) -> list[int]:
    httpx = pytest.importorskip("httpx")
    fixed = headers(body)
    with httpx.Client() as client:
        return again(body, times, lambda: client.post(url, content=body, headers=fixed).status_code)


def by_httpx_async(url: str, body: Batch, times: int) -> list[int]:
    httpx = pytest.importorskip("httpx")

    async def send() -> list[int]:
        async with httpx.AsyncClient() as client:
            stream, fixed = body.stream(), headers(body)
            posts = [await client.post(url, content=stream, headers=fixed) for _ in range(times)]
            return [answer.status_code for answer in posts]

    return asyncio.run(send())


def by_aiohttp(url: str, body: Batch, times: int, streams: bool = False) -> list[int]:
    aiohttp = pytest.importorskip("aiohttp")

    async def send() -> list[int]:
        data, fixed = body.stream() if streams else body, headers(body)
        async with aiohttp.ClientSession() as session:
            statuses = []
            for _ in range(times):
                body.seek(0)
                async with session.post(url, data=data, headers=fixed) as answer:
                    statuses.append(answer.status)
            return statuses

    return asyncio.run(send())


CLIENTS: dict[str, Send] = {
    "requests": by_requests,
    "http.client": by_http_client,
    "urllib3": by_urllib3,
    "httpx": by_httpx,
    "httpx async": by_httpx_async,
    "aiohttp": by_aiohttp,
    "aiohttp stream": partial(by_aiohttp, streams=True),
}


@pytest.fixture(params=CLIENTS)
def send(request: pytest.FixtureRequest) -> Send:
    return CLIENTS[request.param]


def test_http_body_has_exact_length_without_chunks(
    endpoint: Endpoint, body: Batch, send: Send
) -> None:
    assert send(endpoint.url, body, 1) == [200]
    (request,) = endpoint.requests
    assert request.headers["content-length"] == str(body.content_length)
    assert request.length == body.content_length > 400_000
    assert "transfer-encoding" not in request.headers
    stats = endpoint.stats()
    assert stats.without_length == stats.short == 0
    assert endpoint.events == EVENTS


def test_the_body_is_whole_again_after_a_503(endpoint: Endpoint, body: Batch, send: Send) -> None:
    endpoint.script.extend([503, "ok"])
    if send is by_aiohttp:  # it closes what it has sent, soon: an error, never a shorter body
        with contextlib.suppress(Exception):
            assert send(endpoint.url, body, 2) == [503, 200]
        assert {request.length for request in endpoint.requests} == {body.content_length}
        assert endpoint.events in ([], EVENTS)
        return
    assert send(endpoint.url, body, 2) == [503, 200]
    assert [request.length for request in endpoint.requests] == [body.content_length] * 2
    assert endpoint.events == EVENTS
