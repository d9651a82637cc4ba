"""The command ``deedbook``. It is no part of the package, whose loading Ctrl-C may interrupt."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> int:
    """Run the command line; Ctrl-C while its modules load is one line and exit code 130, too."""
    try:
        from deedbook._cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("deedbook: interrupted\n")
        return 130
    return run()
