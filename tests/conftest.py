"""Fixtures of the whole suite: array libraries, dtypes, the command line; how hypothesis draws."""

import atexit
import gc
import os
import random
import sys
import tempfile
from collections.abc import Iterator

# JAX reads these when it is imported. It computes in float32 unless told otherwise, and the
# promises are for both precisions.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")
# XLA takes most of the time of JAX's tests, and less of it where it optimizes less. That changes
# digits: tests/parity compiles as users do. Small programs are not worth splitting.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
)
# What one worker has compiled serves the others, and itself after its memory was given back.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    _cache = tempfile.TemporaryDirectory(prefix="fitzpatrick-jax-")  # goes with this process
    os.environ["JAX_COMPILATION_CACHE_DIR"] = _cache.name
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
# A GPU is hidden, and Triton's interpreter runs the kernels: every machine tests the same. The
# tests that use a GPU see it by `make test-gpu`.
if os.environ.get("FITZPATRICK_TEST_GPU") != "1":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when the kernels are defined
# OpenMP and OpenBLAS read these when they are loaded. Every core has a worker of its own: threads
# that wait for one another only take time from it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

from fitzpatrick.engines import table

from . import memory
from .helpers import DTYPES, LIBRARIES, Library

# Files that take five seconds of a core or more, the slowest first: a worker that gets one of them
# last would keep the others waiting. test_edges needs what Numba compiles for test_parity, and
# begins when that is done.
SLOW_FILES = """
    test_parity test_projections test_sparse_targets test_sharded test_cli test_sets test_edges
    test_fused_attention test_probabilities test_site test_torch_compilation test_torch_autograd
    test_tracing test_libraries test_torch_triton test_torch_entmax test_attention _projections
    test_torch_memory test_runner test_import test_arguments test_order test_validation test_losses
    test_recipe test_study test_transforms test_head test_derivatives test_models test_structured
"""
# A number makes an order of the tests of its own; none of them may need another one to run before.
SHUFFLE = os.environ.get("FITZPATRICK_TEST_SHUFFLE", "")
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


@pytest.fixture(autouse=True, scope="module")
def _bounded_memory() -> Iterator[None]:
    """Give memory back after a module: JAX keeps all that it has compiled until it is told."""
    yield
    memory.give_back_remains()


def pytest_configure(config: pytest.Config) -> None:
    """Watch the memory, for the doctests in src as well."""
    config.pluginmanager.register(memory)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the slowest files, or run in another order."""
    places = {name: place for place, name in enumerate(SLOW_FILES.split())}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))
    if SHUFFLE:
        random.Random(int(SHUFFLE)).shuffle(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Nothing that is imported is garbage: it is not scanned, neither now nor in every test."""
    gc.disable()
    result = yield
    gc.enable()
    gc.collect()
    gc.freeze()
    # extensions look for what is left of theirs when Python ends, and report it
    atexit.register(gc.unfreeze)
    return result


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
    monkeypatch.setattr(table, "MIN_COMPILED_SIZE", 0)


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


@pytest.fixture
def ok(run):
    """Call the command line, which succeeds; its output."""

    def call(*arguments):
        code, out, err = run(*arguments)
        assert code == 0, err
        return out

    return call


@pytest.fixture
def fails(run):
    """Call the command line, which fails; its only line of errors, without what begins it."""

    def call(*arguments):
        code, out, err = run(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        return err.removeprefix("error: ").removesuffix("\n")

    return call
