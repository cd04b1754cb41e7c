# The verbs for people and for CI. Each bootstraps what it needs from Python 3.11 or newer and Java 17 or newer.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test lint bench format proto lock java clean

setup: $(STAMP)

$(STAMP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Frazil needs Python 3.11 or newer; this is %s. Run: make PYTHON=python3.11 ..." % sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

java:
	@scripts/check-java

demo: setup java
	$(BIN)/python -m demo

test: setup java
	$(BIN)/python -m pytest $(ARGS)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup java
	$(BIN)/python -m bench.setup
	$(BIN)/python -m bench $(ARGS)

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

proto: setup
	$(BIN)/python -m grpc_tools.protoc -I src --python_out=src --pyi_out=src src/frazil/snapshot/report.proto

# Needs uv; the locks name versions and hashes, never where they come from.
lock:
	uv pip compile --quiet pyproject.toml requirements/dev.in --extra postgres --extra connect --extra catalog --generate-hashes --python-version 3.11 --no-header --no-annotate -o requirements/dev.txt
	uv pip compile --quiet requirements/peers.in --generate-hashes --python-version 3.11 --no-header --no-annotate -o requirements/peers.txt
	uv pip compile --quiet requirements/spark35.in --generate-hashes --python-version 3.11 --no-header --no-annotate -o requirements/spark35.txt

clean:
	rm -rf $(VENV) .venv-peers .venv-spark35 .bench .pytest_cache .mypy_cache .ruff_cache
