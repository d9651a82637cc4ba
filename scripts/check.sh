#!/usr/bin/env bash
# Everything that judges the code without running the tests. Stops at the first complaint.
# Needs the environment of scripts/env.sh test, and of scripts/env.sh types.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${VENV:-.venv}

step() {
    echo "== $*"
    "$@"
}

step cargo fmt --all --check
step cargo fmt --manifest-path nostr/Cargo.toml --check
# The Python crate by itself: its feature abi3 is not what is built by default.
step cargo clippy --workspace --exclude deedbook-python --all-targets --all-features --locked -- -D warnings
step cargo clippy -p deedbook-python --locked -- -D warnings
# What few features leave unused.
step cargo clippy --lib --no-default-features --locked -- -D warnings
step cargo clippy --lib --features nostr --locked -- -D warnings
step env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --exclude deedbook-python --no-deps --all-features --locked

# What has a workspace or flags of its own only has to compile here.
step env RUSTFLAGS="--cfg shuttle" cargo test --quiet --no-run --package deedbook --features sim --locked \
    --test models --target-dir target/models
step cargo test --quiet --no-run --manifest-path tests/interop/Cargo.toml --target-dir target/interop --locked
step cargo check --quiet --locked --manifest-path fuzz/Cargo.toml

step "$venv/bin/ruff" format --check .
step "$venv/bin/ruff" check .
step "$venv/bin/python" -m mypy
step "$venv/bin/python" -m mypy --strict examples/python
step env MYPYPATH=examples/pipeline:examples/demo "$venv/bin/python" -m mypy --strict examples/endpoint.py examples/demo \
    examples/pipeline
step "$venv/bin/basedpyright" --project examples/pyrightconfig.json --pythonpath "$venv/bin/python"
allowlist=()
[ ! -f scripts/stubtest-allowlist.txt ] || allowlist=(--allowlist scripts/stubtest-allowlist.txt)
step "$venv/bin/python" -m mypy.stubtest deedbook._core --mypy-config-file pyproject.toml ${allowlist[@]+"${allowlist[@]}"}

step "$venv/bin/shellcheck" scripts/*.sh .ci/run
# Workflows: unpinned actions, kept credentials, text of others in a shell.
step "$venv/bin/zizmor" --offline --no-progress --quiet .github

# Plain sentences, and a list of files still to be rewritten that only shrinks.
step "$venv/bin/python" scripts/prose/gate.py
# Workflows, releases, the trust table, and what pages say of other files.
step "$venv/bin/python" -m pytest -q tests/repository
# What somebody gets who has the wheel and the pages.
step env PYTHON="$venv/bin/python" scripts/stranger.sh

if command -v cargo-deny >/dev/null; then
    step cargo deny --log-level error check bans licenses sources # CI also asks for advisories, which needs the network
else
    echo "== skipped: cargo-deny is not installed (cargo install cargo-deny --locked)"
fi
echo "== note: CI also builds with the oldest Rust allowed (rust-version in Cargo.toml); this is $(rustc --version)"
