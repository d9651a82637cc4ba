"""Archives at Azurite, Microsoft's server of Azure Blob Storage for tests."""

import base64
import contextlib
import hashlib
import hmac
import http.client
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

pytest.importorskip("obstore", reason="obstore is not installed")

from deedbook import Wal, archive

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Published by Azurite."""
VERSION = "2021-08-06"


def create_container(port: int, name: str) -> None:
    """Send the signed request for a new container; obstore has no call for one."""
    date, path = formatdate(usegmt=True), f"/{ACCOUNT}/{name}"
    signed = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:{VERSION}\n"
    signed += f"/{ACCOUNT}{path}\nrestype:container"
    key = hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()
    headers = {"x-ms-date": date, "x-ms-version": VERSION, "content-length": "0"}
    headers["authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(key).decode()}"
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        connection.request("PUT", f"{path}?restype=container", headers=headers)
        assert connection.getresponse().status == 201


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("no azurite-blob: npm install --global azurite")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    options = [
        "--silent",
        "--inMemoryPersistence",
        "--skipApiVersionCheck",
        "--blobPort",
        str(port),
    ]
    with subprocess.Popen([program, *options], stdout=subprocess.DEVNULL) as server:
        try:
            limit = time.monotonic() + 60
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                assert server.poll() is None and time.monotonic() < limit
                time.sleep(0.05)
            create_container(port, "logs")
            monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
            monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
            monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
            monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", f"http://127.0.0.1:{port}")
            yield "az://logs/one"
        finally:
            server.kill()


def test_azure_takes_and_returns_an_archive(url: str, path: Path, tmp_path: Path) -> None:
    with Wal.create(path, segment_bytes=4096) as wal:
        wal.append_many(b"%4d" % number * 25 for number in range(120))
    assert archive.upload(path, url).sent == 3
    again = archive.upload(path, url)
    assert (again.sent, again.pieces) == (0, 3)
    assert archive.verify(url).ok
    joined = [record.payload for record in archive.open(url, log=path).iter()]
    assert joined == [b"%4d" % number * 25 for number in range(120)]
    archive.restore(url, tmp_path / "back")
    sealed = [file for file in path.glob("*.wal") if file.stat().st_size == 4096]
    for file in sealed:
        assert (tmp_path / "back" / file.name).read_bytes() == file.read_bytes()
