#!/usr/bin/env bash
# Writes requirements/*.txt from requirements/*.in: every version and hash for
# Python 3.10 and newer, on every system. The tool itself is locked in lock.txt.
set -euo pipefail
cd "$(dirname "$0")/../requirements"

tool=$(mktemp -d)
trap 'rm -rf "$tool"' EXIT
"${PYTHON:-python3}" -m venv "$tool"
"$tool/bin/python" -m pip install --quiet --require-hashes -r lock.txt

# compile NAME [OPTION...]: no index or find-links line, so the files name no registry.
compile() {
    local name=$1
    shift
    echo "== requirements/$name.txt"
    "$tool/bin/uv" pip compile --quiet --upgrade --universal --python-version 3.10 \
        --generate-hashes --no-annotate --no-header --no-emit-index-url --no-emit-find-links \
        "$@" "$name.in" --output-file "$name.txt"
}

# The others take the versions of test.txt, because one environment holds them all.
compile test
for name in build core demo bench docs lock release types; do
    compile "$name" --constraint test.txt
done
