"""The compiled rows: when they are chosen, what they do without Numba, and what they restate."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("numba")

import numba
from numba import njit

import fitzpatrick as fp
from fitzpatrick import engines
from fitzpatrick.engines import RowBlocks, _bind
from fitzpatrick.engines.compiled import _jit, _math
from fitzpatrick.engines.compiled._entries import EntryKernel, entries
from fitzpatrick.engines.compiled._kernel import CompiledKernel
from fitzpatrick.engines.compiled._labels import LabelKernel, logistic_labels
from fitzpatrick.engines.compiled._proportions import ProportionKernel
from fitzpatrick.engines.compiled._proportions import proportions as proportions_loop
from fitzpatrick.engines.compiled._simplex import SimplexKernel, simplex

from .cases import (
    REGULARIZERS,
    RELATIVE,
    SIMPLEX,
    assert_same_digits,
    cases,
    core,
    make_loss,
    proportions,
    scores,
)

COMPILED = [name for name in REGULARIZERS if name != "perceptron"]
ROWS = [name for name in COMPILED if name in SIMPLEX]


@pytest.fixture(autouse=True)
def engine() -> None:
    """These tests name their engines, and run once."""


def run(code: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def kernel_of(name: str, y: Any, k: int, **options: Any) -> Any:
    bound = engines.bind(fp.get_loss(name), y, k, **options)
    assert isinstance(bound, RowBlocks)
    return bound.kernel


def test_large_problems_are_compiled_and_small_ones_are_not() -> None:
    n, k = 1 << 12, 128
    labels = np.zeros(n, int)
    assert isinstance(kernel_of("sparsemax", labels, k), SimplexKernel)
    assert isinstance(kernel_of("logistic", labels, k), LabelKernel)
    csr = sparse.csr_array((np.ones(n), labels, np.arange(n + 1)), shape=(n, k))
    assert isinstance(kernel_of("fitzpatrick_logistic", csr, k), ProportionKernel)
    assert isinstance(kernel_of("fitzpatrick_entmax15", csr, k), SimplexKernel)
    assert isinstance(kernel_of("sigmoid", csr, k), EntryKernel)
    assert not isinstance(kernel_of("sparsemax", labels[1:], k), CompiledKernel)
    assert not isinstance(kernel_of("sparsemax", labels, k, engine="numpy"), CompiledKernel)
    assert isinstance(kernel_of("sparsemax", labels[:3], k, engine="numba"), SimplexKernel)


@pytest.mark.parametrize(
    ("name", "engine", "message"),
    [
        ("perceptron", "numba", "there is no compiled loss for Indicator"),
        ("logistic", "cuda", "engine must be 'numba', 'numpy' or None, got 'cuda'"),
    ],
)
def test_an_engine_that_is_not_there_is_refused(name: str, engine: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        engines.bind(fp.get_loss(name), np.zeros(3, int), 4, engine=engine)


def test_an_engine_that_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bind, "_numba", lambda: None)
    with pytest.raises(ImportError, match=r"install fitzpatrick\[numba\]"):
        engines.bind(fp.get_loss("logistic"), np.zeros(3, int), 4, engine="numba")
    kernel = kernel_of("logistic", np.zeros(3, int), 4)
    assert not isinstance(kernel, CompiledKernel)


def test_a_disabled_compiler_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    kernel = kernel_of("sparsemax", np.zeros(1 << 12, int), 128)
    assert not isinstance(kernel, CompiledKernel)


def test_a_numba_that_cannot_be_imported_is_not_used() -> None:
    code = """
import sys, tempfile, pathlib, warnings
folder = pathlib.Path(tempfile.mkdtemp())
(folder / "numba.py").write_text("raise ImportError('Numba needs another NumPy')")
sys.path.insert(0, str(folder))
import numpy as np
import fitzpatrick as fp

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        value = fp.get_loss("logistic").value(np.zeros(1 << 12, int), np.zeros((1 << 12, 128)))
assert np.allclose(value, np.log(128))
print([str(warning.message) for warning in caught])
"""
    output = run(code)
    assert output.count("numba is installed but cannot be imported") == 1
    assert "Numba needs another NumPy" in output


def test_kernels_need_no_folder_to_write_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse_to_cache(function: Any, *, cache: bool = False, **options: Any) -> Any:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(function, **options)

    def double(x: Any) -> Any:
        return 2 * x

    monkeypatch.setattr(_jit.numba, "njit", refuse_to_cache)
    assert _jit.loop(double)(21) == 42


def test_everything_works_without_numba() -> None:
    code = """
import sys
sys.modules["numba"] = None  # as if it were not installed
import numpy as np
import fitzpatrick as fp
theta = np.random.default_rng(0).normal(size=(1 << 13, 128))
for name in ("logistic", "fitzpatrick_logistic", "fitzpatrick_sparsemax", "fitzpatrick_entmax15"):
    value, gradient = fp.get_loss(name).value_and_gradient(np.arange(1 << 13) % 128, theta)
    assert (value >= 0).all() and abs(gradient.sum(axis=1)).max() < 1e-13
print("fitzpatrick.engines.compiled" in sys.modules)
"""
    assert run(code) == "False"


def test_small_problems_do_not_load_numba() -> None:
    code = """
import sys
import numpy as np
import fitzpatrick as fp
fp.get_loss("logistic").value(np.zeros(100, int), np.zeros((100, 1000)))
print("numba" in sys.modules)
"""
    assert run(code) == "False"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ROWS)
@np.errstate(all="ignore")
def test_supports_of_every_size(name: str, dtype: str) -> None:
    """Rows with 1, 2, … k labels in one matrix."""
    for k, tightness in ((2, 1.0), (3, 0.5), (10, 0.0), (90, 1.0)):
        rng = np.random.default_rng(k)
        sizes = sorted({1, 2, 3, 9, k // 2, k - 1, k} & set(range(1, k + 1)))
        dense = np.concatenate([proportions(rng, 3, k, size) for size in sizes])
        loss, n = make_loss(name, tightness), len(dense)
        for scale in (0.1, 300.0):
            theta = scores(n, k, scale, dtype, k)
            theta[0] += 1e4
            solution = loss.solve(dense.astype(dtype), theta)
            value, y_star = solution.value(), solution.y_star
            for y in (np.asfortranarray(dense), sparse.csr_array(dense)):
                bound = engines.bind(loss, y, k, dtype, engine="numba")
                got_value, got_gradient = bound.value_and_gradient(theta)
                assert_same_digits(got_value, value, dtype)
                assert_same_digits(got_gradient, y_star - dense.astype(dtype), dtype)


@pytest.mark.parametrize("name", COMPILED)
def test_one_bad_row_leaves_the_others_alone(name: str) -> None:
    n, k = 12, 30
    theta = scores(n, k, 1.0, "float64", 0)
    loss = make_loss(name)
    for case in cases(name, n, k, 1)[:3]:
        bound = engines.bind(loss, case.y, k, engine="numba")
        value, gradient = bound.value_and_gradient(theta)
        for bad in (np.nan, np.inf, -np.inf):
            spoilt = theta.copy()
            spoilt[4] = bad
            got_value, got_gradient = bound.value_and_gradient(spoilt)
            others = np.arange(n) != 4
            assert_same_digits(got_value[others], value[others], "float64")
            assert_same_digits(got_gradient[others], gradient[others], "float64")
            expected = core(loss, case, spoilt)
            np.testing.assert_array_equal(got_value[4], expected[0][4])
            np.testing.assert_array_equal(got_gradient[4], expected[1][4])


@pytest.mark.parametrize("name", COMPILED)
def test_read_only_and_strided_inputs_compile_nothing_new(name: str) -> None:
    n, k = 20, 16
    theta = scores(n, 2 * k, 1.0, "float64", 0)[:, ::2]
    frozen = np.ascontiguousarray(theta)
    frozen.flags.writeable = False
    y = cases(name, 2 * n, k, 0)[0].y[::2]
    y.flags.writeable = False
    bound = engines.bind(make_loss(name), y, k, engine="numba")
    out = np.empty(2 * n)[::2], np.empty((n, 2 * k))[:, ::2]
    value, gradient = bound.value_and_gradient(frozen)
    loops = (simplex, entries, logistic_labels, proportions_loop)
    compiled = [len(loop.signatures) for loop in loops]
    bound.value_and_gradient(theta, out)
    assert compiled == [len(loop.signatures) for loop in loops]
    np.testing.assert_array_equal(out[0], value)
    np.testing.assert_array_equal(out[1], gradient)


@numba.njit
def apply_math(x: Any, exponential: Any, logarithm: Any, log1p: Any, omega: Any) -> None:
    for i in range(len(x)):
        exponential[i] = _math.exp(x[i])
        logarithm[i] = _math.log(exponential[i])
        log1p[i] = _math.log1p(exponential[i])
        omega[i] = _math.wright_omega(x[i])


def test_elementary_functions_have_the_digits_of_the_core() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-700, 700, 4000), rng.normal(size=4000), [0.0, 1.0, -40.0]])
    exponential, logarithm, log1p, omega = np.empty((4, len(x)))
    apply_math(x, exponential, logarithm, log1p, omega)
    tight = RELATIVE["float64"] / 100
    np.testing.assert_allclose(exponential, np.exp(x), rtol=tight)
    np.testing.assert_allclose(logarithm, np.log(exponential), rtol=tight)
    np.testing.assert_allclose(log1p, np.log1p(exponential), rtol=tight)
    np.testing.assert_allclose(omega, fp.special.wright_omega(x), rtol=tight)
    special = np.asarray([-np.inf, -800.0, np.nan])
    apply_math(special, exponential[:3], logarithm[:3], log1p[:3], omega[:3])
    np.testing.assert_array_equal(exponential[:3], [0.0, 0.0, np.nan])


@pytest.mark.parametrize("name", COMPILED)
def test_a_nan_of_any_bits_is_a_nan(name: str) -> None:
    for bits in (0x7FF00000000007A2, 0x7FF8000000000801, 0xFFF8000000000FFF):
        theta = np.zeros((3, 6))
        theta[1, 2] = np.asarray([bits], np.uint64).view(np.float64)[0]
        y = sparse.csr_array(np.eye(6)[[0, 2, 3]])
        for targets in (y, y.toarray(), *([np.asarray([0, 1, 3])] if name in SIMPLEX else [])):
            bound = engines.bind(make_loss(name), targets, 6, engine="numba")
            value, gradient = bound.value_and_gradient(theta)
            np.testing.assert_array_equal(np.isnan(value), [False, True, False])
            assert np.isnan(gradient[1]).any()
