# Needs python3 (3.11 or newer) and pip; everything else comes with `make setup`.
PYTHON ?= python3
BIN := .venv/bin
CODE := $(wildcard src tests benchmarks)
# Each process has engines of its own, and takes over from another that has more left. None: PARALLEL=
PARALLEL ?= -n 2 --dist worksteal

.PHONY: help setup run test test-engines test-pooler check format docs bench soak lock clean

help: ## show the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' Makefile | expand -t 15

setup: .venv/.ok ## make .venv with everything pinned in requirements.lock

# Where python3-venv is missing, venv works without pip, and the pip outside fills it.
# Build isolation would fetch the build tools a second time: they are in the lock.
.venv/.ok: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "$(PYTHON) is older than 3.11: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv .venv 2>/dev/null || { rm -rf .venv; $(PYTHON) -m venv --without-pip .venv; }
	if $(BIN)/python -m pip --version >/dev/null 2>&1; then pip="$(BIN)/python -m pip"; \
	  else pip="$(PYTHON) -m pip --python $(BIN)/python"; fi; \
	$$pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock && \
	$$pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index --editable .
	@touch $@

run: setup ## the demo, in the foreground: engines, worker, page
	$(BIN)/truerank up --demo

test: setup ## every test except the soak tests
	$(BIN)/pytest $(PARALLEL) -m "not soak" $(ARGS)

# What packages of the system bring is older than the wheels: the suites of both stores run on it.
# Redis runs in English there: Lua compares strings by the locale, and nothing may depend on that.
test-engines: setup ## the suites of SQL, Lua and projection on the system's PostgreSQL and Redis
	made="$$(mktemp -d)" && trap 'rm -rf "$$made"' EXIT && chmod 755 "$$made" && \
	localedef -i en_US -f UTF-8 --no-archive "$$made/en_US.UTF-8" && \
	printf '#!/bin/sh\nLOCPATH=%s LC_ALL=en_US.UTF-8 exec %s "$$@"\n' \
	  "$$made" "$$(command -v redis-server)" >"$$made/redis-server" && chmod 755 "$$made/redis-server" && \
	TRUERANK_TEST_LOCALE=english \
	TRUERANK_PG_BINDIR="$$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)" \
	TRUERANK_VALKEY_SERVER="$$made/redis-server" \
	  $(BIN)/pytest $(PARALLEL) -m "not soak" $(ARGS) \
	  tests/sql tests/write tests/lua tests/projection tests/conformance

# Where sessions are handed on between transactions; what is left in one would be found by others.
test-pooler: setup ## the suites of acceptance, writing, projection, clients and HTTP through PgBouncer
	TRUERANK_TEST_POOLER=1 $(BIN)/pytest $(PARALLEL) -m "not soak" $(ARGS) \
	  tests/acceptance tests/write tests/projection tests/client/test_both.py tests/client/test_outages.py \
	  tests/http/test_scores.py tests/http/test_answers.py tests/http/test_gather.py \
	  tests/http/test_exports.py tests/reads/test_export.py

soak: setup ## the tests that take minutes
	$(BIN)/pytest -m soak $(ARGS)

check: setup ## format, lint, types, import layers, docs
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports
	$(BIN)/python -m tests.docs.check

format: setup ## put the code in its format
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

docs: setup ## write the parts of the reference that are made from the code
	$(BIN)/python -m tests.docs.check --write

bench: setup ## every benchmark, with its baseline
	$(BIN)/python -m benchmarks $(ARGS)

lock: setup ## resolve the dependencies anew; the lock holds hashes and no addresses
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --generate-hashes \
	  --no-header --no-annotate --quiet --upgrade -o requirements.lock

clean: ## remove what make and the tools made
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis dist
