"""``python -m deedbook`` is the same as ``deedbook``."""

import sys

from deedbook import _early
from deedbook._cli import main

_early.done()
sys.exit(main())
