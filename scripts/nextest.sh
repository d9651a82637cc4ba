#!/usr/bin/env bash
# Runs Rust tests with cargo-nextest: each in a process of its own, with a time limit (.config/nextest.toml). Installs
# cargo-nextest if it is missing. scripts/times.py shows the time of each test.
# Usage: scripts/nextest.sh [argument of cargo nextest run ...]
set -euo pipefail
cd "$(dirname "$0")/.."

cargo nextest --version >/dev/null 2>&1 || {
    echo "nextest: installing cargo-nextest, once for this machine"
    cargo install cargo-nextest --locked --quiet
}
exec cargo nextest run "$@"
