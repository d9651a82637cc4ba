#!/usr/bin/env bash
# Installs the programs that some tests and the power cuts need: strace, rsync, mkfs and xfs_io of ext4 and XFS;
# of Debian, as root. Elsewhere it says what to install. Without them those tests are skipped, so this never fails.
set -uo pipefail

# The package of a program. macOS has bash 3.2, which has no tables.
package() {
    case $1 in
    mkfs.ext4) echo e2fsprogs ;;
    mkfs.xfs | xfs_io) echo xfsprogs ;;
    *) echo "$1" ;;
    esac
}

missing=()
for program in strace mkfs.ext4 mkfs.xfs xfs_io rsync; do
    command -v "$program" >/dev/null 2>&1 || missing+=("$(package "$program")")
done

install() {
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; } >/dev/null 2>&1
}

if [ "${#missing[@]}" -eq 0 ]; then
    echo "tools: all there"
elif [ "$(id -u)" -ne 0 ] || [ ! -f /etc/debian_version ]; then
    echo "tools: some tests are skipped (Debian: sudo apt-get install ${missing[*]})"
elif install; then
    echo "tools: installed ${missing[*]}"
else
    echo "tools: apt-get install ${missing[*]} failed; some tests are skipped" >&2
fi
exit 0
