"""A small pipeline that has run once: what tests of its check and its report share."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

__all__ = ["run_once"]

_CONFIG = """
[pipeline]
name = "checked"
directory = "out"
checkpoints = "kept/checkpoints"
window = "10m"

[[source]]
name = "files"
lines = "in/files"
bronze = "nostr"

[[source]]
name = "orders"
log = "in/app.wal"
bronze = "book"

[[source]]
name = "spool"
log = "in/spool"
bronze = "wal"

[tables]
silver = ["parquet", "delta"]
"""


def run_once(home: Path) -> None:
    """Make a pipeline that has read everything, and what a follower saw of it.

    What the run had to say is in ``said.txt``.
    """
    from deedbook.pipeline.config import load
    from deedbook.pipeline.follow import follow
    from deedbook.pipeline.generate import start

    (home / "pipeline.toml").write_text(_CONFIG)
    assert start(home / "in", events=900, seed=5).wait().complete
    followed: list[Any] = []
    stop = threading.Event()
    config = load(home / "pipeline.toml")
    # It waits for logs that are not there yet.
    follower = threading.Thread(target=lambda: followed.extend(follow(config, stop)))
    follower.start()
    try:
        command = [sys.executable, "-m", "deedbook", "pipeline", "run", "pipeline.toml", "--once"]
        few = ["--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2"]
        with (home / "said.txt").open("wb") as said:
            run = subprocess.run([*command, *few], cwd=home, stderr=said, timeout=280)
    finally:
        stop.set()
        follower.join()
    logs = (home / "said.txt", home / "out" / "spark.log")
    # There are bad lines, which are put aside.
    assert run.returncode == 1, [log.read_text()[-2000:] for log in logs]
    assert [one.error for one in followed] == [None] * 3
    # Again, from what it noted on.
    followed = follow(config, threading.Event(), idle_seconds=1.0)
    assert [one.error for one in followed] == [None] * 3 and all(one.records for one in followed)
