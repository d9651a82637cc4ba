#!/usr/bin/env bash
# Installs the C library with cargo-c into a directory of its own, and runs the test programs against what
# was installed: found by pkg-config, with the shared and with the static library. Installs cargo-c if it
# is missing (some minutes). Needs a C compiler and pkg-config.
set -euo pipefail
cd "$(dirname "$0")/.."
read -ra compiler <<<"${CC:-cc}"
for tool in "${compiler[0]}" pkg-config; do
    command -v "$tool" >/dev/null || { echo "$tool is missing: install a C compiler and pkg-config" >&2; exit 1; }
done
# The newest one that the oldest Rust allowed can build.
cargo capi --version >/dev/null 2>&1 || cargo install cargo-c --locked --version 0.10.19+cargo-0.93.0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Without symbols the library has a tenth of the size.
CARGO_PROFILE_RELEASE_STRIP=symbols \
    cargo cinstall --package deedbook-capi --release --locked --prefix /usr/local --destdir "$work"

PKG_CONFIG_PATH=$(dirname "$(find "$work" -name deedbook.pc)")
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR=$work
libs=$(dirname "$PKG_CONFIG_PATH")
read -ra flags <<<"$(pkg-config --cflags deedbook)"
read -ra shared <<<"$(pkg-config --libs deedbook)"
# The library itself in place of the two words that find it.
read -ra static <<<"$(pkg-config --static --libs deedbook | sed "s|-L[^ ]* -ldeedbook|$libs/libdeedbook.a|")"
for program in book slots; do
    for kind in shared static; do
        case $kind in # a name for another variable needs bash 4, and macOS has 3.2
        shared) link=("${shared[@]}") ;;
        static) link=("${static[@]}") ;;
        esac
        "${compiler[@]}" -std=gnu99 -Wall -Wextra -Werror -O1 "${flags[@]}" "capi/tests/$program.c" \
            -o "$work/$program-$kind" "${link[@]}"
        mkdir "$work/home-$program-$kind"
        said=$(LD_LIBRARY_PATH=$libs DYLD_LIBRARY_PATH=$libs \
            "$work/$program-$kind" "$work/home-$program-$kind" tests/data/book 2>"$work/said") ||
            { cat "$work/said" >&2; exit 1; }
        echo "$program.c with the $kind library: $said"
    done
done
