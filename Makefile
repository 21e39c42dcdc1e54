# Needs Python >= 3.11, a C++20 compiler and make; everything else goes into .venv.
PYTHON ?= python3
BIN := .venv/bin
BENCH := .venv-bench
SOURCES = $(shell find src -name '*.py')
WORKERS ?= $(shell getconf _NPROCESSORS_ONLN)
NO_SPARK := --ignore=tests/spark --ignore-glob="*/ohmlearn/spark.py" --ignore-glob="*/spark_*.py"
PYTEST = $(BIN)/pytest -q -n $(WORKERS) --dist loadfile $(NO_SPARK)
NATIVE := CMakeLists.txt pyproject.toml $(filter-out cpp/tests/%,$(wildcard cpp/*/*.?pp))

export PYTHONNOUSERSITE := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell getconf _NPROCESSORS_ONLN)
unexport PYTHONPATH PYTHONHOME

.PHONY: help run test check docs bench bench-quick bench-page dist check-dist check-native check-oldest check-report check-page check-serve check-spark check-fields check-links clean

help: ## show these lines
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14

run: .venv/installed ## install into .venv and label 12,100 points from 4: out/demo.html
	$(BIN)/ohmlearn demo -o out/demo.html

test: .venv/dev build/editable/ohm_tests ## style, types, layers, C++ tests, doctests, and the Python tests that are not slow
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	build/editable/ohm_tests
	$(PYTEST) -m "not slow" --durations 5 --durations-min 3

check: .venv/dev ## the tests that `make test` leaves out: processes, servers, clusters, many draws, documentation
	$(PYTEST) -m slow

docs: .venv/docs build/docs/current ## the documentation site; its code is run and its links are checked: build/docs/html
	$(BIN)/pytest -q tests/project/test_documentation.py
	$(BIN)/sphinx-build -q -n -W --keep-going docs build/docs/html
	$(BIN)/python tests/project/check_site.py build/docs/html

check-oldest: .venv/dev ## the tests with the oldest versions that pyproject.toml allows
	$(BIN)/pip install -q "uv>=0.8"
	$(BIN)/uv venv -q --clear --python $(BIN)/python build/oldest
	$(BIN)/uv pip install -q --python build/oldest/bin/python --resolution lowest-direct --group test \
	  -C build-dir=build/oldest/native ".[files,plot,dask,serve]"
	build/oldest/bin/python -m pytest -q -n $(WORKERS) --dist loadfile $(NO_SPARK) -o filterwarnings=default \
	  tests/unit tests/golden tests/contract tests/cli tests/serve

check-links: .venv/docs ## links of the documentation to other sites; needs the network
	$(BIN)/sphinx-build -q -b linkcheck -D plot_gallery=0 docs build/docs/links

check-native: build/sanitized/ohm_tests ## C++ tests under the address and undefined-behaviour sanitizers
	build/sanitized/ohm_tests

check-spark: .venv/dev ## ohmlearn.spark with PySpark on two cores of this machine; needs Java 17
	@java -version >/dev/null 2>&1 || echo "check-spark is skipped: there is no java; install openjdk-17-jre-headless"
	@! java -version >/dev/null 2>&1 || $(MAKE) --no-print-directory .venv/spark
	@! java -version >/dev/null 2>&1 || $(BIN)/pytest -q tests/spark src/ohmlearn/spark.py $(wildcard src/ohmlearn/cluster/spark_*.py)

check-fields: .venv/dev ## ohmlearn.anndata and ohmlearn.entities with anndata, recordlinkage and splink, in an environment of their own
	$(BIN)/pip install -q "uv>=0.8"
	$(BIN)/uv venv -q --clear --python $(BIN)/python build/fields
	$(BIN)/uv pip install -q --python build/fields/bin/python --group test --group fields \
	  -C build-dir=build/fields/native ".[files,plot]"
	build/fields/bin/python -m pytest -q tests/unit/test_anndata.py tests/unit/test_entities.py \
	  tests/project/test_documentation.py -k "anndata or entities or cells"

check-report: .venv/dev ## the page of `ohmlearn label` in a real browser (chromium): out/report
	$(BIN)/python tests/project/check_report.py

check-page: .venv/page ## the page of `ohmlearn serve` in a real browser (chromium): out/page
	$(BIN)/python tests/project/check_page.py

check-serve: .venv/dev ## kill `ohmlearn serve` 100 times under load, five minutes; KILLS=10 is quicker
	$(BIN)/python tests/project/check_serve.py $(KILLS)

bench: $(BENCH)/installed ## every claim beside its peers, about 70 minutes: benchmarks/results and the pages made of it
	$(BENCH)/bin/python -m benchmarks.run $(ARGS)
	$(BENCH)/bin/python -m benchmarks.page

bench-quick: $(BENCH)/installed ## the same with small sizes, five minutes: out/bench
	$(BENCH)/bin/python -m benchmarks.run --quick $(ARGS)
	$(BENCH)/bin/python -m benchmarks.page --results out/bench --out out/bench

bench-page: .venv/installed ## tables and pictures of the pages and the README from benchmarks/results
	$(BIN)/python -m benchmarks.page

dist: .venv/release ## sdist, and the wheel built from it: dist
	rm -rf dist
	$(BIN)/python -m build

check-dist: dist ## the same, checked: contents, metadata, and the README's example in an empty environment
	$(BIN)/python tests/project/check_dist.py

clean: ## remove all that make has made
	rm -rf .venv .venv-bench build dist out src/ohmlearn/_core.pyi .*_cache .hypothesis
	rm -rf docs/gallery docs/api docs/sg_execution_times.rst
	find src tests benchmarks docs -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# Stamps: a step is done again when what it depends on is newer.
.venv/created $(BENCH)/created: %/created:
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("Python 3.11 or later is needed, $(PYTHON) is %d.%d: make PYTHON=python3.x" % v[:2])'
	$(PYTHON) -m venv $*
	$*/bin/pip install -q --upgrade "pip>=25.1"
	@touch $@

# Editable: changes of Python code need no new installation.
.venv/installed: .venv/created $(NATIVE)
	$(BIN)/pip install -q --group build
	$(BIN)/pip install -q --no-build-isolation -C build-dir=build/editable -e ".[plot]"
	@touch $@

.venv/dev: .venv/installed pyproject.toml
	$(BIN)/pip install -q --group dev
	@touch $@

# Examples of the gallery run again when the library has changed, not only when they have; pages of names
# that are gone must not stay.
build/docs/current: $(SOURCES) $(NATIVE) docs/api.rst
	rm -rf docs/gallery docs/api
	@mkdir -p $(@D) && touch $@

.venv/docs: .venv/dev pyproject.toml
	$(BIN)/pip install -q --group docs
	@touch $@

.venv/spark: .venv/dev pyproject.toml
	$(BIN)/pip install -q --group spark
	@touch $@

.venv/page: .venv/dev pyproject.toml
	$(BIN)/pip install -q --group page
	@touch $@

.venv/release: .venv/installed pyproject.toml
	$(BIN)/pip install -q --group release
	@touch $@

# pyamgcl has no wheels and needs the Boost headers: without them it is named as missing.
$(BENCH)/installed: $(BENCH)/created $(NATIVE) $(SOURCES) benchmarks/requirements.txt
	$(BENCH)/bin/pip install -q ".[plot,files,serve]" -r benchmarks/requirements.txt
	$(BENCH)/bin/python -c "import pyamgcl" 2>/dev/null || { \
	$(BENCH)/bin/pip install -q pybind11 wheel "setuptools<81" && \
	$(BENCH)/bin/pip install -q --no-build-isolation pyamgcl; } || echo "pyamgcl is not there"
	@touch $@

build/editable/ohm_tests build/sanitized/ohm_tests: .venv/dev $(NATIVE) $(wildcard cpp/tests/*)
	$(BIN)/cmake --build $(@D) --target ohm_tests
	@touch $@

build/sanitized/ohm_tests: build/sanitized/build.ninja
build/sanitized/build.ninja: .venv/dev
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake -G Ninja -S . -B $(@D) -DOHMLEARN_SANITIZE=ON
	@touch $@
