#!/usr/bin/env bash
# Makes the virtual environment, installs a lock file into it, builds the wheel and
# installs that. Each step is skipped while what it depends on has not changed.
# Usage: scripts/env.sh demo|test|bench|docs|release
set -euo pipefail
cd "$(dirname "$0")/.."

lock=requirements/$1.txt
venv=${VENV:-.venv}
python=${PYTHON:-python3}
wheels=${CARGO_TARGET_DIR:-target}/wheels/make
export PIP_DISABLE_PIP_VERSION_CHECK=1

# Two targets of make at once would install into each other's half-made environment.
if command -v flock >/dev/null; then
    mkdir -p "$(dirname "$venv")"
    exec 9>"$venv.lock"
    flock 9
fi

# The environment belongs to one interpreter: another one (PYTHON=...) replaces it.
interpreter=$("$python" -c 'import os, sys; print(os.path.realpath(sys.executable), sys.version)')
if [ ! -f "$venv/.interpreter" ] || [ "$(cat "$venv/.interpreter")" != "$interpreter" ]; then
    echo "== $venv with $("$python" --version)"
    rm -rf "$venv"
    "$python" -m venv "$venv"
    echo "$interpreter" >"$venv/.interpreter"
fi

# The lock files agree with each other (scripts/lock.sh), so one environment holds them all.
if ! cmp -s "$lock" "$venv/.installed-$1"; then
    echo "== $lock"
    "$venv/bin/python" -m pip install --quiet --require-hashes -r "$lock"
    "$venv/bin/python" scripts/pyspark_bytecode.py
    cp "$lock" "$venv/.installed-$1"
fi

# The site is made from the stub; the check of a release builds its own wheels.
[ "$1" != docs ] && [ "$1" != release ] || exit 0

# What is tested is the wheel that a user gets, not the source tree. Folders are
# compared too, so that a removed file counts as a change.
sources=(Cargo.toml Cargo.lock README.md LICENSE-* pyproject.toml src python)
if [ ! -f "$venv/.wheel" ] ||
    [ -n "$(find "${sources[@]}" -name __pycache__ -prune -o -newer "$venv/.wheel" -print | head -n 1)" ]; then
    echo "== wheel"
    started=$(mktemp)
    rm -rf "$wheels"
    "$venv/bin/maturin" build --release --locked --interpreter "$venv/bin/python" --out "$wheels"
    "$venv/bin/python" -m pip install --quiet --force-reinstall --no-deps --no-index "$wheels"/deedbook-*.whl
    mv "$started" "$venv/.wheel" # the time the build began: a file saved meanwhile is newer
fi
