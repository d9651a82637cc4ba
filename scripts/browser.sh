#!/usr/bin/env bash
# Installs the browser in which tests look at pages: chromium and chromium-driver of Debian, as root, unless
# there is one, or Google's Chrome, with its driver. Elsewhere it says what to install. Without a browser those
# tests are skipped, so this never fails.
set -uo pipefail

packages="chromium chromium-driver"

have() {
    chrome=$(command -v chromium || command -v google-chrome) && command -v chromedriver >/dev/null
}

install() {
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086 # two words
    timeout 60 apt-get -qq update &&
        timeout 180 apt-get -qq install --yes --no-install-recommends $packages >/dev/null
}

if have; then
    echo "browser: $("$chrome" --version 2>/dev/null | head -n 1)"
elif [ "$(id -u)" -ne 0 ] || [ ! -f /etc/debian_version ]; then
    echo "browser: none; tests that look at pages are skipped (Debian: sudo apt-get install $packages)"
elif install && have; then
    echo "browser: installed $("$chrome" --version 2>/dev/null | head -n 1)"
else
    echo "browser: apt-get install $packages failed; tests that look at pages are skipped" >&2
fi
exit 0
