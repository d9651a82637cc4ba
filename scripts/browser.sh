#!/usr/bin/env bash
# Installs the browser in which a test looks at the pipeline's report: chromium and chromium-driver of
# Debian, as root. Elsewhere it says what to install. Without them that test is skipped, so this never
# fails.
set -uo pipefail

packages="chromium chromium-driver"

have() { command -v chromium >/dev/null 2>&1 && command -v chromedriver >/dev/null 2>&1; }

install() {
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086 # two words
    timeout 60 apt-get -qq update &&
        timeout 180 apt-get -qq install --yes --no-install-recommends $packages >/dev/null
}

if have; then
    echo "browser: $(chromium --version 2>/dev/null | head -n 1)"
elif [ "$(id -u)" -ne 0 ] || [ ! -f /etc/debian_version ]; then
    echo "browser: none; a test of the report is skipped (Debian: sudo apt-get install $packages)"
elif install && have; then
    echo "browser: installed $(chromium --version 2>/dev/null | head -n 1)"
else
    echo "browser: apt-get install $packages failed; a test of the report is skipped" >&2
fi
exit 0
