"""A trial of the pipeline: ``python -m chaos DIRECTORY --kills 20``, in ``tests``."""

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from chaos.kills.chaos import Kill
from chaos.runs import TrialError
from chaos.trial import Trial
from deedbook import Error


def main() -> int:
    """Run a trial, and print what was killed and the table of the checks; 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="a new one")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float, default=100.0, help="events a second")
    parser.add_argument("--from", dest="source", type=Path, help="real events, as JSON lines")
    parser.add_argument("--cluster", action="store_true", help="a master and two nodes of Spark's")
    parser.add_argument("--no-troubles", action="store_true", help="kill only")
    asked = parser.parse_args()
    trial = Trial(
        asked.directory.absolute(),
        asked.seed,
        asked.source,
        asked.rate,
        cluster=asked.cluster,
        troubles=not asked.no_troubles,
    )
    try:
        ended = trial.run(asked.kills, tell)
    except (TrialError, Error, OSError) as error:
        print(f"chaos: {error}", file=sys.stderr)
        return 2
    (trial.directory / "trial.json").write_text(json.dumps(asdict(ended), indent=1) + "\n")
    for one in ended.checks:
        print(f"{'ok    ' if one.ok else 'FAILED'} {one.name}: {one.expected}; found {one.found}")
    for reason in ended.not_tried:
        print(f"not tried: {reason}")
    killed = Counter(kill.target for kill in ended.kills if kill.is_kill)
    troubles = len(ended.kills) - killed.total()
    failed = sum(not one.ok for one in ended.checks)
    names = ", ".join(f"{name} {count}" for name, count in killed.most_common())
    print(
        f"{killed.total()} kills ({names}) and {troubles} troubles in {ended.seconds:.0f} s;"
        f" {failed} of {len(ended.checks)} checks failed"
    )
    return 1 if failed else 0


def tell(kill: Kill) -> None:
    seen = "" if kill.seen else ", not seen"
    print(f"{kill.target}: {kill.moment}{seen}, {kill.seconds:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
