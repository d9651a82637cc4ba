#!/usr/bin/env bash
# Makes the virtual environment, installs a lock file into it, builds the wheel and
# installs that. Each step is skipped while what it depends on has not changed.
# Usage: scripts/env.sh demo|test|bench|docs|release|types
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

# The environment belongs to one interpreter: another one (PYTHON=...) replaces it. Nothing is removed but what this
# script began: its mark comes first and stays, so that an environment that is half-made or half-removed has it.
interpreter=$("$python" -c 'import os, sys; print(os.path.realpath(sys.executable), sys.version)')
mark=$venv/.interpreter
if [ ! -f "$mark" ] && [ -n "$(ls -A "$venv" 2>/dev/null)" ]; then
    echo "$venv was not made by make: remove it, or name another place: VENV=.venv-make make ..." >&2
    exit 1
fi
if [ ! -f "$mark" ] || [ "$(cat "$mark")" != "$interpreter" ]; then
    echo "== $venv with $("$python" --version)"
    mkdir -p "$venv"
    echo "not finished" >"$mark"
    find "$venv/" -mindepth 1 -maxdepth 1 ! -name .interpreter -exec rm -rf {} +
    "$python" -m venv "$venv"
    echo "$interpreter" >"$mark"
fi

# The lock files agree with each other (scripts/lock.sh), so one environment holds them all.
if ! cmp -s "$lock" "$venv/.installed-$1"; then
    echo "== $lock"
    "$venv/bin/python" -m pip install --quiet --require-hashes -r "$lock"
    "$venv/bin/python" scripts/pyspark_bytecode.py
    cp "$lock" "$venv/.installed-$1"
fi

# The site is made from the stub; the check of a release builds its own wheels; pyright needs no wheel of ours.
case $1 in docs | release | types) exit 0 ;; esac

# The tests use an installed wheel, not the source tree. The quick tier has it built with the profile of the Rust tests,
# which shares their dependencies; the others test the wheel that a user gets.
profile=release
[ "$1" != test ] || [ "${DEEDBOOK_TIER:-quick}" != quick ] || profile=dev
# Folders are compared too, so that a removed file counts as a change.
sources=(Cargo.toml Cargo.lock README.md LICENSE-* pyproject.toml src python)
if [ "$(cat "$venv/.wheel" 2>/dev/null)" != "$profile" ] ||
    [ -n "$(find "${sources[@]}" -name __pycache__ -prune -o -newer "$venv/.wheel" -print | head -n 1)" ]; then
    echo "== wheel ($profile)"
    started=$(mktemp)
    rm -rf "$wheels"
    "$venv/bin/maturin" build --profile "$profile" --locked --interpreter "$venv/bin/python" --out "$wheels"
    "$venv/bin/python" -m pip install --quiet --force-reinstall --no-deps --no-index "$wheels"/deedbook-*.whl
    echo "$profile" >"$venv/.wheel"
    touch -r "$started" "$venv/.wheel" # the time the build began: a file saved meanwhile is newer
fi
