"""A headless Chromium, and a reader's view of a page."""

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

WIDTHS = (390, 1200)

_SEEN = """
const all = [...document.querySelectorAll('body *')];
const sized = one => { const box = one.getBoundingClientRect(); return box.width * box.height > 0 };
const heading = document.querySelector('h1');
return {
    heading: heading.innerText,
    window: window.innerWidth,
    page: document.documentElement.scrollWidth,
    widest: Math.max(...all.map(one => one.getBoundingClientRect().right)),
    charts: [...document.querySelectorAll('svg')].map(one => [one.getAttribute('aria-label'),
        sized(one) ? [...one.querySelectorAll('rect')].filter(sized).length : -1]),
    foreign: performance.getEntriesByType('resource').map(one => one.name)
        .filter(name => !name.startsWith('data:')),
    scripts: document.scripts.length,
    tiles: Object.fromEntries([...document.querySelectorAll('.tiles div')].map(one =>
        [one.querySelector('dt').innerText, one.querySelector('dd').innerText])),
    text: document.body.innerText,
};
"""

_OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
    " --disable-background-networking --disable-component-update --disable-sync"
)
_ANSWER_SECONDS = 60
_HTTP = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Browser:
    def __init__(self, session: str) -> None:
        self._session = session

    def go(self, url: str, width: int) -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self._do("goog/cdp/execute", cmd="Emulation.setDeviceMetricsOverride", params=size)
        self._do("url", url=url)

    def run(self, script: str) -> Any:
        return self._do("execute/sync", script=script, args=[])

    def console(self) -> list[str]:
        return [entry["message"] for entry in self._do("se/log", type="browser")]

    def picture(self, file: Path) -> None:
        import base64

        params = {"captureBeyondViewport": True}
        found = self._do("goog/cdp/execute", cmd="Page.captureScreenshot", params=params)
        file.write_bytes(base64.b64decode(found["data"]))

    def _do(self, command: str, **arguments: Any) -> Any:
        return _post(f"{self._session}/{command}", arguments)


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    driver = shutil.which("chromedriver")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if driver is None or chromium is None:
        pytest.skip("no chromium and chromedriver: scripts/browser.sh installs them on Debian")
    process = subprocess.Popen(
        [driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        said = (re.search(r"successfully on port ([0-9]+)", line) for line in process.stdout)
        port = next(found[1] for found in said if found is not None)
        arguments = [*_OPTIONS.split(), f"--user-data-dir={profile}"]
        wanted = {
            "goog:chromeOptions": {"binary": chromium, "args": arguments},
            "goog:loggingPrefs": {"browser": "WARNING"},
        }
        sessions = f"http://127.0.0.1:{port}/session"
        begun = _post(sessions, {"capabilities": {"alwaysMatch": wanted}})
        session = f"{sessions}/{begun['sessionId']}"
        try:
            yield Browser(session)
        finally:
            _send(urllib.request.Request(session, method="DELETE"))
    finally:
        process.terminate()
        process.communicate()


def _post(url: str, body: dict[str, Any]) -> Any:
    return _send(urllib.request.Request(url, json.dumps(body).encode()))


def _send(request: urllib.request.Request) -> Any:
    try:
        with _HTTP.open(request, timeout=_ANSWER_SECONDS) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        with error:
            said = error.read().decode(errors="replace")
        raise AssertionError(f"{request.full_url}: {said[:1000]}") from None


def look(window: Browser, page: Path, width: int) -> dict[str, Any]:
    """The contents of the page in a window of ``width``; checks the rules for all pages."""
    window.go(page.as_uri(), width)
    seen: dict[str, Any] = window.run(_SEEN)
    assert window.console() == []
    assert seen["window"] == width
    assert seen["page"] <= width and seen["widest"] <= width, "it has to be scrolled sideways"
    assert not seen["foreign"] and seen["scripts"] == 0, "it does not stand alone"
    return seen
