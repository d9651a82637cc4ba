#!/usr/bin/env bash
# Installs the S3 server that the tests of archives start on this machine: versitygw, built by Go, next to the Python of
# the tests. Without Go, or without its modules, those tests are skipped, so this never fails.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

version=v1.8.0
bin=$(cd "${VENV:-.venv}/bin" 2>/dev/null && pwd) || bin=
program=$bin/versitygw

if [ -z "$bin" ]; then
    echo "s3: no ${VENV:-.venv}: run scripts/env.sh test first; tests of S3 are skipped"
elif [ -x "$program" ] && [ "$(cat "$program.version" 2>/dev/null)" = "$version" ]; then
    echo "s3: versitygw $version"
elif ! command -v go >/dev/null; then
    echo "s3: no go; tests of S3 are skipped (https://go.dev/dl)"
elif GOBIN=$bin GOFLAGS=-buildvcs=false nice -n 19 \
    go install "github.com/versity/versitygw/cmd/versitygw@$version"; then
    echo "$version" >"$program.version"
    echo "s3: installed versitygw $version"
else
    echo "s3: go install versitygw@$version failed; tests of S3 are skipped" >&2
fi
exit 0
