"""The compiled rows: when they are chosen, what they do without Numba, and what they restate."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpmath import mp
from scipy import sparse

from tests.helpers import assert_close, seeded

pytest.importorskip("numba")

import numba
from numba import njit

import fitzpatrick as fp
from fitzpatrick.engines import RowBlocks, rows, table
from fitzpatrick.engines.compiled import _jit, _math, links
from fitzpatrick.engines.compiled._entries import EntryKernel, entries
from fitzpatrick.engines.compiled._kernel import CompiledKernel
from fitzpatrick.engines.compiled._labels import LabelKernel, logistic_labels
from fitzpatrick.engines.compiled._proportions import ProportionKernel
from fitzpatrick.engines.compiled._proportions import proportions as proportions_loop
from fitzpatrick.engines.compiled._simplex import SimplexKernel, simplex

from .cases import bind_loss, make_loss, scores, targets


def run(code: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def kernel_of(name: str, y: Any, k: int, **options: Any) -> Any:
    bound = bind_loss(fp.get_loss(name), y, k, **options)
    assert isinstance(bound, RowBlocks)
    return bound.kernel


def test_large_problems_are_compiled_and_small_ones_are_not() -> None:
    n, k = 1 << 8, 128
    labels = np.zeros(n, int)
    assert isinstance(kernel_of("sparsemax", labels, k), SimplexKernel)
    assert isinstance(kernel_of("logistic", labels, k), LabelKernel)
    csr = sparse.csr_array((np.ones(n), labels, np.arange(n + 1)), shape=(n, k))
    assert isinstance(kernel_of("fitzpatrick_logistic", csr, k), ProportionKernel)
    assert isinstance(kernel_of("fitzpatrick_entmax15", csr, k), SimplexKernel)
    assert isinstance(kernel_of("sigmoid", csr[: n // 8], k), EntryKernel)  # where the core is slow
    assert not isinstance(bind_loss(fp.get_loss("sigmoid"), csr[: n // 8 - 1], k), RowBlocks)
    assert not isinstance(kernel_of("logistic", labels[1:], k), CompiledKernel)
    assert not isinstance(kernel_of("sparsemax", labels, k, engine="numpy"), CompiledKernel)
    assert isinstance(kernel_of("sparsemax", labels[:3], k, engine="numba"), SimplexKernel)


def test_an_engine_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither Numba without its compiler, nor none at all."""
    with monkeypatch.context() as patch:
        patch.setattr(numba.config, "DISABLE_JIT", 1)
        kernel = kernel_of("sparsemax", np.zeros(1 << 12, int), 128)
        assert not isinstance(kernel, CompiledKernel)
    monkeypatch.setattr(table, "_numba", lambda: None)
    with pytest.raises(ValueError, match="there is no compiled loss for Indicator"):
        bind_loss(fp.get_loss("perceptron"), np.zeros(3, int), 4, engine="numba")
    with pytest.raises(ImportError, match="needs a numba that can be imported"):
        bind_loss(fp.get_loss("logistic"), np.zeros(3, int), 4, engine="numba")


def test_kernels_need_no_folder_to_write_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse_to_cache(function: Any, *, cache: bool = False, **options: Any) -> Any:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(function, **options)

    monkeypatch.setattr(_jit.numba, "njit", refuse_to_cache)
    assert _jit.loop(lambda x: 2 * x)(21) == 42


def test_the_digest_covers_what_compiled_code_takes_in() -> None:
    """Numba looks at the file of a function alone, not at what it imports."""
    not_compiled = {"rows", "targets", "regularizers", "special"}
    package = Path(fp.__file__).parent
    for source in (package / "engines" / "compiled").glob("*.py"):
        assert source in _jit.SOURCES
        imports = re.findall(r"^from (\.{2,3})([\w.]+) import", source.read_text(), re.MULTILINE)
        for dots, module in imports:
            folder = package / "engines" if dots == ".." else package
            path = folder.joinpath(*module.split(".")).with_suffix(".py")
            assert module in not_compiled or path in _jit.SOURCES


def test_the_core_serves_large_problems_without_numba() -> None:
    code = """
import sys, warnings
sys.modules["numba"] = None  # as if it were not installed
import numpy as np
import fitzpatrick as fp
theta = np.random.default_rng(0).normal(size=(1 << 9, 128))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for name in fp.loss_names():
        loss, y = fp.get_loss(name), np.eye(128)[np.arange(1 << 9) % 128]
        expected = loss.solve(y, theta)
        value, gradient = loss.value_and_gradient(y, theta)
        np.testing.assert_allclose(value, expected.value(), rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(gradient, expected.gradient(), rtol=0, atol=1e-15)
        np.testing.assert_allclose(loss.link(theta), loss.regularizer.link(theta), rtol=1e-14)
print(len([w for w in caught if "numba cannot be imported" in str(w.message)]))
print("fitzpatrick.engines.compiled" in sys.modules)
"""
    assert run(code).split() == ["1", "False"]


def test_small_problems_do_not_load_numba() -> None:
    code = """
import sys
import numpy as np
import fitzpatrick as fp
fp.get_loss("logistic").value(np.zeros(100, int), np.zeros((100, 300)))
fp.get_loss("sigmoid").value(np.zeros((40, 100)), np.zeros((40, 100)))
print("numba" in sys.modules)
"""
    assert run(code) == "False"


@pytest.mark.parametrize("name", ["logistic", "sparsemax", "entmax13", "sigmoid"])
def test_read_only_and_strided_inputs_compile_nothing_new(name: str) -> None:
    n, k = 20, 16
    theta = scores(n, 2 * k, 1.0, "float64", 0)[:, ::2]
    frozen = np.ascontiguousarray(theta)
    frozen.flags.writeable = False
    y = targets(name, 2 * n, k, 0)[0][::2]
    y.flags.writeable = False
    bound = bind_loss(make_loss(name), y, k, engine="numba")
    out = np.empty(2 * n)[::2], np.empty((n, 2 * k))[:, ::2]
    expected = bound.value_and_gradient(frozen)
    loops = (simplex, entries, logistic_labels, proportions_loop)
    compiled = [len(loop.signatures) for loop in loops]
    np.testing.assert_equal(bound.value_and_gradient(theta, out), expected)
    assert compiled == [len(loop.signatures) for loop in loops]


@pytest.mark.parametrize("name", ["logistic", "sparsemax"])
def test_numbers_beside_a_loss_are_those_of_their_rows(name: str, monkeypatch) -> None:
    """In one block, whose stats the pass of the loss or one after it writes, and in several."""
    n, k = 23, 60
    theta = scores(n, k, 1.0, "float64", 0)
    for y in targets(name, n, k, 1):
        kernel = bind_loss(make_loss(name), y, k, engine="numba").kernel
        whole, blocks = np.full((2, n, 4), np.nan)
        RowBlocks(kernel, 1, whole).value(theta)
        with monkeypatch.context() as patch:
            patch.setattr(rows, "block_rows", lambda *_: 7)
            RowBlocks(kernel, 1, blocks).value(theta)
        np.testing.assert_array_equal(blocks, whole)
        np.testing.assert_allclose(whole[:, 0], np.logaddexp.reduce(theta, axis=1), rtol=1e-14)


@numba.njit
def apply_math(x: Any, exponential: Any, logarithm: Any, log1p: Any, omega: Any) -> None:
    for i in range(len(x)):
        exponential[i] = _math.exp(x[i])
        logarithm[i] = _math.log(exponential[i])
        log1p[i] = _math.log1p(exponential[i])
        omega[i] = _math.wright_omega(x[i])


def test_elementary_functions_have_the_digits_of_the_core() -> None:
    rng = seeded(0)
    x = np.concatenate([rng.uniform(-700, 700, 4000), rng.normal(size=4000), [0.0, 1.0, -40.0]])
    exponential, logarithm, log1p, omega = np.empty((4, len(x)))
    apply_math(x, exponential, logarithm, log1p, omega)
    tight = 4 * np.finfo(float).eps
    np.testing.assert_allclose(exponential, np.exp(x), rtol=tight)
    np.testing.assert_allclose(logarithm, np.log(exponential), rtol=tight)
    np.testing.assert_allclose(log1p, np.log1p(exponential), rtol=tight)
    np.testing.assert_allclose(omega, fp.special.wright_omega(x), rtol=tight)
    special = np.asarray([-np.inf, -800.0, np.nan])
    apply_math(special, exponential[:3], logarithm[:3], log1p[:3], omega[:3])
    np.testing.assert_array_equal(exponential[:3], [0.0, 0.0, np.nan])


@pytest.mark.parametrize("name", ["any order", "sparsemax", "entmax15"])
def test_jacobians_of_links_from_the_predictions(name: str) -> None:
    """Small and large β |log p|, across the end of its series; a row of zeros is masked."""
    p = np.asarray([*seeded(3).dirichlet(np.full(12, 0.4), 40), np.zeros(12)])
    p[p < 1e-12] = 0
    v = seeded(4).normal(size=p.shape)
    alpha = np.resize([1.0, 1 + 1e-9, 1 + 1e-5, 1.01, 1.1, 1.5, 2.0], len(p))
    found, by_alpha = np.empty_like(p), np.zeros(len(p))
    if name == "any order":
        links.multiply_by_jacobians(p, v, alpha, found, by_alpha, 1)
    else:
        alpha[:] = {"sparsemax": 2.0, "entmax15": 1.5}[name]
        formula = kernel_of(name, np.zeros(3, int), 4, engine="numba").link_formula
        links.multiply_by_jacobian(formula, p, v, found, 1)
    with mp.workdps(40):
        exact = np.frompyfunc(mp.mpf, 1, 1)
        x, y = exact(p), exact(v)
        log_x = np.frompyfunc(lambda x: mp.log(x) if x else x, 1, 1)(x)
        t = (1 - exact(alpha[:, None])) * log_x
        d = x * np.frompyfunc(mp.exp, 1, 1)(t)
        remainder = np.frompyfunc(lambda t: (mp.expm1(t) - t) / t**2 if t else mp.mpf(0.5), 1, 1)
        total = d.sum(axis=1, keepdims=True)
        y = y - (d * y).sum(axis=1, keepdims=True) / np.where(total == 0, 1, total)
        slopes = (-x * log_x**2 * remainder(t) * y).sum(axis=1).astype(float)
        product = (d * y).astype(float)
    # sums of twelve terms, of which each is off by a few eps of its size
    assert_close(found, product, rtol=1e-13, atol=1e-13)
    if name == "any order":
        assert_close(by_alpha, slopes, rtol=1e-13, atol=1e-13)
