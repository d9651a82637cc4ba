"""A work queue for one worker: jobs wait in a write-ahead log, and no job is lost.

    python work_queue.py jobs.wal add 'resize photo 1'
    python work_queue.py jobs.wal work

The worker's position is a consumer of the log, moved on after each job. After a kill in the middle
of a job, the worker repeats the job: make your jobs safe to repeat.

Take a database or a message broker instead if several workers share a queue, if jobs have
priorities, delays or deadlines, if you cancel or search waiting jobs, or if other jobs must not
wait for a failing job. A log has one order, and a consumer has one position.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from deedbook import Wal

WORKER = "worker"


def add(path: str, job: str) -> int:
    """Append a job durably. One process at a time appends."""
    with Wal.open(path, "a", lock_timeout=10, retain_consumers=True) as wal:
        if WORKER not in wal.consumers():
            wal.set_consumer(WORKER, wal.head)  # from now on no job is dropped before it is done
        return wal.commit(job.encode())


def work(path: str, do: Callable[[str], None], *, idle_seconds: float | None = None) -> int:
    """Do the jobs in order, and return the number.

    ``idle_seconds``: end after this time without a job.
    """
    done = 0
    with Wal.open(path) as wal:
        start = wal.consumers().get(WORKER, wal.head)
        for record in wal.follow(start, timeout=idle_seconds):
            do(record.payload.decode())  # what it raises leaves the job at the front of the queue
            wal.set_consumer(WORKER, record.next_lsn)
            done += 1
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("log")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("add").add_argument("job")
    worker = verbs.add_parser("work")
    worker.add_argument("--idle", type=float, help="end after so many seconds without a job")
    worker.add_argument("--seconds", type=float, default=0.0, help="how long a job takes here")
    options = parser.parse_args()

    def do(job: str) -> None:
        time.sleep(options.seconds)
        print(job, flush=True)

    if options.verb == "add":
        print(f"LSN {add(options.log, options.job)}")
    else:
        work(options.log, do, idle_seconds=options.idle)


if __name__ == "__main__":
    main()
