#!/usr/bin/env bash
# Real faults on real file systems: power cuts, full disks, failing system calls, kills.
# Needs root for the mounts (and e2fsprogs, xfsprogs), cc for the shim, strace: see scripts/tools.sh; what is
# missing is skipped with a reason. Results: target/trust/power.json.
#
#   DEEDBOOK_POWER_CYCLES=10000 scripts/power.sh   power cuts per file system and layout (100)
#   DEEDBOOK_POWER_FORMAT=wal scripts/power.sh     book (both layouts), slots, wal, ledger or store alone
#   DEEDBOOK_POWER_ONLY=cuts,shim scripts/power.sh   some parts only
#   DEEDBOOK_POWER_SEED, DEEDBOOK_TRUST_DIR
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --quiet --release --locked --features nostr --example power
program=${CARGO_TARGET_DIR:-target}/release/examples/power
# Mounts of its own, which end with it even if it is killed.
if [ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null; then
    exec unshare --mount "$program"
fi
exec "$program"
