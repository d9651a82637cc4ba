"""Makes the project of Spark Declarative Pipelines of a pipeline: ``python project.py FOLDER``.

FOLDER has ``pipeline.json`` and ``gold.sql``; the project is its ``declarative``. Run again, it
brings the project up to date, and leaves alone what a run made.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).absolute().parent
sys.path.insert(0, str(HERE.parent))
from steps import Source, create_bronze  # noqa: E402


def make(folder: Path) -> Path:
    """Write the project, and make the logs: a sink's log must be there before the first run."""
    project = folder.absolute() / "declarative"
    for name in ("conf", "transformations"):
        shutil.copytree(HERE / name, project / name, dirs_exist_ok=True)
    shutil.copy(HERE.parent / "steps.py", project)
    shutil.copy(folder / "gold.sql", project / "transformations")
    spec = (HERE / "spark-pipeline.yml").read_text()
    # Spark wants an absolute URL.
    spec = spec.replace("file:///PROJECT", project.as_uri())
    (project / "spark-pipeline.yml").write_text(spec)
    for one in json.loads((folder / "pipeline.json").read_text())["sources"]:
        source = Source(one["name"], one["path"], bronze=one.get("bronze", "book"))
        create_bronze(source, project / "bronze" / source.name)
    return project


if __name__ == "__main__":
    print(f"cd {make(Path(sys.argv[1]))} && SPARK_CONF_DIR=conf spark-pipelines run")
