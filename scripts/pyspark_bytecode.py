"""Put bytecode into the zip from which Spark's Python workers import pyspark.

Spark forks a worker before importing pyspark, and the zip has only sources: each new worker
compiles the sources again, which takes more than half a second.

    .venv/bin/python scripts/pyspark_bytecode.py
"""

from __future__ import annotations

import importlib.util
import py_compile
import shutil
import tempfile
import zipfile
from pathlib import Path

# Never imported by the workers of these tests.
PASSED_OVER = ("pyspark/ml/", "pyspark/mllib/", "pyspark/pandas/", "pyspark/sql/connect/")


def main() -> None:
    """Add the bytecode, if pyspark is installed and the zip has no bytecode yet."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        return
    archive = Path(spec.origin).parent / "python" / "lib" / "pyspark.zip"
    if "pyspark/worker.pyc" in zipfile.ZipFile(archive).namelist():
        return
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder, archive.name)
        shutil.copy(archive, new)
        with zipfile.ZipFile(new, "a", zipfile.ZIP_DEFLATED) as zipped:
            for name in zipped.namelist():
                is_source = name.endswith(".py") and "/tests/" not in name
                if is_source and not name.startswith(PASSED_OVER):
                    compiled = py_compile.compile(
                        zipped.extract(name, folder),
                        f"{folder}/compiled",
                        str(archive / name),
                        doraise=True,
                        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
                    )
                    zipped.write(compiled, f"{name}c")
        shutil.copy(new, beside := archive.with_suffix(".new"))
        beside.replace(archive)


if __name__ == "__main__":
    main()
