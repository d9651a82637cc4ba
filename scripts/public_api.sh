#!/usr/bin/env bash
# Compares the public interface of the crate, every item with its methods and types, with scripts/house/public-api.txt;
# --write writes the file. cargo-public-api reads the JSON of rustdoc, so it needs a nightly Rust:
# rustup toolchain install nightly --profile minimal
# Usage: scripts/public_api.sh [--write]
set -euo pipefail
cd "$(dirname "$0")/.."

page=scripts/house/public-api.txt
cargo public-api --version >/dev/null 2>&1 || cargo install cargo-public-api --version 0.52.0 --locked --quiet
new=$(mktemp)
trap 'rm -f "$new"' EXIT
cargo public-api --package deedbook --all-features -sss >"$new"
if [ "${1:-}" = --write ]; then
    cp "$new" "$page"
elif ! diff -u "$page" "$new"; then
    echo "public-api: the interface differs from $page: review the lines above, then run scripts/public_api.sh --write" >&2
    exit 1
fi
