# Everything a developer does here; `make help` lists it. Set-up happens by itself and is quick when done.
BIN := .venv/bin
SHELL := bash
# Without the notice about the successors of MkDocs.
MKDOCS = NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs
WITH_JAVA = JAVA_HOME="$$(scripts/find_java.sh)" PATH="$(CURDIR)/$(BIN):$$PATH"

# Kernels are compiled before many processes need them, and kept for every clone with the same kernels and versions.
KERNELS = $(BIN)/python -m headrace.kernels --keep "$${XDG_CACHE_HOME:-$$HOME/.cache}/headrace/kernels"
CHECKED = NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=build/checked-kernels

# Each process would otherwise compile 300 test files anew, with their assertions: half of the time of collecting them.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo serve-demo kafka-demo overload-demo kernels test runs kills newest check docs docs-serve bench bench-peers spectrum golden soak clean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name text; do \
		printf '  make %-12s %s\n' "$$name" "$$text"; done

setup:  ## make .venv, install Headrace and its tools, look for Java and install it where that is allowed
	@scripts/setup.sh

demo: setup  ## run four NEXMark queries over a million events on Spark in local mode
	@$(WITH_JAVA) headrace run examples/demo.sql --as stream --head 5

serve-demo: setup  ## a server with queries over bids that come as it runs; Ctrl-C stops both
	@$(WITH_JAVA) python scripts/serve_demo.py

kafka-demo: setup  ## a Kafka broker, bids in a topic, and a query that writes into another one; Ctrl-C stops all
	@$(WITH_JAVA) python scripts/kafka_demo.py

overload-demo: setup  ## three queries under three times the load that can be answered: shares, lag, and a picture of truth and bounds
	@$(BIN)/python scripts/overload_demo.py

kernels: setup  ## compile the kernels, with bounds checks and without, or take them from where they were kept
	@$(KERNELS)
	@$(CHECKED) $(KERNELS)

test: kernels  ## all tests but the longest: kernels and operators with bounds checks, the rest without a JVM, those on Spark
	@# Those on Spark wait for the JVM half of the time, so they run beside the others. What failed is named once more last.
	@$(WITH_JAVA); HEADRACE_LONG_TESTS=named; export JAVA_HOME PATH HEADRACE_LONG_TESTS; mkdir -p build; set -o pipefail; \
	pytest -m "spark and not kills" > build/tests-on-spark.txt 2>&1 & \
	$(CHECKED) pytest -n 2 tests/unit/kernels tests/property/test_operators.py 2>&1 | tee build/tests-with-bounds.txt; bounds=$$?; \
	pytest -n 2 --dist worksteal -m "not spark and not kills" --ignore=tests/property/test_operators.py 2>&1 \
		| tee build/tests-without-spark.txt; plain=$$?; \
	wait $$!; spark=$$?; cat build/tests-on-spark.txt; \
	grep -hE '^(FAILED|ERROR) | of processor time: ' build/tests-*.txt; \
	exit $$((bounds || plain || spark))

runs: kernels  ## the properties that take long again, with all of their examples
	HEADRACE_HYPOTHESIS=runs $(BIN)/pytest -n 2 --dist worksteal -m "runs and not spark"

kills: kernels  ## the tests that end whole runs at every step, without a JVM and on Spark
	@$(WITH_JAVA); export JAVA_HOME PATH; pytest -n 3 --dist worksteal -m kills

# Tests in which data frames of pandas come or go.
FRAMES = tests/unit/engine/test_told_in_python.py tests/unit/test_conversion.py tests/unit/test_first_hour.py \
	tests/unit/engine/inputs/test_relations.py tests/unit/engine/inputs/test_refreshed_relations.py \
	tests/unit/engine/views/test_answers_elsewhere.py tests/unit/engine/views/test_stored.py \
	tests/unit/runtime/sources/test_foreign_types.py tests/unit/runtime/sources/test_tables.py

newest: kernels  ## the tests of data frames with the newest pandas, of which PySpark warns
	@$(BIN)/python -m pip --disable-pip-version-check install --quiet --no-deps --upgrade --target build/newest 'pandas>=3,<4'
	PYTHONPATH=build/newest $(BIN)/pytest -n 2 -p no:cacheprovider -m "not spark and not slow" $(FRAMES)

check: kernels  ## style, types, import layers, every example of the documentation, and its links
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/draw_imports.py
	$(BIN)/python scripts/measure_code.py
	$(WITH_JAVA) python scripts/check_docs.py
	$(MKDOCS) build --strict

docs: setup  ## the documentation as a site, in build/site
	$(MKDOCS) build --strict

docs-serve: setup  ## the same at http://127.0.0.1:8000, built again when a page changes
	$(MKDOCS) serve

bench: setup  ## the benchmarks, NEXMark, what EXPLAIN COST expects, thousands of queries, the server with 10,000 clients, hostile forms of the bids, and a topic of Kafka; writes seven parts of benchmarks/RESULTS.md; takes 20 minutes
	@$(WITH_JAVA) python benchmarks/bench.py --write
	@$(WITH_JAVA) python benchmarks/nexmark.py --write
	@$(WITH_JAVA) python benchmarks/costs.py --write
	@$(WITH_JAVA) python benchmarks/many_selections.py --write
	@$(WITH_JAVA) python benchmarks/serving.py --write
	@$(WITH_JAVA) python benchmarks/forms.py --write
	@$(WITH_JAVA) python benchmarks/topics.py --streaming --write

bench-peers: setup  ## the same queries on Flink, Structured Streaming, Pathway and DuckDB, and how long answers take on Flink; writes two other parts; takes an hour
	@scripts/setup_peers.sh
	@$(WITH_JAVA) python benchmarks/peers.py --write
	@$(WITH_JAVA) python benchmarks/latencies.py --write

spectrum: setup  ## run the three scenarios of the consistency spectrum; draws docs/assets/spectrum.svg
	@$(BIN)/python examples/spectrum/rows.py
	@$(BIN)/headrace spectrum examples/spectrum/machines.sql examples/spectrum/web.sql \
		examples/spectrum/ticker.sql --plot docs/assets/spectrum.svg

golden: setup  ## rewrite the expected results of the golden files from the reference; read the diff
	HEADRACE_GOLDEN=write $(BIN)/pytest tests/golden -m "not spark"
	git diff --stat tests/golden

soak: setup  ## 260 kills, 10,000 epochs, every call of the system failing once, lives of 1,000 seeds, and the property tests with many more examples; takes long
	@$(WITH_JAVA); export JAVA_HOME PATH; HEADRACE_SOAK=1 pytest -s tests/soak
	HEADRACE_HYPOTHESIS=soak $(BIN)/pytest -n 2 tests/property -m "not spark"

clean:  ## remove what the tools leave behind; .venv stays
	rm -rf .mypy_cache .ruff_cache .hypothesis .benchmarks .pytest_cache build dist spark-warehouse
	find src tests benchmarks scripts examples -name __pycache__ -type d -prune -exec rm -rf {} +
