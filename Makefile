# Commands for contributors. `make` prints a list.

VENV := .venv
BIN := $(VENV)/bin
# Set these on the command line to pass arguments: make test TEST_ARGS="-k qlik", make demo DEMO_ARGS=--help
TEST_ARGS ?=
DEMO_ARGS ?=
LOCK_ARGS ?=
CHAOS_ARGS ?=
BENCH_ARGS ?=
MUTANTS_ARGS ?=
INTEROP_ARGS ?=
CASE_ARGS ?= --help
AUDIT_ARGS ?=
RELEASE_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-quick test-faults chart-check image-check interop chaos soak bench case fuzz mutants lint fmt lock package release-check sbom audit docs clean

help: ## Print this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Create .venv and download the jars; quick when nothing changed.
	@dev/setup.sh

demo: setup ## Run the whole pipeline on this machine and show the tables (DEMO_ARGS).
	@$(BIN)/python -m dev.demo $(DEMO_ARGS)

test: lint ## Check style and types, then run the tests with a real broker and Spark (TEST_ARGS).
	@$(BIN)/python -m dev.run_tests $(TEST_ARGS)

test-quick: setup ## Run the tests that need no broker and no Spark (TEST_ARGS).
	@$(BIN)/python -m dev.run_tests --quick $(TEST_ARGS)

test-faults: setup ## Run the tests that kill processes, brokers and the sink, a few of each kind (TEST_ARGS).
	@$(BIN)/python -m dev.run_tests --faults $(TEST_ARGS)

chart-check: setup ## Lint, render and test the charts and the compose file with tools that are built once (needs Go; TEST_ARGS).
	@$(BIN)/python -m dev.release.charts --build
	@$(BIN)/python -m dev.release.compose --build
	@$(BIN)/python -m dev.release.promtool --build || true
	@$(BIN)/python -m pytest -rs tests/charts $(TEST_ARGS)

image-check: setup ## Build both images without a container engine and run the demo's messages through them (Debian, root).
	@$(BIN)/python -m dev.release.images
	@$(BIN)/python -m pytest -rP tests/images $(TEST_ARGS)

interop: setup ## Run third-party readers on topics of the service (needs a JDK and PostgreSQL; INTEROP_ARGS).
	@$(BIN)/python -m dev.interop $(INTEROP_ARGS)
	@$(BIN)/python -m dev.collector
	@$(BIN)/python -m pytest tests/cdc_core/test_otlp_collector.py

chaos: setup ## Run the whole fault matrix, about two hours, and update docs/reliability.md (CHAOS_ARGS selects cases).
	@$(BIN)/python -m tests.chaos --table docs/reliability.md $(CHAOS_ARGS)
	@$(if $(CHAOS_ARGS),,$(BIN)/python -m tests.chaos.sink)

soak: setup ## Run for 15 minutes at 80 % of the measured peak, and check memory and the age of commits.
	@$(BIN)/python -m tests.chaos.soak

case: setup ## Make a golden test case from a live record, with its values masked (CASE_ARGS="-c FILE TOPIC PARTITION OFFSET NAME ABOUT").
	@$(BIN)/python -m tests.translator.dialects.write_case $(CASE_ARGS)

fuzz: ## Fuzz the readers of the native path, a minute each (needs cargo-fuzz and a nightly compiler; FUZZ_SECONDS).
	@cd translator/_native && for target in json avro; do \
		cargo +nightly fuzz run $$target --fuzz-dir ../../dev/fuzz -- -max_total_time=$(or $(FUZZ_SECONDS),60) || exit 1; \
	done

bench: setup ## Measure the translator and its peers, about an hour (BENCH_ARGS=--short: some minutes), into build/bench.
	@$(BIN)/python -m bench $(BENCH_ARGS)

mutants: setup ## Change one expression at a time, and report what the tests do not notice (MUTANTS_ARGS="--room canal --count 50").
	@$(BIN)/python -m dev.mutants $(MUTANTS_ARGS)

lint: setup ## Check style, format and types; change nothing.
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy --strict
	@$(BIN)/python -m dev.native --check

fmt: setup ## Fix style and format where a tool can.
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

lock: ## Compile the locks from pyproject.toml (LOCK_ARGS=--upgrade raises versions).
	@dev/lock.sh $(LOCK_ARGS)

package: setup ## Build the source distribution and the wheel with the native path into dist, and test the wheel.
	@$(BIN)/python -m dev.release.package
	@$(BIN)/python -m pytest tests/dev/test_package.py $(TEST_ARGS)

release-check: setup ## Build packages and charts into dist, compare two builds, rehearse the signatures; publish nothing (RELEASE_ARGS).
	@$(BIN)/python -m dev.release.charts --build
	@$(BIN)/python -m dev.release.signing --build
	@$(BIN)/python -m dev.release.check $(RELEASE_ARGS)

sbom: image-check ## Write the bills of materials and licenses of both images to build/sbom (builds Syft once, with Go).
	@$(BIN)/python -m dev.release.sbom --build

audit: setup ## Check packages and crates for known vulnerabilities (AUDIT_ARGS for pip-audit).
	@$(BIN)/python -m dev.release.audit $(AUDIT_ARGS)

docs: setup ## Build the documentation site into build/site, and fail on dead links (downloads MkDocs once).
	@$(BIN)/python -m dev.pages.docs_site

clean: ## Remove build results from this checkout; the jars stay in the user's cache.
	@rm -rf $(VENV) .venv.lock build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis \
	    artifacts metastore_db spark-warehouse derby.log
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
