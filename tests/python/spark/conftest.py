"""The tests of Spark, and which packages they need."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest


class OfSpark(pytest.Module):
    """A module of tests with the marker `spark`; skipped, with a reason, without a package."""

    def collect(self) -> Iterable[Any]:
        self.add_marker(pytest.mark.spark)
        for package in ("pyspark", "pyarrow"):
            pytest.importorskip(package, reason=f"{package} is not installed")
        return super().collect()


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> pytest.Module | None:
    """Treat the modules of Spark so, and leave the others to pytest."""
    is_of_spark = module_path.name.startswith("test_spark_")
    return OfSpark.from_parent(parent, path=module_path) if is_of_spark else None
