#!/usr/bin/env bash
# Runs the Spark tests of the tier (DEEDBOOK_TIER) on the lowest PySpark and PyArrow that pyproject.toml
# promises and on the newest, and their batch half on Sail, each in an environment of its own below
# target/spark.
# Needs the wheel of scripts/env.sh test. Usage: scripts/spark.sh [lowest|newest|sail] [pytest option...]
# `scripts/spark.sh make sail` only makes the environment.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
interpreter=$("$python" -c 'import os, sys; print(os.path.realpath(sys.executable), sys.version)')
export PIP_DISABLE_PIP_VERSION_CHECK=1
unset PYSPARK_PYTHON PYSPARK_DRIVER_PYTHON # the tests take the Python that runs them

# What the extra `spark` promises of a package: `pyspark>=4.2,<5`.
promise=$(sed -n 's/^spark = \[\(.*\)\]$/\1/p' pyproject.toml | tr -d '",')
from() { echo "$promise" | sed -n "s/.*\b$1>=\([0-9.]*\).*/\1/p"; }
pyspark=$(from pyspark)
pyarrow=$(from pyarrow)
pandas=$(from pandas)

requirements() {
    case $1 in
    lowest) echo "pyspark==$pyspark.0 pyarrow==$pyarrow.* pandas==$pandas.*" ;;
    newest) echo "pyspark>=$pyspark,<5 pyarrow>=$pyarrow pandas>=$pandas" ;;
    # Sail takes clients up to 4.2.
    sail) echo "pysail==0.7.* pyspark[connect]==4.2.* pyarrow>=$pyarrow pandas>=$pandas" ;;
    *) echo "scripts/spark.sh: $1 is not lowest, newest or sail" >&2 && exit 2 ;;
    esac
}

make_environment() {
    local venv=target/spark/$1
    # Of another interpreter than the wheel it would be of no use: it is replaced, as scripts/env.sh does.
    if [ ! -f "$venv/.interpreter" ] || [ "$(cat "$venv/.interpreter")" != "$interpreter" ]; then
        rm -rf "$venv"
        "$python" -m venv "$venv"
        echo "$interpreter" >"$venv/.interpreter"
    fi
    # shellcheck disable=SC2046  # three requirements
    "$venv/bin/python" -m pip install --quiet --upgrade --upgrade-strategy eager pytest hypothesis \
        'deltalake>=1.2,<2' 'obstore>=0.10,<0.13' \
        'backports.zstd>=1; python_version < "3.14"' \
        $(requirements "$1")
    "$venv/bin/python" -m pip install --quiet --force-reinstall --no-deps --no-index \
        "${CARGO_TARGET_DIR:-target}"/wheels/make/deedbook-*.whl
    "$venv/bin/python" -c 'import pyarrow, pyspark, sys
print(f"== PySpark {pyspark.__version__}, PyArrow {pyarrow.__version__}, Python", sys.version.split()[0])'
}

run() {
    local venv=target/spark/$1 which=$1
    make_environment "$1"
    shift
    if [ "$which" = sail ]; then
        "$venv/bin/python" -m pytest tests/python/spark/connect/test_sail.py "$@"
        DEEDBOOK_ENGINE=sail "$venv/bin/python" -m pytest tests/python/spark/read \
            tests/python/spark/write tests/python/spark/jobs/test_spark_{export,verify}.py "$@"
        return
    fi
    # Of the pipeline its streaming form.
    "$venv/bin/python" -m pytest -m spark tests/python/spark \
        tests/python/pipeline/test_pipeline_forms.py::test_streaming_takes_every_line_once "$@"
}

case ${1-} in
lowest | newest | sail) run "$@" ;;
make) make_environment "$2" ;;
*)
    run lowest "$@"
    run newest "$@"
    run sail "$@"
    ;;
esac
