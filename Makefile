# The whole developer interface. Needs make and Python 3.11 or newer; uses uv when it is there.
# Every target makes or refreshes .venv by itself. PYTHON=/path/to/python names the Python of a
# new one (after `make clean`).

SHELL := /bin/sh
.SUFFIXES:
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# litellm takes ten seconds to import without its bytecode, so it must be written at install.
unexport PYTHONDONTWRITEBYTECODE
unexport PYTHONHOME
unexport PYTHONPATH
unexport VIRTUAL_ENV

BIN := .venv/bin
PYTHON ?=
LOCK_FLAGS ?=
PYTEST_FLAGS ?=
MATRIX_FLAGS ?=
SOAK_FLAGS ?=
CHAOS_FLAGS ?=

.PHONY: help run test check bench matrix soak chaos fix lock clean

help:
	@echo "make run     talk to the bot in this terminal (no key needed)"
	@echo "make test    all tests, but not the kill matrix"
	@echo "make check   format, lint, types, import contracts"
	@echo "make fix     format, and repair what the linter can"
	@echo "make bench   measure; prints the ratios of docs/performance.md"
	@echo "make matrix  kill the service at every durable point; writes docs/kill-matrix.md"
	@echo "make soak    ten minutes of talk and random kills; writes docs/soak.md"
	@echo "make chaos   ten minutes of storm over several replicas; writes docs/chaos.md"
	@echo "make lock    compile requirements*.txt from pyproject.toml (LOCK_FLAGS=--upgrade)"
	@echo "make clean   remove .venv and caches"

run: .venv/.run-stamp
	@exec $(BIN)/stillhere chat

test: .venv/.dev-stamp
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not matrix and not live" $(PYTEST_FLAGS)

check: .venv/.dev-stamp
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check --output-format concise .
	@$(BIN)/basedpyright --level error --pythonpath $(BIN)/python
	@$(BIN)/lint-imports --no-logo

bench: .venv/.dev-stamp
	@$(BIN)/python -m benchmarks

matrix: .venv/.dev-stamp
	@$(BIN)/python -m pytest -q -m matrix $(PYTEST_FLAGS)
	@$(BIN)/python -m tests.harness $(MATRIX_FLAGS)

soak: .venv/.dev-stamp
	@$(BIN)/python -m tests.harness.soak --write docs/soak.md $(SOAK_FLAGS)

chaos: .venv/.dev-stamp
	@$(BIN)/python -m tests.harness.chaos --write docs/chaos.md $(CHAOS_FLAGS)

fix: .venv/.dev-stamp
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format --quiet .

lock: .venv/.dev-stamp
	@$(call compile,build --extra otel,requirements.txt)
	@$(call compile,build --extra otel --extra dev --constraint requirements.txt,requirements-dev.txt)

clean:
	@rm -rf .venv build dist *.egg-info .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The development lock holds the run-time one, so it counts for both.
.venv/.run-stamp: requirements.txt pyproject.toml
	@$(call install,requirements.txt)
	@touch $@

.venv/.dev-stamp: requirements-dev.txt pyproject.toml
	@$(call install,requirements-dev.txt)
	@touch .venv/.run-stamp $@

compile = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	$(LOCK_FLAGS) --extra $(1) --output-file $(2) pyproject.toml

# An environment without a stamp is one whose install was cut short: it is made anew.
define install
	set -e; $(find_python); \
	if ! ls .venv/.*-stamp >/dev/null 2>&1 || ! usable $(BIN)/python "$$in_venv"; then \
	  rm -rf .venv; find_python; \
	  echo "Making .venv with $$python" >&2; \
	  if $$uv; then uv venv --quiet --python "$$python" .venv; else "$$python" -m venv .venv; fi; \
	fi; \
	rm -f .venv/.*-stamp; \
	echo "Installing $(1) (about a minute the first time)" >&2; \
	if $$uv; then pip="uv pip install --quiet --compile-bytecode --python $(BIN)/python"; \
	else pip="$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input"; fi; \
	$$pip --require-hashes -r $(1); \
	$$pip --no-deps --no-build-isolation --editable .
endef

# A name on the PATH may be a pyenv shim that does not run: every one is tried.
define find_python
	if command -v uv >/dev/null 2>&1; then uv=true; in_venv=sqlite3; needs=sqlite3,ssl; \
	else uv=false; in_venv=pip; needs=sqlite3,ssl,ensurepip; fi; \
	usable() { "$$1" -c "import sys,$$2; sys.exit(sys.version_info < (3, 11))" >/dev/null 2>&1; }; \
	find_python() { \
	  python="$(PYTHON)"; \
	  if [ -n "$$python" ] && usable "$$python" "$$needs"; then return; fi; \
	  if [ -z "$$python" ]; then \
	    set -f; IFS=:; \
	    for name in python3.13 python3.12 python3.11 python3; do \
	      for folder in $$PATH; do \
	        python="$$folder/$$name"; \
	        if usable "$$python" "$$needs"; then set +f; unset IFS; return; fi; \
	      done; \
	    done; \
	  fi; \
	  echo "No usable Python 3.11 or newer$(if $(PYTHON), at $(PYTHON)) (it must have $$needs)." >&2; \
	  echo "Install one (Debian: apt-get install python3 python3-venv)," >&2; \
	  echo "or name one: make PYTHON=/path/to/python" >&2; \
	  exit 1; \
	}
endef
