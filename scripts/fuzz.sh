#!/usr/bin/env bash
# Runs every fuzz target for FUZZ_SECONDS (60 by default) and stops at the first find.
# Usage: scripts/fuzz.sh [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    while read -r target; do targets+=("$target"); done < <(cargo +nightly fuzz list)
fi
for target in ${targets[@]+"${targets[@]}"}; do
    echo "== $target"
    cargo +nightly fuzz run "$target" -- -max_total_time="${FUZZ_SECONDS:-60}"
done
echo "fuzz: ${#targets[@]} targets, nothing found"
