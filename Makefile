PYTHON ?= python3
BIN := .venv/bin
# worker processes of the test suite
JOBS ?= auto

.PHONY: run test test-all lint bench clean

run: .venv/run.stamp
	$(BIN)/python -m fitzpatrick reproduce

test: lint
	JAX_PLATFORMS=cpu $(BIN)/python -m pytest -q -n $(JOBS)

# every combination of property, array library and precision; takes several times as long
test-all: export FITZPATRICK_TEST_ALL = 1
test-all: test

lint: .venv/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/dev.stamp
	$(BIN)/python benchmarks/cpu_losses.py

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/run.stamp: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[cli]"
	touch $@

.venv/dev.stamp: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@ .venv/run.stamp

clean:
	rm -rf .venv out build dist
