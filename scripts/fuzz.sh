#!/usr/bin/env bash
# Runs every fuzz target for FUZZ_SECONDS (60 by default) and stops at the first find, which it
# leaves in fuzz/crashers/TARGET: commit it, tests/engine/fuzz_corpus.rs replays it from then on.
# What was tried goes to target/trust/fuzz.json.
#
#   FUZZ_SANITIZER=address   with AddressSanitizer; by default none, which is quicker
#   FUZZ_SEED                of libFuzzer (0: another one every time)
#   FUZZ_HOURS               a file that gets a line a target: commit, seconds of processor time, inputs. The
#                            hours of many nights add up in fuzz/hours.tsv
#
# Usage: scripts/fuzz.sh [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${FUZZ_SECONDS:-60}
sanitizer=${FUZZ_SANITIZER:-none}
seed=${FUZZ_SEED:-0}
command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz --locked
# Sanitizers are still behind a switch of the compiler; no other compiler is needed.
[ "$sanitizer" = none ] || export RUSTC_BOOTSTRAP=1

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    # An assignment: in a process substitution its failure would be lost.
    list=$(cargo fuzz list)
    [ -n "$list" ] || { echo "fuzz: there are no targets" >&2; exit 1; }
    while read -r target; do targets+=("$target"); done <<<"$list"
fi
trust=${DEEDBOOK_TRUST_DIR:-target/trust}
mkdir -p "$trust"
scratch=$(mktemp -d)
log=$scratch/log
trap 'rm -rf "$scratch"' EXIT
stat() { sed -n "s/^stat::$1: *//p" "$log" | tail -n 1; }

results=()
for target in "${targets[@]}"; do
    echo "== $target"
    corpus=fuzz/corpus/$target seeds=fuzz/seeds/$target crashers=fuzz/crashers/$target
    mkdir -p "$corpus" "$seeds" "$crashers"
    options=(-max_len=4096 -timeout=20 -rss_limit_mb=2048 -seed="$seed" -print_final_stats=1)
    options+=(-artifact_prefix="$crashers/" -max_total_time="$seconds")
    TIMEFORMAT='%U %S'
    { time cargo fuzz run --sanitizer "$sanitizer" "$target" "$corpus" "$seeds" -- "${options[@]}" \
        >"$log" 2>&1; } 2>"$scratch/seconds" || {
        grep -aE "panicked|left:|right:|ERROR|Test unit|^error|fuzz/src|deedbook::" -A 1 "$log" |
            cut -c 1-300 | head -n 40 || true
        echo "fuzz: $target failed; what it found lies in $crashers" >&2
        exit 1
    }
    grep -a "DONE" "$log" || true
    results+=("    \"$target\": {\"execs\": $(stat number_of_executed_units), \"execs_per_second\": $(stat average_exec_per_sec), \"new_inputs\": $(stat new_units_added)}")
    if [ -n "${FUZZ_HOURS-}" ]; then
        printf '%s\t%s\t%s\t%s\n' "$target" "$(git rev-parse --short=8 HEAD)" \
            "$(awk '{ print int($1 + $2) }' "$scratch/seconds")" "$(stat number_of_executed_units)" >>"$FUZZ_HOURS"
    fi
    rmdir --ignore-fail-on-non-empty "$crashers" 2>/dev/null || true
done
{
    printf '{\n  "sanitizer": "%s",\n' "$sanitizer"
    printf '  "seconds_per_target": %s,\n' "$seconds"
    printf '  "targets": {\n'
    for ((i = 0; i < ${#results[@]}; i++)); do
        [ "$i" -eq $((${#results[@]} - 1)) ] && echo "${results[i]}" || echo "${results[i]},"
    done
    printf '  }\n}\n'
} >"$trust/fuzz.json"
echo "fuzz: ${#targets[@]} targets, nothing found"
