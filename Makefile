# Everything a person types. Each target sets up what it needs: Python 3.11+ and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SECONDS ?= 3600
CORE ?= ring
OVER ?=
SEED ?= 0

.PHONY: help setup demo test check bench soak clean

help:              ## what there is to do
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-8s %s\n", $$1, $$2 }'

setup: $(READY)    ## make .venv with the greenline command in it

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "greenline needs Python 3.11 or newer; set PYTHON=...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . --group dev
	@touch $(READY)

demo: setup        ## three replicas and a bank through a partition, its healing and a kill -9; then the proof
	@$(BIN)/greenline demo

# Cores, rules and adapters: any two of their tests may run side by side; of the others, any two files.
PURE := $(addprefix tests/,kernel trace noticeboard spec simulation ring replication database test_tidy.py)

test: setup        ## every test; at most ten minutes on two cores
	@$(BIN)/python -m pytest -m "not long" -n 2 --dist worksteal $(PURE)
	@$(BIN)/python -m pytest -m "not long" -n 2 --dist loadfile $(addprefix --ignore=,$(PURE))

check: setup       ## the fast loop: format, lint, types, import contracts, unit tests
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo > .lint-imports 2>&1 || { cat .lint-imports; exit 1; }
	@$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not long"

bench: setup       ## measure the figures that the documentation states
	@$(BIN)/python -m benchmarks

soak: setup        ## storms until SECONDS have passed or a rule is broken; CORE=engine OVER=ring, CORE=database SEED=..., CORE=pipeline
ifeq ($(CORE),database)
	@JEPSEN_SECONDS=$(SECONDS) JEPSEN_SEED=$(SEED) $(BIN)/python -m pytest -s tests/jepsen/test_jepsen.py
else ifeq ($(CORE),pipeline)
	@$(BIN)/python -m pytest tests/cli/test_pipeline.py tests/pipeline -m long
else ifeq ($(CORE),node)
	@NODE_STORM_SECONDS=$(SECONDS) NODE_STORM_SEED=$(SEED) $(BIN)/python -m pytest -s tests/node/test_storm.py
else
	@$(BIN)/greenline simulate $(CORE) $(if $(OVER),--over $(OVER)) --nodes 5 --profile storm --soak $(SECONDS)
endif

clean:             ## remove what the targets made
	rm -rf $(VENV) demo build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
