# Each target sets up what it needs: `make demo` and `make test` work on a fresh machine that has
# Python >= 3.10 with its headers, a C++20 compiler, and access to a package index.
#
#   PYTHON=...   the Python to build the environment with (default: the first usable one found)
#   VENV=...     where the environment is (default: .venv)
#   LEVELS=...   x86-64 levels to compile, e.g. LEVELS="v2;v4" for quick rebuilds (default: all three)
#   VERBOSE=1    show the output of the compiler, warnings included
#   ARGS=...     more arguments for the program of the target, e.g. make test ARGS="-k loss -x";
#                tests run in two processes, with ARGS="-n 0" in one

VENV ?= .venv
PYTHON ?=
LEVELS ?= v2;v3;v4
VERBOSE ?=
ARGS ?=

BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
BUILD_TOOLS := "pip>=23.1" "scikit-build-core>=1.1" "nanobind>=3.1,<4" cmake ninja
BUILD_INPUTS := pyproject.toml CMakeLists.txt $(wildcard core/*/*.hpp core/*/*.cpp)
PYTHON_DIRS := $(wildcard conftest.py src tools tests benchmarks examples docs)
CXX_FILES = $(wildcard core/*/*.hpp core/*/*.cpp)

# Redirecting editable install: Python sources are live; the compiled modules are in the
# environment and change only when a rule below runs.
PIP := $(BIN)/python -m pip install --disable-pip-version-check $(if $(VERBOSE),--verbose,--quiet)
INSTALL := CMAKE_GENERATOR=Ninja $(PIP) --no-build-isolation -Ceditable.rebuild=false \
	-Ccmake.define.ADASDCA_LEVELS="$(LEVELS)"

.PHONY: help demo test build docs lint format stubs bench peers clean FORCE
.DELETE_ON_ERROR:

help:
	@echo "demo    compare the methods on the data that come with the package"
	@echo "test    run the tests and the examples in the docstrings"
	@echo "build   compile the core and install the package, editable, into $(VENV)"
	@echo "docs    build the documentation into docs/_build/html, warnings are errors"
	@echo "lint    ruff, mypy and clang-format, changing nothing"
	@echo "format  let ruff and clang-format rewrite the sources"
	@echo "stubs   write src/adasdca/_core/__init__.pyi from the compiled core"
	@echo "bench   what an epoch costs (ARGS=--epochs: how many each method needs, minutes)"
	@echo "peers   time to an accuracy beside other packages (long; ARGS=... selects)"
	@echo "clean   remove what was built, keep $(VENV)"

demo: $(STAMPS)/build $(STAMPS)/cli
	$(BIN)/adasdca compare $(ARGS)

test: $(STAMPS)/build $(STAMPS)/test
	$(BIN)/python -m pytest -n 2 $(ARGS)

build: $(STAMPS)/build

docs: $(STAMPS)/build $(STAMPS)/docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html $(ARGS)

lint: $(STAMPS)/build $(STAMPS)/dev
	$(BIN)/ruff check $(PYTHON_DIRS)
	$(BIN)/ruff format --check $(PYTHON_DIRS)
	$(BIN)/mypy
	$(if $(CXX_FILES),$(BIN)/clang-format --dry-run -Werror $(CXX_FILES))

format: $(STAMPS)/dev
	$(BIN)/ruff check --fix $(PYTHON_DIRS)
	$(BIN)/ruff format $(PYTHON_DIRS)
	$(if $(CXX_FILES),$(BIN)/clang-format -i $(CXX_FILES))

stubs: $(STAMPS)/build
	$(BIN)/python tools/stubs.py

bench: $(STAMPS)/build
	$(BIN)/python -m benchmarks.epochs $(ARGS)

peers: $(STAMPS)/build $(STAMPS)/bench
	$(BIN)/python -m benchmarks.peers $(ARGS)

clean:
	rm -rf build dist docs/_build docs/auto_examples docs/generated $(STAMPS)/build
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis

# A Python is usable if it can make environments and compile extensions; a command of the right
# name may still be an empty shim, so each candidate is run.
$(STAMPS)/venv:
	@if [ ! -x $(BIN)/python ]; then \
		for candidate in $(PYTHON) $(if $(PYTHON),,python3 python3.13 python3.12 python3.11 python3.10 python3.14 python); do \
			if "$$candidate" -c 'import ensurepip, os, sys, sysconfig, venv; assert sys.version_info >= (3, 10); assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))' 2>/dev/null; \
			then echo "environment $(VENV) from $$candidate"; exec "$$candidate" -m venv $(VENV); fi; \
		done; \
		echo "No usable Python found: needed is Python >= 3.10 with venv, ensurepip and Python.h" >&2; \
		echo "(Debian: python3-venv python3-dev). Name one with make PYTHON=/path/to/python3." >&2; \
		exit 1; \
	fi
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/tools: $(STAMPS)/venv
	$(PIP) $(BUILD_TOOLS)
	@touch $@

$(STAMPS)/levels: FORCE | $(STAMPS)/venv
	@echo "$(LEVELS)" | cmp -s - $@ || echo "$(LEVELS)" > $@

$(STAMPS)/build: $(BUILD_INPUTS) $(STAMPS)/tools $(STAMPS)/levels
	@command -v $${CXX:-c++} >/dev/null || { echo "No C++ compiler found (Debian: g++); or set CXX." >&2; exit 1; }
	$(INSTALL) -e .
	@touch $@

# Extras are installed again only when they may have changed; core changes go through `build`.
# By the name of the package as installed, and with build isolation: a dependency that comes as
# source is then built with its own build requirements.
$(STAMPS)/cli $(STAMPS)/test $(STAMPS)/docs $(STAMPS)/dev $(STAMPS)/bench: pyproject.toml | $(STAMPS)/build
	$(PIP) "adasdca[$(@F)]"
	@touch $@
