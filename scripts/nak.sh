#!/usr/bin/env bash
# Installs nak, the Nostr client in Go that a test of nostr/ runs: into target/relay/bin. Without Go, or without its
# modules, that test is skipped, so this never fails.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

version=v0.18.7
bin=$PWD/target/relay/bin

if [ "$(cat "$bin/nak.version" 2>/dev/null)" = "$version" ]; then
    echo "nak: $version"
elif ! command -v go >/dev/null; then
    echo "nak: no go; its test is skipped (https://go.dev/dl)"
elif mkdir -p "$bin" && GOBIN=$bin GOFLAGS=-buildvcs=false nice -n 19 \
    go install "github.com/fiatjaf/nak@$version"; then
    echo "$version" >"$bin/nak.version"
    echo "nak: installed $version"
else
    echo "nak: go install nak@$version failed; its test is skipped" >&2
fi
exit 0
