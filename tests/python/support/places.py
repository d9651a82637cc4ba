"""Where things are: the checkout, its pages, the golden bytes of the tests, and these helpers."""

from pathlib import Path

SUPPORT = Path(__file__).resolve().parent
ROOT = SUPPORT.parents[2]
DATA = ROOT / "tests" / "data"
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples" / "python"
