#!/usr/bin/env bash
# Compiles Vere's own test program of Book against our header, and runs it with the static and with the
# shared library. Its source is Vere's, so it is no part of this tree.
# Usage: scripts/vere_tests.sh PATH: a checkout of Vere, or its book_tests.c
set -euo pipefail
[ $# -eq 1 ] || { sed -n 's/^# Usage: /usage: /p' "$0" >&2; exit 2; }
source=$1
[ ! -d "$source" ] || source=$source/pkg/vere/book_tests.c
[ -f "$source" ] || { echo "no file $source" >&2; exit 1; }
source=$(cd "$(dirname "$source")" && pwd)/$(basename "$source")
cd "$(dirname "$0")/.."

cargo build --package deedbook-capi --release --locked
libs=${CARGO_TARGET_DIR:-target}/release
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The program includes "db/book.h": ours, with types of its own, as Vere's headers ask for all of Vere. A
# copy of the source, because quotes look beside the including file first, where Vere's header lies.
mkdir -p "$work/db"
cp capi/include/book.h "$work/db/book.h"
cp "$source" "$work/book_tests.c"
system=(-lm)
[ "$(uname)" != Linux ] || system=(-lgcc_s -lpthread -lm -ldl)

for library in libdeedbook_capi.a "$(cd "$libs" && ls libdeedbook_capi.so libdeedbook_capi.dylib 2>/dev/null)"; do
    echo "== $library"
    "${CC:-cc}" -O1 -DDEEDBOOK_OWN_TYPES -I "$work" "$work/book_tests.c" -o "$work/book_tests" \
        "$libs/$library" "${system[@]}"
    LD_LIBRARY_PATH=$libs DYLD_LIBRARY_PATH=$libs "$work/book_tests"
done
