PYTHON ?= python3
BIN := .venv/bin
OLDEST := .venv-oldest/bin
# worker processes of the test suite; the tests of a file run in one process and share compiled code
JOBS ?= auto
PYTEST := -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder
GPU_TESTS := tests/linear_model/test_device.py $(addprefix tests/torch/,test_kernel_rows.py \
	test_torch_engines.py test_torch_structured.py test_torch_training.py)
# how long `make fuzz` runs
SECONDS ?= 60

.PHONY: run test test-all test-gpu test-oldest lint docs fuzz mutants bench clean

run: .venv/run.stamp
	$(BIN)/python -m fitzpatrick reproduce

test: lint
	JAX_PLATFORMS=cpu $(BIN)/python $(PYTEST)

# all combinations; `make test` runs a sample of them
test-all: lint
	FITZPATRICK_TEST_ALL=1 JAX_PLATFORMS=cpu $(BIN)/python $(PYTEST)

# the tests that need a GPU, which the other targets hide; gpu_parity.py compares every kernel
test-gpu: .venv/dev.stamp
	FITZPATRICK_TEST_GPU=1 $(BIN)/python -m pytest -q $(GPU_TESTS)

# the lowest versions that pyproject.toml allows, without PyTorch
test-oldest: .venv-oldest/stamp
	JAX_PLATFORMS=cpu $(OLDEST)/python $(PYTEST)

lint: .venv/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# the site, in docs/_build/html; warnings are errors
docs: .venv/docs.stamp
	JAX_PLATFORMS=cpu $(BIN)/python -m sphinx -b html -n -W --keep-going -j auto docs docs/_build/html
	$(BIN)/python tools/check_site.py docs/_build/html

fuzz: .venv/dev.stamp
	$(BIN)/python tools/fuzz.py --seconds $(SECONDS)

# seeds bugs one at a time; takes about half an hour
mutants: .venv/dev.stamp
	$(BIN)/python tools/mutants.py

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

.venv/docs.stamp: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	touch $@ .venv/run.stamp

.venv-oldest/stamp: pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv .venv-oldest
	$(OLDEST)/pip install --quiet --disable-pip-version-check -c constraints-oldest.txt -e ".[test]"
	touch $@

clean:
	rm -rf .venv .venv-oldest out build dist docs/_build docs/auto_gallery
