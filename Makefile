# Everything sets itself up in .venv; nothing else on the machine is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
NODE := $(VENV)/node
NODE_STAMP := $(NODE)/.installed

# Else every process would compile every module again: a start takes seconds then.
unexport PYTHONDONTWRITEBYTECODE

# Three for two cores: much of a test is waiting, for a disk or for a program that starts.
WORKERS ?= 3
TESTS := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: up test test-alone test-all coverage check bench types format clean
.DEFAULT_GOAL := help

help:
	@echo "make up      console, HTTP API and MCP on a sample project, with a first call to approve"
	@echo "make test    the tests, with a sample of the large batteries; make test-all runs them in full"
	@echo "make test-alone  those that failed last, one after the other"
	@echo "make coverage  as test-all, and says which lines were not run"
	@echo "make check   format, lint, types, import rules"
	@echo "make bench   ratios against peers, written to bench/RESULTS.md"
	@echo "make types   tool_types.json of the features, after a tool's arguments or result changed"

$(STAMP): pyproject.toml constraints.txt
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	@echo "installing toolgate into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,dev]'
	@$(BIN)/python -m compileall -q src
	@touch $(STAMP)

# Other people's MCP programs, which the tests run. Without a lock file: it would name where packages are fetched from.
$(NODE_STAMP): tests/node/package.json $(STAMP)
	@echo "installing MCP programs for the tests into $(NODE) ..."
	@mkdir -p $(NODE) && cp tests/node/package.json $(NODE)/package.json
	@$(BIN)/python tests/node/npm.py $(NODE) install --no-package-lock --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $(NODE_STAMP)

up: $(STAMP)
	@$(BIN)/toolgate up --sample .sample

test: $(STAMP) $(NODE_STAMP)
	@tests/e2e/get-programs.sh
	$(TESTS)

# Beside others on two cores a test may run out of its time. A few that failed get a second chance, alone; many are a fault.
test-alone: $(STAMP) $(NODE_STAMP)
	@$(BIN)/python -c "import json; failed = json.load(open('.pytest_cache/v/cache/lastfailed')); exit(len(failed) > 10)"
	$(BIN)/python -m pytest --last-failed --last-failed-no-failures none

test-all: $(STAMP) $(NODE_STAMP)
	@tests/e2e/get-programs.sh
	TOOLGATE_ALL=1 $(TESTS)

coverage: $(STAMP) $(NODE_STAMP)
	@tests/e2e/get-programs.sh
	TOOLGATE_ALL=1 $(TESTS) --cov --cov-report=term:skip-covered

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# What tools take and return, for calls that end before pydantic is loaded.
types: $(STAMP)
	$(BIN)/python -m tests.tool_types

bench: $(STAMP) $(NODE_STAMP)
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage bench/.scratch
