#!/usr/bin/env bash
# All tests of Python, in two processes: those of Spark wait for a JVM a good part of their time, and the others use it.
# The others' output comes when both have ended.
set -uo pipefail
cd "$(dirname "$0")/.."
python=${VENV:-.venv}/bin/python

log=$(mktemp)
"$python" -m pytest -m "not spark" </dev/null >"$log" 2>&1 &
others=$!
echo "== the tests that need no Spark run beside these, into $log"
"$python" -m pytest -m spark </dev/null &
spark=$!
stop() {
    kill -INT "$spark" "$others" 2>/dev/null
    wait
    cat "$log"
    rm -f "$log"
    exit "$1"
}
trap 'stop 130' INT
trap 'stop 143' TERM

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
