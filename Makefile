# Each target sets up what it needs: `make demo` and `make test` work on a fresh machine that has
# Python >= 3.10 with its headers, a C++20 compiler, and access to a package index.
#
#   PYTHON=...   the Python to build the environment with (default: the first usable one found)
#   VENV=...     where the environment is (default: .venv)
#   LEVELS=...   x86-64 levels to compile, e.g. LEVELS="v2;v4"; native is that of this processor. What
#                only runs the package takes native or what is there, all else takes all three
#   SANITIZER=.. address (with undefined behaviour) or thread, of `make sanitize`
#   TIME=...     seconds of `make fuzz`, for all its targets together (default: 120)
#   VERBOSE=1    show the output of the compiler, warnings included
#   TESTS=...    tests of `make wheels` beside its trial, by the names of their files
#   ARGS=...     more arguments for the program of the target, e.g. make test ARGS="-k loss -x";
#                tests run in two processes, with ARGS="-n 0" in one

VENV ?= .venv
PYTHON ?=
SANITIZER ?= address
TIME ?= 120
VERBOSE ?=
ARGS ?=
# Of builds that watch themselves (CMakeLists.txt), and of environments with given versions; the
# targets that need them set them.
WATCH :=
CONSTRAINTS :=
STRICT :=

BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
BUILD_TOOLS := "pip>=23.1" "scikit-build-core>=1.1" "nanobind>=3.1,<4" cmake ninja
BUILD_INPUTS := pyproject.toml CMakeLists.txt src/adasdca/_core/_interface.py $(wildcard core/*/*.hpp core/*/*.cpp)
PYTHON_DIRS := $(wildcard conftest.py src tools tests benchmarks examples docs)
CXX_FILES = $(wildcard core/*/*.hpp core/*/*.cpp tests/fuzz/*.hpp tests/fuzz/*.cpp tests/*.cpp)

# One level is a third of the compiler's work. The tests compare levels, and others need them all.
RUN_ONLY := help demo build docs lint format bench peers note clean $(STAMPS)/%
ifeq ($(filter-out $(RUN_ONLY),$(MAKECMDGOALS)),)
LEVELS ?= $(or $(shell cat $(STAMPS)/levels 2>/dev/null),native)
endif
LEVELS ?= v2;v3;v4

# Redirecting editable install: Python sources are live; the compiled modules are in the
# environment and change only when a rule below runs.
# Modules are compiled when they are imported: most never are (18 of 37 s of the installer's work).
PIP := $(BIN)/python -m pip install --disable-pip-version-check --no-compile \
	$(if $(VERBOSE),--verbose,--quiet)
INSTALL := CMAKE_GENERATOR=Ninja $(PIP) --no-build-isolation -Ceditable.rebuild=false \
	-Ccmake.define.ADASDCA_LEVELS="$(LEVELS)" \
	$(if $(WATCH),-Ccmake.define.ADASDCA_WATCH=$(WATCH) -Cbuild-dir=build/$(WATCH) -Cinstall.strip=false) \
	$(if $(STRICT),-Ccmake.define.ADASDCA_WERROR=ON -Cbuild-dir=build/$(STRICT))
ifneq ($(CONSTRAINTS),)
export PIP_CONSTRAINT := $(CONSTRAINTS)
endif

.PHONY: help demo test build docs lint format stubs bench peers clean FORCE
.PHONY: sanitize sanitized clang clanged fuzz coverage covered oldest matrix optimized promises
.PHONY: note mutations wheels
.DELETE_ON_ERROR:

help:
	@echo "demo    compare the methods on the data that come with the package"
	@echo "test    run the tests and the examples in the docstrings"
	@echo "build   compile the core and install the package, editable, into $(VENV)"
	@echo "docs    build the site into docs/_build/html, run its examples, check its links"
	@echo "lint    ruff, mypy and clang-format, changing nothing"
	@echo "format  let ruff and clang-format rewrite the sources"
	@echo "stubs   write src/adasdca/_core/__init__.pyi from the compiled core"
	@echo "bench   what an epoch costs"
	@echo "peers   time to an accuracy beside other packages (long; ARGS=... selects)"
	@echo "sanitize  tests of the core under sanitizers (SANITIZER=thread: data races)"
	@echo "clang     compile with clang, warnings are errors, and test the core so compiled"
	@echo "fuzz      random files and numbers against the readers, TIME=... seconds; needs clang"
	@echo "coverage  lines of Python and C++ that the tests run"
	@echo "oldest    the tests with the oldest versions that pyproject.toml allows"
	@echo "matrix    the tests on every Python that is found"
	@echo "wheels    build them for every Python that is found, install and try each; in dist/"
	@echo "optimized the tests of the mathematics under python -OO"
	@echo "promises  run the commands behind docs/promises.md, and write their figures there"
	@echo "note      docs/note as build/note/note.pdf, its tables from data files; needs LaTeX"
	@echo "mutations break the sources in one place after the other: do the tests notice? (long)"
	@echo "clean   remove what was built, keep $(VENV)"

demo: $(STAMPS)/build $(STAMPS)/cli
	$(BIN)/adasdca compare $(ARGS)

test: $(STAMPS)/build $(STAMPS)/test
	$(BIN)/python -m pytest -n 2 $(ARGS)

build: $(STAMPS)/build

docs: $(STAMPS)/build $(STAMPS)/docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html $(ARGS)
	$(BIN)/python tools/links.py docs/_build/html

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

note: $(STAMPS)/build
	$(BIN)/python tools/note.py

mutations: $(STAMPS)/build $(STAMPS)/test
	$(BIN)/python tools/mutations.py $(ARGS)

bench: $(STAMPS)/build
	$(BIN)/python -m benchmarks.epochs $(ARGS)

peers: $(STAMPS)/build $(STAMPS)/bench
	$(BIN)/python -m benchmarks.peers $(ARGS)

# Builds and environments of their own, in build/: each of these targets calls make again.
sanitize:
	@$(MAKE) --no-print-directory sanitized VENV=build/venv-$(SANITIZER) WATCH=$(SANITIZER) LEVELS=v2

# The interpreter is not instrumented: the runtime has to be there before it. The C++ library too,
# or the runtime does not find the functions of exceptions.
CORE_TESTS := core kernels files files_bad files_npz files_tables pool gram survey passes newton \
	losses adaptive_columns sampling exact excess equations input_forms \
	certificates_exactly stopping multinomial working_sets bad_input paths
THREAD_TESTS := kernels pool gram survey passes newton equations stopping input_forms
RUNTIME = $(foreach name,$(1) libstdc++.so.6,$$($${CXX:-c++} -print-file-name=$(name)))
# Left out: tests that measure memory, of which the runtime takes its own; and for data races the
# threads of others, OpenBLAS and polars, whose waiting in loops is not understood.
MEASURED := not more_than_the_limit and not plans_at_the_limits
FOREIGN := not data_frames
sanitized: $(STAMPS)/build $(STAMPS)/test
ifeq ($(WATCH),thread)
	rm -f build/thread/report.*
	OPENBLAS_NUM_THREADS=1 LD_PRELOAD="$(call RUNTIME,libtsan.so)" \
		TSAN_OPTIONS=halt_on_error=1:exitcode=66:log_path=build/thread/report \
		$(BIN)/python -m pytest -p no:xdist -k "$(MEASURED) and $(FOREIGN)" \
		$(THREAD_TESTS:%=tests/test_%.py) $(ARGS) || { cat build/thread/report.*; exit 1; }
else
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
		LD_PRELOAD="$(call RUNTIME,libasan.so libubsan.so)" \
		$(BIN)/python -m pytest -n 2 -k "$(MEASURED)" $(CORE_TESTS:%=tests/test_%.py) $(ARGS)
endif

# GCC is the compiler of the other targets; clang says other things, and shares MSVC's omissions.
clang:
	@CXX=clang++ $(MAKE) --no-print-directory clanged VENV=build/venv-clang STRICT=clang

clanged: $(STAMPS)/build $(STAMPS)/test
	$(BIN)/python -m pytest -n 2 $(CORE_TESTS:%=tests/test_%.py) tests/test_portable.py $(ARGS)

fuzz: $(STAMPS)/build $(STAMPS)/test
	$(BIN)/python tools/fuzz.py --time $(TIME) $(ARGS)

coverage:
	@$(MAKE) --no-print-directory covered VENV=build/venv-coverage WATCH=coverage LEVELS=v2

covered: $(STAMPS)/build $(STAMPS)/coverage
	find build/coverage -name '*.gcda' -delete
	$(BIN)/python -m pytest -n 2 --cov=adasdca --cov-report= $(ARGS)
	$(BIN)/python -m coverage report --show-missing --skip-covered --sort=-miss --precision=1
	$(BIN)/python -m gcovr --filter core/ --merge-lines --sort uncovered-number --sort-reverse \
		--gcov-ignore-parse-errors=suspicious_hits.warn build/coverage

# The lower bounds of what the package itself imports, and a click that this typer knows.
build/oldest.txt: pyproject.toml
	@mkdir -p build
	sed -nE '/^(dependencies|plot|onnx|files|cli) =/p' $< | grep -oE '[a-z0-9-]+>=[0-9.]+' \
		| sed 's/>=/==/' > $@
	echo click==8.1.8 >> $@

# Beside them are the newest versions of others, whose deprecations are no business of this test.
# Left out is what compares with the newest scikit-learn: its list of checks, its way to name
# penalties, its weighted classes, and the classes that have its results. So are other packages that
# know only newer versions of SciPy, and the tests of a command that keep stderr apart as newer
# versions of click do.
OLDEST := -W ignore::DeprecationWarning --ignore=tests/test_estimators_checks.py \
	--ignore=tests/test_reproduce.py \
	--ignore=tests/test_sklearn_dropin.py \
	--deselect=tests/test_certify_estimators.py::test_the_objective_is_found \
	--deselect=tests/test_certify_estimators.py::test_several_targets_have_a_certificate_each \
	--deselect=tests/test_estimators_equal.py::test_elastic_net_logistic_regression \
	--deselect=tests/test_benchmarks.py::test_solver_minimises_our_objective \
	--deselect=tests/test_benchmarks.py::test_two_threads_reach_the_same_value
oldest: build/oldest.txt
	@PYTHONWARNINGS=ignore $(MAKE) --no-print-directory test VENV=build/venv-oldest PYTHON=$(or $(PYTHON),python3.10) \
		LEVELS="v2;v4" CONSTRAINTS=$(CURDIR)/$< ARGS="$(OLDEST) $(ARGS)"

PYTHONS ?= python3.10 python3.11 python3.12 python3.13 python3.14 python3.14t
matrix:
	@for python in $(PYTHONS); do \
		if $$python -c '' 2>/dev/null; then \
			$(MAKE) --no-print-directory test PYTHON=$$python VENV=build/venv-$$python \
				LEVELS="v2;v4" || exit 1; \
		else echo "$$python is not here"; fi; \
	done

# TESTS: names of tests to run from outside of the checkout, e.g. make wheels TESTS="core losses".
TESTS ?=
wheels:
	$(or $(PYTHON),python3) tools/wheels.py --levels "$(LEVELS)" $(ARGS) \
		$(or $(PYTHON),$(PYTHONS)) $(if $(TESTS),--tests $(TESTS))

# Without asserts and docstrings. pytest rewrites the asserts of the tests and warns that it does
# not those of other modules.
optimized: $(STAMPS)/build $(STAMPS)/test
	$(BIN)/python -OO -m pytest -p no:xdist -W ignore::pytest.PytestConfigWarning \
		$(CORE_TESTS:%=tests/test_%.py) $(ARGS)

promises: $(STAMPS)/build $(STAMPS)/test
	$(BIN)/python tools/promises.py $(ARGS)

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
$(STAMPS)/cli $(STAMPS)/test $(STAMPS)/docs $(STAMPS)/dev $(STAMPS)/bench $(STAMPS)/coverage: pyproject.toml | $(STAMPS)/build
	$(PIP) "adasdca[$(@F)]"
	@touch $@
