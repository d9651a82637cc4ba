#!/usr/bin/env bash
# What a stranger tries, from the pages alone: a clean virtual environment with nothing but the wheel, and in it
# the blocks of the README and of the site. A line for each step; ends at the first that fails.
# Usage: scripts/stranger.sh [WHEEL]   (default: the one that scripts/env.sh built)
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
wheels=("${CARGO_TARGET_DIR:-target}"/wheels/make/deedbook-*.whl)
wheel=${1:-${wheels[0]}}
[ -f "$wheel" ] || { echo "stranger: there is no wheel $wheel (scripts/env.sh test builds it)" >&2; exit 2; }

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"$python" -m venv --without-pip "$place/venv"
"$python" -m pip --disable-pip-version-check --quiet --python "$place/venv/bin/python" \
    install --no-index --no-deps "$wheel"
mkdir "$place/home"
pages=$PWD
cd "$place/home"
# Isolated: neither this directory nor the user's packages are looked into.
PATH="$place/venv/bin:$PATH" "$place/venv/bin/python" -I "$pages/scripts/stranger.py" "$pages"
