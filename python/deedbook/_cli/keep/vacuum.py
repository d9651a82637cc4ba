"""``deedbook vacuum``: remove staged files of dead jobs, or give a commit up."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from deedbook import _jobs as jobs
from deedbook._cli.arguments import Commands, add_base, add_dry_run, add_json, add_path, age
from deedbook._cli.terminal.output import Output
from deedbook._formats import require
from deedbook._show.text import count, size

__all__ = ["add_arguments", "run_vacuum"]


def add_arguments(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "vacuum",
        help="remove the staged files of dead jobs",
        description="Remove the staged files of jobs that died before the commit. The command "
        "keeps the files of live jobs, and the files that an unfinished commit needs. The command "
        "cannot ask jobs on other machines, and keeps the files of such jobs until nobody has "
        "written for some days.",
        epilog="examples:\n"
        "  deedbook vacuum events.book --dry-run          print the files to remove, and why\n"
        "  deedbook vacuum events.book --older-than 1h    from jobs on other machines\n"
        "  deedbook vacuum events.book --abandon          give up a commit that cannot end\n\n"
        "The next program that opens the log for writing finishes an unfinished commit. If\n"
        "staged files are missing or damaged, the commit fails, and the log does not open.\n"
        "--abandon then makes the log usable again. Records appended by the commit stay.",
    )
    add_path(parser)
    add_base(parser)
    parser.add_argument(
        "--older-than",
        metavar="TIME",
        type=age,
        default=jobs.OLD_SECONDS,
        help="remove the files of a job on another machine after TIME without a write, for "
        "example 1h (default: 7d)",
    )
    add_dry_run(parser)
    parser.add_argument("--abandon", action="store_true", help="first give up an unfinished commit")
    add_json(parser)
    parser.set_defaults(run=run_vacuum)


def run_vacuum(args: argparse.Namespace, out: Output) -> int:
    """Remove staged files at ``args.path``. Raises `deedbook.Error`."""
    info = require(args.path).format
    with info.open_store(args.path, args.base) as store:
        transactions = store.transactions
        abandoned = transactions.abandon() if args.abandon and not args.dry_run else None
        removed = jobs.vacuum(transactions, args.older_than, args.dry_run)
        left = transactions.staged()
    if args.dry_run:
        gone = {job.job for job in removed}
        left = [job for job in left if job.job not in gone]
    lines = []
    if abandoned is not None:
        lines.append(f"{args.path}: gave up the commit of job {abandoned}")
    would = "would remove" if args.dry_run else "removed"
    lines += [
        f"{would} {count(job.files, 'file')}, {size(job.bytes)}, of {job.job}: {job.why}"
        for job in removed
    ]
    for staged in left:
        why = "its commit has begun" if staged.is_committing else "it may be alive"
        held = f"{count(staged.files, 'file')}, {size(staged.bytes)}"
        lines.append(f"left {held}, of {staged.job}: {why}")
    facts: dict[str, Any] = {
        "format": info.name,
        "path": args.path,
        "abandoned": abandoned,
        "removed": [asdict(job) for job in removed],
        "left": [job.to_dict() for job in left],
    }
    return out.result(args.json, facts, lines or [f"{args.path}: nothing is staged"])
