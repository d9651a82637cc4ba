"""The examples in docs/service.md and docs/metrics.md work: service, units, manifests, alerts."""

import configparser
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from deedbook import Wal
from deedbook.metrics import _logs
from doc_blocks import blocks
from live import line, program
from places import DOCS

SERVICE, METRICS = DOCS / "service.md", DOCS / "metrics.md"

pytestmark = [
    pytest.mark.skipif(not DOCS.exists(), reason="docs is not in this checkout"),
    pytest.mark.skipif(os.name != "posix", reason="services here end by SIGTERM"),
]


def end(process: subprocess.Popen[str], number: signal.Signals) -> int:
    process.send_signal(number)
    return process.wait(60)


def noted(port: int, lines: list[bytes], address: str = "127.0.0.1") -> list[int]:
    with socket.create_connection((address, port), timeout=60) as client:
        client.sendall(b"".join(line + b"\n" for line in lines))
        client.shutdown(socket.SHUT_WR)
        with client.makefile("rb") as answers:
            return [int(answer) for answer in answers]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (block,) = blocks(SERVICE, "python")
    script = tmp_path / "service.py"
    script.write_text(block.text)
    return script


def test_service_keeps_acknowledged_records_and_hands_over_lock(
    script: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    lines = [b"order %d" % number for number in range(50)]
    with program(script, log, "127.0.0.1", 0) as first:
        port = int(line(first).split()[1])
        answered = noted(port, lines)
        assert len(answered) == 50
        with program(script, log, "127.0.0.1", 0) as second:  # waits for the first service's lock
            time.sleep(0.5)
            assert second.poll() is None
            assert (end(first, signal.SIGTERM), line(first)) == (0, "closed")
            port = int(line(second).split()[1])
            answered += noted(port, [b"by the second"])
            assert end(second, signal.SIGKILL) == -signal.SIGKILL
    with Wal.open(log) as wal:
        assert [record.payload for record in wal] == [*lines, b"by the second"]
        assert [record.lsn for record in wal] == answered


def dockerfile() -> dict[str, str]:
    (block,) = blocks(SERVICE, "dockerfile")
    lines = [line for line in block.text.splitlines() if not line.startswith("#")]
    return dict(line.split(" ", 1) for line in lines)


def units() -> dict[str, str]:
    blocks_of = blocks(SERVICE, "ini")
    return {one.text.splitlines()[0].rpartition("/")[2]: one.text for one in blocks_of}


def pod() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    (block,) = blocks(SERVICE, "yaml")
    return {one["kind"]: one for one in yaml.safe_load_all(block.text)}


@pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 is one of Linux's own addresses")
def test_what_the_container_runs_is_reached_from_outside(script: Path, tmp_path: Path) -> None:
    words = json.loads(dockerfile()["ENTRYPOINT"])
    assert words[:2] == ["python", dockerfile()["COPY"].split()[1]]
    directory, address, port = words[2:]
    assert Path(directory).parent == Path(dockerfile()["VOLUME"])
    assert port == dockerfile()["EXPOSE"]
    # A service at 127.0.0.1 alone refuses 127.0.0.2, just as it refuses other machines.
    with program(script, tmp_path / "log", address, 0) as process:
        assert noted(int(line(process).split()[1]), [b"order"], "127.0.0.2") == [0]
        assert end(process, signal.SIGTERM) == 0


def test_pod_matches_the_image_and_service_selects_pod() -> None:
    uid = re.search(r"--uid (\d+) .* (\w+)$", dockerfile()["RUN"])
    assert uid is not None and uid[2] == dockerfile()["USER"]
    stateful, service = pod()["StatefulSet"], pod()["Service"]
    of_pod = stateful["spec"]["template"]["spec"]
    assert of_pod["securityContext"] == {"runAsUser": int(uid[1]), "fsGroup": int(uid[1])}
    assert stateful["spec"]["serviceName"] == service["metadata"]["name"]
    labels = stateful["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == stateful["spec"]["selector"]["matchLabels"] == labels
    ports = {port["name"]: port for one in of_pod["containers"] for port in one["ports"]}
    assert str(ports["orders"]["containerPort"]) == dockerfile()["EXPOSE"]
    led = {port["targetPort"]: port["port"] for port in service["spec"]["ports"]}
    assert led == {name: port["containerPort"] for name, port in ports.items()}


def test_backup_unit_may_read_log_and_write_copy() -> None:
    parsed = {}
    for name, text in units().items():
        parsed[name] = configparser.ConfigParser(strict=False)
        parsed[name].optionxform = str  # type: ignore[assignment,method-assign]
        parsed[name].read_string(text)
    writer, backup = parsed["orders.service"]["Service"], parsed["orders-backup.service"]["Service"]
    assert (writer["DynamicUser"], writer["User"]) == (backup["DynamicUser"], backup["User"])
    log, copy = backup["ExecStart"].split()[-2:]
    assert log in writer["ExecStart"].split()
    for unit, places in ((writer, [log]), (backup, [log, copy])):
        owned = {f"/var/lib/{name}" for name in unit["StateDirectory"].split()}
        assert {str(Path(place).parent) for place in places} == owned


def test_the_manifests_are_yaml_and_allow_one_writer() -> None:
    yaml = pytest.importorskip("yaml")
    (rules,) = (yaml.safe_load(block.text) for block in blocks(METRICS, "yaml"))
    alerts = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    known = {f"deedbook_{name}" for name, _, _ in _logs._FAMILIES}
    for name in re.findall(r"deedbook_\w+", " ".join(alerts)):
        assert name.removesuffix("_bucket") in known
    stateful = pod()["StatefulSet"]["spec"]
    assert stateful["replicas"] == 1
    (claim,) = stateful["volumeClaimTemplates"]
    for container in stateful["template"]["spec"]["containers"]:
        assert container["volumeMounts"][0]["name"] == claim["metadata"]["name"]


def test_the_page_names_every_metric() -> None:
    text = METRICS.read_text()
    table = text.split("## The values\n")[1].split("\n## ")[0]
    for name, _, _ in _logs._FAMILIES:
        ends = ("records_total", "bytes_total")
        short = next((f"..._{end}" for end in ends if name.endswith(end)), "")
        assert f"`deedbook_{name}`" in table or (short and f"`{short}`" in table), name
