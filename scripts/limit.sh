#!/usr/bin/env bash
# Runs a program of cargo's, and ends it after DEEDBOOK_TEST_SECONDS (1500), with its name: a test that
# waits for ever would hold up make test until somebody looks. Cargo starts it: CARGO_TARGET_..._RUNNER.
set -uo pipefail

seconds=${DEEDBOOK_TEST_SECONDS:-1500}
command -v timeout >/dev/null || exec "$@"
# In the foreground, so that Ctrl-C reaches the tests as without it.
timeout --foreground --kill-after=20 "$seconds" "$@"
status=$?
if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
    echo "limit: $1 was ended after $seconds s; DEEDBOOK_TEST_SECONDS gives it more" >&2
fi
exit "$status"
