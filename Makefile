# make help lists the targets. They need Rust 1.90 or newer, Python 3.10 or newer and,
# for demo and test, Java 17 or newer; everything else goes into .venv from the lock files.
#
#   PYTHON=python3.12 make test           another interpreter (.venv is replaced)
#   make demo INPUT=events.jsonl OUT=dir  another input, another place for the result
#   make test DEEDBOOK_TIER=full          the tests with higher counts (tests/tiers.txt)
#   make demo CLUSTER=1                   the pipeline on a master and two nodes of Spark's

PYTHON ?= python3
VENV   ?= .venv
INPUT  ?=
OUT    ?= demo-out
EVENTS ?=
KILLS  ?= 3
RATE   ?= 20
ORDERS ?= 500000
ARGS   ?=
CLUSTER ?=
export PYTHON VENV
# How much the tests try: tests/tiers.txt.
export DEEDBOOK_TIER ?= quick

PY := $(VENV)/bin/python

# Spark starts its workers with this Python, and listens on this machine only.
export PYSPARK_PYTHON        := $(abspath $(PY))
export PYSPARK_DRIVER_PYTHON := $(abspath $(PY))
export SPARK_LOCAL_IP        ?= 127.0.0.1
# The crate of the extension is compiled for this Python.
export PYO3_PYTHON           := $(abspath $(PY))

RUST_TESTS = --workspace --exclude deedbook-python --all-features --locked

.DEFAULT_GOAL := help
.PHONY: help demo test test-all times spark check bench bench-archive bench-engines bench-migrate bench-nostr bench-relay bench-since bench-sizes bench-spark trust models interop relay cargo-mutants stories house public-api fuzz power docs lock release-check clean
.NOTPARALLEL:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-13s %s\n", $$1, $$2 }' Makefile

chaos = PYTHONPATH=tests $(PY) -m chaos --kills $(KILLS) $(if $(CLUSTER),--cluster) $(ARGS)

demo: ## logs in, Spark through, tables and pictures out, killed meanwhile: demo-out
	@scripts/need.sh rust python java
	@scripts/env.sh demo
	$(PY) examples/demo $(if $(INPUT),--input "$(INPUT)") $(if $(EVENTS),--events $(EVENTS)) --out "$(OUT)"
	rm -rf "$(OUT)/pipeline" "$(OUT)/pipeline-input"
	$(chaos) "$(OUT)/pipeline"
	$(if $(INPUT),$(chaos) "$(OUT)/pipeline-input" --from "$(INPUT)" --rate $(RATE))
	$(PY) examples/demo/declarative.py "$(OUT)/declarative" --orders $(ORDERS) $(if $(INPUT),--events "$(INPUT)")

test: ## all tests of Rust and Python, the latter with the wheel installed
	@scripts/need.sh rust python java
	@scripts/env.sh test
	@scripts/nextest.sh $(RUST_TESTS)
	cargo test --doc $(RUST_TESTS)
	@scripts/pytest.sh
	@echo "make test: all Rust and Python tests passed"

test-all: ## the same with all that is too long for each change, and the Spark tests on two versions of PySpark
	$(MAKE) test DEEDBOOK_TIER=full
	@scripts/spark.sh $(ARGS)

times: ## how long each test of the last make test took: tests/times.md
	@$(PYTHON) scripts/times.py --write

spark: ## the Spark tests on the lowest PySpark that is promised, on the newest, and reads on Sail
	@scripts/need.sh rust python java
	@scripts/env.sh test
	@scripts/spark.sh $(ARGS)

check: ## format, lints, types, stubs, documentation, licences
	@scripts/need.sh rust python
	@scripts/env.sh test
	@scripts/env.sh types
	@scripts/check.sh
	@echo "make check: nothing to complain about"

bench: bench-nostr ## measure against the peers: benches/results
	@scripts/need.sh rust python
	@scripts/env.sh bench
	cargo run --release --locked --manifest-path benches/peers/Cargo.toml --target-dir target/peers -- \
		$(filter --quick,$(ARGS))
	$(PY) benches/python/run.py $(ARGS)
	$(if $(filter --quick,$(ARGS)),,$(PY) benches/python/first_minute.py)
	$(PY) benches/python/ledger.py $(filter --quick,$(ARGS))
	$(PY) benches/python/append_check.py $(filter --quick,$(ARGS))

bench-nostr: ## the event store alone beside its peers, and its picture
	@scripts/need.sh rust python
	@scripts/env.sh bench
	cargo run --release --locked --manifest-path benches/nostr_peers/Cargo.toml \
		--target-dir target/nostr-peers -- $(filter --quick,$(ARGS))
	$(if $(filter --quick,$(ARGS)),,$(PY) benches/python/nostr.py)

bench-relay: ## a relay over the event store and over nostr-lmdb, by nostr-bench: benches/results/relay.md
	@scripts/need.sh rust python
	@scripts/env.sh bench
	$(PY) benches/python/relay.py $(ARGS)

bench-sizes: ## a Book next to LMDB from 256 bytes to 64 MiB, in C, Rust and Python: benches/results/sizes.md
	@scripts/need.sh rust python
	@scripts/env.sh bench
	$(PY) benches/python/sizes.py $(ARGS)

bench-engines: ## reads and jobs on Sail next to Spark, by CPU time: benches/results/engines.md
	@scripts/need.sh rust python java
	@scripts/env.sh bench
	@PYTHON=$(PY) scripts/spark.sh make sail
	target/spark/sail/bin/python benches/python/engines.py $(ARGS)

bench-migrate: ## LMDB to books and back, conversions, slots beside packed: benches/results/migrate.md
	@scripts/need.sh rust python
	@scripts/env.sh bench
	$(PY) benches/python/migrate.py $(ARGS)

bench-archive: ## archives next to plain PUT and GET at an S3 server on this machine: benches/results/archive.md
	@scripts/need.sh rust python
	@scripts/env.sh bench
	@scripts/s3.sh
	$(PY) benches/python/archive.py $(ARGS)

bench-since: ## Book's benchmarks beside those before the engine: benches/results/since.md
	@scripts/need.sh rust python
	@scripts/env.sh bench
	$(PY) benches/python/since.py $(ARGS)

bench-spark: ## the speed table of Spark; ARGS='--only workers' (as root), '--only sizes' (25 GB of disk): benches/results
	@scripts/need.sh rust python java
	@scripts/env.sh bench
	$(PY) benches/python/spark_table.py $(ARGS)

trust: ## every proof again: crash states, faults, kills, power cuts, fuzzing, seeded bugs
	@scripts/need.sh rust python
	@DEEDBOOK_TIER=trust scripts/env.sh test
	$(PY) scripts/trust/run.py $(ARGS)

models: ## group commit of every kind of log under a model checker, SHUTTLE_SCHEDULES (1500) each
	@scripts/need.sh rust
	RUSTFLAGS="--cfg shuttle" scripts/nextest.sh --package deedbook --features sim --locked \
		--test models --target-dir target/models

interop: ## beside the real crates: logs of wal-db, each reading the other's; files of transientdb
	@scripts/need.sh rust
	cargo test --manifest-path tests/interop/Cargo.toml --target-dir target/interop --locked

relay: ## the event store behind a relay, with nostr-sdk, nak and go-nostr as its clients
	@scripts/need.sh rust
	@scripts/nak.sh
	cargo clippy --manifest-path nostr/Cargo.toml --all-targets --target-dir target/relay --locked -- -D warnings
	PATH="$(CURDIR)/target/relay/bin:$$PATH" \
		cargo test --manifest-path nostr/Cargo.toml --target-dir target/relay --locked

cargo-mutants: ## mutations of the lines that changed, ARGS="--since COMMIT" or "--all": target/mutants
	@scripts/need.sh rust python
	$(PYTHON) scripts/cargo_mutants.py $(ARGS)

stories: ## each seeded bug of tests/stories.txt, compiled in and switched on, is caught: target/trust/stories.json
	@scripts/need.sh rust python java
	@scripts/env.sh test
	$(PY) scripts/stories.py $(ARGS)

house: ## the structure of the sources in numbers; ARGS=--why names the circles, --write: scripts/house/measures.md
	@scripts/need.sh rust python
	@scripts/env.sh test
	cargo doc --no-deps --all-features --locked --package deedbook
	$(PY) scripts/house/measures.py --doc "$${CARGO_TARGET_DIR:-target}/doc/deedbook" $(ARGS)

public-api: ## the public interface of the crate beside the reviewed list (nightly Rust)
	@scripts/need.sh rust
	@scripts/public_api.sh $(ARGS)

fuzz: ## every fuzz target for FUZZ_SECONDS (60)
	@scripts/need.sh rust
	@scripts/fuzz.sh

power: ## real power cuts, full disks, failing calls (as root): target/trust/power.json
	@scripts/need.sh rust
	@scripts/power.sh

docs: ## the site, and the documentation of the Rust crate in it: target/site
	@scripts/need.sh rust python
	@scripts/env.sh docs
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --exclude deedbook-python --no-deps --all-features --locked
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet
	rm -rf target/site/rustdoc && cp -r "$${CARGO_TARGET_DIR:-target}/doc" target/site/rustdoc

release-check: ## all of a release that needs no forge; ARGS="--tag v0.1.0" or "--only versions,crate"
	@scripts/need.sh rust python
	@scripts/env.sh release
	$(PY) scripts/release/check.py $(ARGS)

lock: ## write requirements/*.txt from requirements/*.in
	@scripts/need.sh python
	@scripts/lock.sh

clean: ## remove what the other targets made
	[ ! -f $(VENV)/.interpreter ] || rm -rf $(VENV)
	rm -rf demo-out .mypy_cache .pytest_cache .ruff_cache .hypothesis spark-warehouse
	cargo clean
