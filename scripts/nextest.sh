#!/usr/bin/env bash
# Runs tests of Rust by cargo-nextest: each in a process of its own, with a limit of time (.config/nextest.toml).
# Installs it where it is missing. How long each test took: scripts/times.py.
# Usage: scripts/nextest.sh [argument of cargo nextest run ...]
set -euo pipefail
cd "$(dirname "$0")/.."

cargo nextest --version >/dev/null 2>&1 || {
    echo "nextest: installing cargo-nextest, once for this machine"
    cargo install cargo-nextest --locked --quiet
}
exec cargo nextest run "$@"
