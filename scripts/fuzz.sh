#!/usr/bin/env bash
# Runs every fuzz target for FUZZ_SECONDS (60 by default) and stops at the first find, which it
# leaves in fuzz/crashers/TARGET: commit it, tests/fuzz_corpus.rs replays it from then on.
# What was tried goes to target/trust/fuzz.json.
#
#   FUZZ_RUNS                so many inputs instead of a time, and without fuzz/corpus: the same
#                            sources and seed try the same inputs however quick the machine is (on
#                            Linux, with cc and setarch). A list like "20000 mark=9000" gives some
#                            targets numbers of their own
#   FUZZ_SANITIZER=address   with AddressSanitizer; by default none, which is quicker
#   FUZZ_SEED                of libFuzzer (0: another one every time; with FUZZ_RUNS 1)
#
# Usage: scripts/fuzz.sh [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${FUZZ_SECONDS:-60}
runs=${FUZZ_RUNS:-}
sanitizer=${FUZZ_SANITIZER:-none}
seed=${FUZZ_SEED:-${runs:+1}}
command -v cargo-fuzz >/dev/null || {
    echo "missing: cargo-fuzz (cargo install cargo-fuzz --locked)" >&2
    exit 1
}
# Sanitizers are still behind a switch of the compiler; no other compiler is needed.
[ "$sanitizer" = none ] || export RUSTC_BOOTSTRAP=1

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    while read -r target; do targets+=("$target"); done < <(cargo fuzz list)
fi
trust=${DEEDBOOK_TRUST_DIR:-target/trust}
mkdir -p "$trust"
scratch=$(mktemp -d)
log=$scratch/log
trap 'rm -rf "$scratch"' EXIT
stat() { sed -n "s/^stat::$1: *//p" "$log" | tail -n 1; }
# The number of runs of a target.
runs_of() {
    local number="" one
    for one in $runs; do
        case $one in
        "$1="*) number=${one#*=} && break ;;
        *=*) ;;
        *) number=$one ;;
        esac
    done
    echo "$number"
}

# Where nothing depends on time or on addresses: libFuzzer keeps compared values by the place of the
# comparison.
still=()
if [ -n "$runs" ]; then
    cargo fuzz build --sanitizer "$sanitizer"
    built=${CARGO_TARGET_DIR:-fuzz/target}/$(rustc -vV | sed -n 's/^host: //p')/release
    if cc -shared -fPIC -O1 -o "$scratch/clock.so" scripts/fuzz/clock.c && setarch -R true; then
        still=("LD_PRELOAD=$scratch/clock.so" setarch -R)
    else
        echo "fuzz: another run may try other inputs" >&2
    fi
fi

results=()
for target in "${targets[@]}"; do
    echo "== $target"
    corpus=fuzz/corpus/$target seeds=fuzz/seeds/$target crashers=fuzz/crashers/$target
    mkdir -p "$seeds" "$crashers"
    options=(-max_len=4096 -timeout=20 -rss_limit_mb=2048 -seed="${seed:-0}" -print_final_stats=1)
    options+=(-artifact_prefix="$crashers/")
    if [ -n "$runs" ]; then
        # No directory of seeds, because libFuzzer takes its files in the order of the file system.
        printf '%s\n' "$seeds"/* | LC_ALL=C sort | paste -sd, >"$scratch/seeds"
        mkdir "$scratch/$target"
        options+=(-runs="$(runs_of "$target")" -seed_inputs="@$scratch/seeds" -reload=0)
        options+=("$scratch/$target")
        command=(env "${still[@]}" "$built/$target" "${options[@]}")
    else
        mkdir -p "$corpus"
        options+=(-max_total_time="$seconds")
        command=(cargo fuzz run --sanitizer "$sanitizer" "$target" "$corpus" "$seeds" -- "${options[@]}")
    fi
    "${command[@]}" >"$log" 2>&1 || {
        grep -aE "panicked|left:|right:|ERROR|Test unit|^error|fuzz/src|deedbook::" -A 1 "$log" |
            cut -c 1-300 | head -n 40 || true
        echo "fuzz: $target failed; what it found lies in $crashers" >&2
        exit 1
    }
    grep -a "DONE" "$log" || true
    results+=("    \"$target\": {\"execs\": $(stat number_of_executed_units), \"execs_per_second\": $(stat average_exec_per_sec), \"new_inputs\": $(stat new_units_added)}")
    rmdir --ignore-fail-on-non-empty "$crashers" 2>/dev/null || true
done
{
    printf '{\n  "sanitizer": "%s",\n' "$sanitizer"
    if [ -n "$runs" ]; then
        printf '  "runs_per_target": "%s",\n  "seed": %s,\n' "$runs" "$seed"
    else
        printf '  "seconds_per_target": %s,\n' "$seconds"
    fi
    printf '  "targets": {\n'
    for ((i = 0; i < ${#results[@]}; i++)); do
        [ "$i" -eq $((${#results[@]} - 1)) ] && echo "${results[i]}" || echo "${results[i]},"
    done
    printf '  }\n}\n'
} >"$trust/fuzz.json"
echo "fuzz: ${#targets[@]} targets, nothing found"
