"""Archives of logs in object stores: ``s3://``, ``gs://``, ``az://`` and ``file://``.

Needs the extra ``s3``: ``pip install 'deedbook[s3]'``. The credentials come from the environment.
"""

from deedbook.archive._catalog import Catalog, Entry
from deedbook.archive._check import ArchiveReport, verify

# A name `X as X` is for deedbook.spark alone.
from deedbook.archive._manifest import Manifest as Manifest
from deedbook.archive._read import Archive, open
from deedbook.archive._read import border_of as border_of
from deedbook.archive._read import live_log as live_log
from deedbook.archive._read import windows_of as windows_of
from deedbook.archive._restore import RestoreReport, restore
from deedbook.archive._store import TIMEOUT_SECONDS
from deedbook.archive._store import Store as Store
from deedbook.archive._upload import UploadReport, before_drop, upload
from deedbook.archive._windows import WINDOW_BYTES as WINDOW_BYTES
from deedbook.archive._windows import Folder as Folder
from deedbook.archive._windows import Window as Window
from deedbook.archive._windows import ahead as ahead
from deedbook.archive._windows import fetch as fetch
from deedbook.archive._windows import named as named
from deedbook.archive._windows import splits as splits
from deedbook.archive._windows import whole_end as whole_end
from deedbook.archive._windows import windows as windows

__all__ = [
    "TIMEOUT_SECONDS",
    "Archive",
    "ArchiveReport",
    "Catalog",
    "Entry",
    "RestoreReport",
    "UploadReport",
    "before_drop",
    "open",
    "restore",
    "upload",
    "verify",
]
