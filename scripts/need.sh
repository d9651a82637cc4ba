#!/usr/bin/env bash
# Checks that what a make target needs is there. Prints one line and exits 1 at the
# first thing that is missing or too old.
# Usage: scripts/need.sh rust|python|java|fuzz ...
set -euo pipefail
cd "$(dirname "$0")/.."

rust_min=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
java_min=17
python=${PYTHON:-python3}

die() {
    echo "missing: $*" >&2
    exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# at_least 1.95.0 1.88: compares the first two numbers of each.
at_least() {
    local a b c d
    IFS=. read -r a b _ <<<"$1.0"
    IFS=. read -r c d _ <<<"$2.0"
    [ "$a" -gt "$c" ] || { [ "$a" -eq "$c" ] && [ "$b" -ge "$d" ]; }
}

need_rust() {
    has cc || die "cc, the C compiler that Rust links with (Debian: apt-get install build-essential; macOS: xcode-select --install)"
    has cargo || die "cargo: install Rust $rust_min or newer (https://rustup.rs)"
    local version
    version=$(rustc --version 2>/dev/null | sed -E 's/^rustc ([0-9]+\.[0-9]+).*/\1/') || true
    [ -n "$version" ] || die "rustc: install Rust $rust_min or newer (https://rustup.rs)"
    at_least "$version" "$rust_min" || die "rustc $rust_min or newer, this one is $version (rustup update stable)"
}

need_python() {
    local version
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) ||
        die "Python 3.10 or newer: '$python' does not run (Debian: apt-get install python3 python3-venv; or name one: PYTHON=/path/to/python make ...)"
    at_least "$version" 3.10 ||
        die "Python 3.10 or newer, '$python' is $version (name another: PYTHON=python3.12 make ...)"
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        die "the venv module of '$python' (Debian: apt-get install python3-venv)"
}

need_java() {
    local java=java version
    [ -z "${JAVA_HOME:-}" ] || java=$JAVA_HOME/bin/java # as Spark chooses it
    version=$("$java" -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p' | head -n 1) || true
    [ -n "$version" ] ||
        die "Java $java_min or newer, for PySpark: '$java' does not run (Debian: apt-get install openjdk-17-jre-headless)"
    at_least "$version" "$java_min" ||
        die "Java $java_min or newer, for PySpark: '$java' is $version (set JAVA_HOME to a newer one)"
}

need_fuzz() {
    has cargo-fuzz || die "cargo-fuzz (cargo install cargo-fuzz --locked)"
    cargo +nightly --version >/dev/null 2>&1 || die "a nightly Rust, for cargo-fuzz (rustup toolchain install nightly)"
    [ -f fuzz/Cargo.toml ] || die "fuzz/Cargo.toml: this checkout has no fuzz targets"
}

for what in "$@"; do
    "need_$what"
done
