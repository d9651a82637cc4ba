#!/usr/bin/env bash
# All tests of Python, in two processes: those of Spark wait for a JVM a good part of their time, and the others use it.
# The others' output comes when both have ended.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
python=${VENV:-.venv}/bin/python
# scripts/times.py reads how long each test took.
target=${CARGO_TARGET_DIR:-target}

log=$(mktemp)
running=()
# Ctrl-C reaches both by itself, but not before they listen: a job in the background begins deaf to it.
stop() {
    trap '' INT TERM
    [ "$1" -eq 130 ] || kill -INT ${running[@]+"${running[@]}"} 2>/dev/null
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        kill -0 ${running[@]+"${running[@]}"} 2>/dev/null || break
        sleep 1
    done
    kill ${running[@]+"${running[@]}"} 2>/dev/null
    wait
    cat "$log"
    rm -f "$log"
    exit "$1"
}
trap 'stop 130' INT
trap 'stop 143' TERM

"$python" -m pytest -m "not spark" --junitxml "$target/junit-python.xml" </dev/null >"$log" 2>&1 &
others=$!
running+=("$others")
echo "== the tests that need no Spark run beside these, into $log"
"$python" -m pytest -m spark --junitxml "$target/junit-spark.xml" </dev/null &
spark=$!
running+=("$spark")

wait "$spark"
of_spark=$?
wait "$others"
of_others=$?
echo "== the tests that need no Spark"
cat "$log"
rm -f "$log"
[ "$of_spark" -eq 0 ] && [ "$of_others" -eq 0 ] || {
    echo "pytest: the tests of Spark ended with $of_spark, the others with $of_others" >&2
    exit 1
}
