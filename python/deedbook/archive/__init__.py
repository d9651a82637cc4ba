"""Archives of logs in object stores: ``s3://``, ``gs://``, ``az://`` and ``file://``.

Needs the extra ``s3``: ``pip install 'deedbook[s3]'``. The credentials come from the environment.
"""

from deedbook.archive._catalog import Catalog, Entry
from deedbook.archive._check import ArchiveReport, verify
from deedbook.archive._read import Archive, open
from deedbook.archive._restore import RestoreReport, restore
from deedbook.archive._store import TIMEOUT_SECONDS
from deedbook.archive._upload import UploadReport, before_drop, upload

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
