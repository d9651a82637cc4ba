"""The page of the shell's commands, docs/commands.md, made from the parser.

python scripts/commands_page.py           writes the page
python scripts/commands_page.py --check   exits with 1 if the page is another one
"""

from __future__ import annotations

import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "commands.md"


def main() -> int:
    """Write the page, or compare it."""
    from deedbook._cli.man import markdown
    from deedbook._cli.parser import EXIT_CODES, whole

    made = markdown(whole(), EXIT_CODES)
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(made, encoding="utf-8")
        return 0
    is_same = PAGE.read_text(encoding="utf-8") == made
    if not is_same:
        print("docs/commands.md is not what scripts/commands_page.py writes", file=sys.stderr)
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
