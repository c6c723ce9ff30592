PYTHON ?= python3
BIN := .venv/bin
# worker processes of the test suite
JOBS ?= auto
# how long fuzz runs
SECONDS ?= 60

.PHONY: run test lint bench fuzz clean

run: .venv/run.stamp
	$(BIN)/python -m fitzpatrick reproduce

test: lint
	JAX_PLATFORMS=cpu $(BIN)/python -m pytest -q -n $(JOBS)

lint: .venv/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/dev.stamp
	$(BIN)/python benchmarks/cpu_losses.py

fuzz: .venv/dev.stamp
	$(BIN)/python tools/fuzz.py --seconds $(SECONDS)

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
