# Everything runs from .venv, which the first target that needs it creates.
#   make                          what there is
#   make test PYTHON=python3.12   with a Python of your own choice

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup browser demo test test-all test-benchmarks test-without-unix kill-test flip-test fuzz-test bench-all check format docs clean

PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
STAMP := $(VENV)/.installed
LOOPS := $(VENV)/.compiled
ARGS ?=
SHORT ?=
JOBS ?= 2

help: ## show this list
	@echo "pexeso: join search for data lakes"
	@echo
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16
	@echo
	@echo "The first of them that needs it creates $(VENV) and installs pinned packages into it."

setup: $(LOOPS) ## create .venv and install the pinned packages

demo: $(CORE) ## index the demo lake and run two searches
	@$(BIN)/pexeso demo $(ARGS)

test: $(LOOPS) ## run the tests in two processes (ARGS="tests/lake -x" for some; JOBS=0: in one)
	@OMP_NUM_THREADS=1 PEXESO_LOOPS=checked $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

test-benchmarks: $(LOOPS) ## run the tests of the measuring code, which make test leaves out
	@OMP_NUM_THREADS=1 PEXESO_LOOPS=checked $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder tests/benchmarks $(ARGS)

test-without-unix: $(LOOPS) ## answer on the demo lake, and more, with hidden what Windows lacks
	@ALL_TESTS=1 PEXESO_LOOPS=checked $(BIN)/python -m pytest tests/runtime/test_system.py $(ARGS)

test-all: export ALL_TESTS := 1
test-all: test ## run the long tests too (most of an hour)

kill-test: $(LOOPS) ## kill builds and updates at 200 random moments (an hour; SHORT=1: a minute)
	@$(BIN)/python tests/robustness/kill_run.py $(if $(SHORT),--short) $(ARGS)

flip-test: $(LOOPS) ## flip 500 bytes of an index, one at a time (minutes; SHORT=1: 40)
	@$(BIN)/python tests/robustness/flip_run.py $(if $(SHORT),--short) $(ARGS)

fuzz-test: $(LOOPS) ## give 100,000 bad inputs to everything that reads (an hour; SHORT=1: 2,000)
	@$(BIN)/python tests/robustness/fuzz_run.py $(if $(SHORT),--short) $(ARGS)

bench-all: $(LOOPS) ## make the results of a release and the tables of the docs (hours; ARGS="speed published" for some)
	@$(BIN)/python -m benchmarks release $(ARGS)

check: $(LOOPS) ## lint, and check the formatting and the types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/basedpyright

format: $(LOOPS) ## format the code
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

docs: $(LOOPS) ## build the documentation as a site, into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict $(ARGS)

clean: ## remove .venv and what tests and builds leave
	@rm -rf $(VENV) build dist site ./*.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis spark-warehouse metastore_db derby.log
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@find embed pexeso -name '*.so' -delete

# The stamps are written last, so that an interrupted installation is taken up again. The core alone is small; what the
# tests need comes on top of it. The loops are compiled by a C++ compiler: of the system, or zig from PyPI.
$(CORE): pyproject.toml constraints.txt setup.py
	@for candidate in $(or $(PYTHON),python3.11 python3 python3.12 python3.13 python3.14); do \
	  if "$$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))' 2>/dev/null; then \
	    python=$$candidate; break; \
	  fi; \
	done; \
	if [ -z "$${python:-}" ]; then \
	  found=$$("$(or $(PYTHON),python3)" --version 2>/dev/null || true); \
	  echo "pexeso needs Python 3.11 to 3.14; $(or $(PYTHON),python3) is $${found:-not there}." \
	    "Install one, or name it: make test PYTHON=/path/to/python3.11" >&2; \
	  exit 1; \
	fi; \
	echo "Installing pexeso into $(VENV) and compiling its loops (about a minute, once)" >&2; \
	"$$python" -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt cython setuptools wheel
	@$(COMPILER); $(BIN)/python setup.py --quiet build_ext --inplace
	@PEXESO_COMPILE=0 $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation \
	  -c constraints.txt -e .
	@touch $@

$(STAMP): $(CORE) requirements.txt
	@echo "Installing what the tests need (about three minutes, once)" >&2
	@PEXESO_COMPILE=0 $(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@$(MAKE) --no-print-directory browser
	@touch $@

COMPILER = if ! command -v "$${CXX:-c++}" >/dev/null && ! command -v g++ >/dev/null; then \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check ziglang; \
	  export CC="$(CURDIR)/$(BIN)/python -m ziglang cc" CXX="$(CURDIR)/$(BIN)/python -m ziglang c++"; \
	fi

# Loops that changed are compiled again, also the build of them whose indices are checked, on which the tests run.
$(LOOPS): $(STAMP) setup.py $(shell find embed pexeso -name '*.py[xi]' -o -name '*.px[di]')
	@$(COMPILER); PEXESO_CHECKED=1 $(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@

# The tests that look at pages are skipped where there is no browser, so that nothing here may stop the installation.
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
	  if command -v "$$name" >/dev/null; then exit 0; fi; \
	done; \
	if [ "$$(id -u)" != 0 ] || ! grep -qsE '^ID(_LIKE)?=.*debian' /etc/os-release || ! command -v apt-get >/dev/null; then \
	  echo "There is no browser here: the tests that look at pages will be skipped. Install Chromium to run them." >&2; \
	  exit 0; \
	fi; \
	echo "Installing Chromium, for the tests that look at pages" >&2; \
	if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends chromium; } >/dev/null 2>&1; then \
	  echo "Chromium could not be installed: the tests that look at pages will be skipped." >&2; \
	fi
