# The commands of this project. Each sets up what it needs; a second run reuses it.
.PHONY: help setup demo test test-all test-spark spark-tests lint docs format lock bench house refresh screenshots clean
.DELETE_ON_ERROR:

PYTHON ?= python3
JOBS ?= 2
BIN := .venv/bin
# Each worker begins with a half of the tests in their order, so that what tests of a file share is made once.
PYTEST := $(BIN)/pytest -n $(JOBS) --dist worksteal

# One thread each for BLAS and OpenMP: tests run side by side, and sums keep their order. One set of instructions, which
# every x86-64 of the last ten years has, for BLAS, numpy and numba: others round otherwise, and a search over policies may
# end elsewhere.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export OPENBLAS_CORETYPE := Haswell
export NPY_DISABLE_CPU_FEATURES := X86_V4 AVX512_ICL AVX512_SPR
export NUMBA_CPU_NAME := haswell
export NUMBA_CPU_FEATURES :=
export MPLBACKEND := agg

help:
	@echo "make setup   create .venv with everything for development, and compile its loops"
	@echo "make demo    run titrant on built-in data; leaves report.html"
	@echo "make test    run the tests of every kind, in about five minutes"
	@echo "make test-all  run them with coverage, and the tests that take long"
	@echo "make test-spark  run the tests of Spark in .venv-spark (needs Java 17)"
	@echo "make lint    ruff, mypy --strict, import-linter, spelling"
	@echo "make docs    build the site of docs/ into site/ and check its links"
	@echo "make format  let ruff rewrite what it can"
	@echo "make lock    resolve the dependencies anew (needs uv)"
	@echo "make bench   measure speed side by side with other packages"
	@echo "make house   size of the source, imports between rooms, depth and number of kernel calls"
	@echo "make refresh PAGES=…  run the blocks of pages and write what they print into them"
	@echo "make screenshots  take the pictures of the README anew (needs chromium)"
	@echo "make clean   remove .venv, .venv-spark, caches and report.html"

# ── environment ──────────────────────────────────────────────────────────────────────────────────
# The pip of $(PYTHON) installs into .venv, so the venv needs neither ensurepip nor a pip of its own.
PIP_INTO := $(PYTHON) -m pip --disable-pip-version-check --python
PIP := $(PIP_INTO) $(BIN)/python install --quiet

.venv/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	  "titrant needs Python 3.11 or newer, this is %d.%d. Try: make PYTHON=python3.12 ..." % sys.version_info[:2])'
	$(PYTHON) -m venv --clear --without-pip .venv
	@touch $@

# The locks name every package, so nothing is resolved anew: an older pip takes `coverage[toml]` of pytest-cov for a wish
# for the newest coverage, and stops the day that one is released.
# .venv/run holds the runtime packages, .venv/dev those of the tests and checks besides.
.venv/run .venv/dev: .venv/%: requirements/%.lock pyproject.toml | .venv/created
	@echo "Installing requirements/$*.lock into .venv (a few minutes the first time)"
	$(PIP) --no-deps --require-hashes -r requirements/$*.lock
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

# What numba compiles is compiled here rather than in the first test that needs it.
.venv/warm: .venv/dev $(shell find src -path '*/compiled/*.py')
	$(BIN)/titrant warm-up
	@touch $@

setup: .venv/warm

# ── what people run ──────────────────────────────────────────────────────────────────────────────
# The runtime packages suffice for the demo; a development environment holds them too.
demo: $(or $(wildcard .venv/dev),.venv/run)
	$(BIN)/titrant demo

test: setup
	$(PYTEST) -m "not long" $(WATCH)

# What numba compiles runs outside the tracer: its tests run again as plain Python, so that its lines count; a few tests
# reach them all. Compiled code divides by zero in silence; plain Python warns.
PLAINLY := NUMBA_DISABLE_JIT=1 $(PYTEST) -W ignore::RuntimeWarning
REACHED := tests/compiled $(patsubst %,tests/optimize/test_%.py,cccp checkpoint exact_line statistics)

# The same tests watched for coverage, which makes them half as slow again; then the rest: simulations, studies,
# browsers, whole sweeps. What any of them reaches counts.
test-all: WATCH := --cov --cov-report=
test-all: test
	$(PLAINLY) -m "not long" -k "not dense_grid" $(REACHED) --cov --cov-append --cov-report=
	$(PYTEST) -m long --cov --cov-append --cov-report=term --cov-fail-under=95
	$(PLAINLY) -m "not long" tests/optimize $(patsubst %,--ignore=%,$(filter tests/optimize/%,$(REACHED)))

# Spark is 480 MB and needs an older pandas: it has an environment of its own.
.venv-spark/done: requirements/spark.lock pyproject.toml
	$(PYTHON) -m venv --clear --without-pip .venv-spark
	@echo "Installing requirements/spark.lock into .venv-spark (a few minutes the first time)"
	$(PIP_INTO) .venv-spark/bin/python install --quiet --no-deps --require-hashes -r requirements/spark.lock
	$(PIP_INTO) .venv-spark/bin/python install --quiet --no-deps --no-build-isolation -e .
	@touch $@

spark-tests: .venv-spark/done
	.venv-spark/bin/pytest tests/spark

test-spark:
	@java=$$(java -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p'); \
	if [ "$${java:-0}" -ge 17 ]; then $(MAKE) --no-print-directory spark-tests; else \
	  echo "Skipped the Spark tests: they need Java 17 or newer; found $${java:-none}."; fi

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

# Offline: the site loads nothing from elsewhere, and neither does its build. The banner of the theme is not a warning.
docs: export PYTHONPATH := scripts
docs: export NO_MKDOCS_2_WARNING := 1
docs: setup
	$(BIN)/mkdocs build --strict
	$(BIN)/python -m pages.links site

format: setup
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

# ── upkeep ───────────────────────────────────────────────────────────────────────────────────────
# One lock for Python 3.11 and later on every platform: names, versions and hashes, no addresses.
COMPILE := uv pip compile pyproject.toml requirements/build.in --quiet --no-config --universal \
  --python-version 3.11 --fork-strategy fewest --generate-hashes --no-annotate \
  --custom-compile-command "make lock"

lock:
	$(COMPILE) --upgrade -o requirements/run.lock
	$(COMPILE) --upgrade --extra dask --extra dev -c requirements/run.lock -o requirements/dev.lock
	$(COMPILE) requirements/spark.in --upgrade --extra spark -c requirements/run.lock -o requirements/spark.lock

# Speed as ratios; hours, but it goes on where it was. `make bench QUICK=--quick` takes minutes, writes nothing.
bench: setup
	$(BIN)/python -m benchmarks $(QUICK)

# Half a minute; compiles nothing.
house: setup
	$(BIN)/python scripts/house.py

# All pages take an hour: make refresh PAGES="README.md docs/tutorials/*.md"
refresh: setup
	$(BIN)/python scripts/refresh_pages.py $(PAGES)

screenshots: setup
	$(BIN)/python scripts/screenshots.py

clean:
	rm -rf .venv .venv-spark .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -rf site report.html
