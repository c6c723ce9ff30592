"""Fixtures of the whole suite: array libraries, dtypes, the command line; how hypothesis draws."""

import contextlib
import gc
import os
import random
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

# JAX reads these when it is imported. It computes in float32 unless told otherwise, and the
# promises are for both precisions.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")
# A GPU is hidden, and Triton's interpreter runs the kernels: every machine tests the same. The
# tests that use a GPU see it by `make test-gpu`.
if os.environ.get("FITZPATRICK_TEST_GPU") != "1":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
# OpenMP reads this when PyTorch is imported: threads that wait leave the core to another process.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from fitzpatrick.engines import _bind

from . import memory, xla
from .helpers import DTYPES, LIBRARIES, TEST_ALL, TEST_SEED, Library

HERE = Path(__file__).parent
ON_GPU = os.environ.get("FITZPATRICK_TEST_GPU") == "1"
# Files that take longest: a worker that gets one of them last would keep the others waiting.
SLOW_FILES = (
    "test_family.py",  # has Numba compile the rows, which the others find in its cache
    "test_torch_triton.py",
    "test_cli.py",
    "test_tracing.py",
    "test_torch_compilation.py",
    "test_validation.py",
    "test_sharded.py",
    "test_derivatives.py",
    "test_values.py",
    "test_accuracy.py",
    "test_torch_memory.py",
    "test_explorer.py",
    "test_runner.py",
    "test_parity.py",
    "test_torch_training.py",
    "test_torch_modules.py",
    "test_torch_autograd.py",
    "test_site.py",
    "test_readme.py",
)
# A number makes an order of the tests of its own; none of them may need another one to run before.
SHUFFLE = os.environ.get("FITZPATRICK_TEST_SHUFFLE", "")
# Tests of digits and of speed: XLA optimizes for them as for users, which changes the rounding.
OPTIMIZED_FILES = ("test_accuracy.py", "test_peers.py")
# The losses by which JAX shows what the public edge does with its arrays: rows and entries.
JAX_LOSSES = ("fitzpatrick_logistic", "sigmoid")

settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
# HYPOTHESIS_PROFILE=search looks for new counterexamples, with other draws at every run
settings.register_profile(
    "search", settings.get_profile("repeatable"), derandomize=False, max_examples=300
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def _with_other_draws(default_rng):
    """NumPy's generators, with other seeds where a test makes one; the package keeps its own.

    So do the tests of experiments and of the command line: which α, verdict or line they expect
    follows from their data.
    """
    stories = (str(HERE / "experiments"), str(HERE / "test_cli"))

    def draw(given=None):
        caller = sys._getframe(1).f_code.co_filename
        is_ours = caller.startswith(f"{HERE}{os.sep}") and not caller.startswith(stories)
        if given is None or not is_ours:
            return default_rng(given)
        return default_rng([TEST_SEED, *np.atleast_1d(given).tolist()])

    return draw


if TEST_SEED:
    np.random.default_rng = _with_other_draws(np.random.default_rng)


@pytest.fixture(autouse=True, scope="module")
def _bounded_memory(request: pytest.FixtureRequest):
    """Give memory back after each module: JAX keeps all that it has compiled until it is told."""
    is_optimized = request.path.name in OPTIMIZED_FILES
    with xla.optimized() if is_optimized else contextlib.nullcontext():
        yield
    memory.give_back()


def pytest_configure(config: pytest.Config) -> None:
    """Looks at the memory, and knows the mark of tests whose parameters repeat one another."""
    config.pluginmanager.register(memory)  # for the doctests in src, too
    config.addinivalue_line(
        "markers",
        "by_turns(*names): every other combination of these parameters, so that of three or more "
        "each meets each value of the others; make test-all runs all",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves out what is for ``make test-all`` and GPUs, and begins with the slowest files."""
    if not (TEST_ALL or ON_GPU):
        items[:] = _by_turns(item for item in items if not _is_repetition(item))
    places = {name: place for place, name in enumerate(SLOW_FILES)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))
    if SHUFFLE:
        random.Random(int(SHUFFLE)).shuffle(items)


def pytest_collection_finish() -> None:
    """Nobody looks for garbage among what is imported, which would take longer than most tests.

    What the tests have collected imports JAX, but for single files: these wait a little longer.
    """
    gc.collect()
    gc.freeze()
    if "jax" in sys.modules:
        xla.compile_quickly()


def pytest_unconfigure() -> None:
    """Extensions look for what is left of theirs when Python ends, and report it."""
    gc.unfreeze()


def _by_turns(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Of tests with that mark those whose places, in the lists of parameters, have an even sum."""
    places = defaultdict(dict)
    for item in items:
        turns = item.get_closest_marker("by_turns")
        total = 0
        for name in turns.args if turns is not None else ():
            known = places[item.path, item.originalname, name]
            total += known.setdefault(repr(item.callspec.params[name]), len(known))
        if total % 2 == 0:
            yield item


def _is_repetition(item: pytest.Item) -> bool:
    """Whether a test of the public edge would only make JAX compile the same for another loss.

    It compiles each operation for each shape and dtype. The contracts carry every regularizer over
    to JAX, and the tests of accuracy look at all dtypes.
    """
    if item.path.parent != HERE or item.path.stem == "test_accuracy":
        return False
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    if parameters.get("xp") != "jax":
        return False
    name, dtype = parameters.get("name"), parameters.get("dtype")
    return dtype == "float64" or (name is not None and name not in JAX_LOSSES)


def installed(name: str) -> Library:
    """An array library, or a skipped test where it is not there."""
    pytest.importorskip(name)
    return LIBRARIES[name]


@pytest.fixture(params=list(LIBRARIES))
def xp(request: pytest.FixtureRequest) -> Library:
    """Each array library in turn."""
    return installed(request.param)


@pytest.fixture
def compiled_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The public edge runs the rows compiled by Numba, whatever the size of the problem."""
    pytest.importorskip("numba")
    monkeypatch.setattr(_bind, "MIN_COMPILED_SIZE", 0)


@pytest.fixture(params=DTYPES)
def dtype(request: pytest.FixtureRequest) -> str:
    """Each working precision in turn."""
    return str(request.param)


@pytest.fixture
def run(monkeypatch, capsys):
    """Call the command line; exit code, standard output and standard error."""
    from fitzpatrick import cli  # most tests run without what it needs

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["fitzpatrick", *map(str, arguments)])
        code = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
