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

# As make test builds it, so that nothing is compiled for it alone.
cargo build --quiet --workspace --exclude deedbook-python --all-features --locked --example power
program=${CARGO_TARGET_DIR:-target}/debug/examples/power
# Mounts and processes of its own, which end with it however it ends, as this script does: writers that are stopped,
# too. In the background, because unshare and the first process of its own pass over Ctrl-C, and this script does not.
apart=(setpriv --pdeathsig KILL unshare --mount --pid --kill-child --mount-proc)
if [ "$(id -u)" -eq 0 ] && "${apart[@]}" true 2>/dev/null; then
    "${apart[@]}" "$program" &
    wait $!
    exit
fi
if [ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null; then
    exec unshare --mount "$program"
fi
exec "$program"
