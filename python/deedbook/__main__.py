"""``python -m deedbook`` is the same as ``deedbook``."""

import sys

from deedbook.cli import main

sys.exit(main())
