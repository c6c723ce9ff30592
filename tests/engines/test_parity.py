"""The engines give the digits of the core on everything that both can serve."""

from typing import Any

import numpy as np
import pytest

from fitzpatrick import engines
from fitzpatrick.engines import _blocks
from tests.helpers import TEST_ALL, TWO_WAYS

from .cases import (
    REGULARIZERS,
    SIMPLEX,
    TIGHTNESSES,
    assert_same_digits,
    cases,
    core,
    make_loss,
    scores,
)

# n, k and the scale of the scores
PROBLEMS = [(5, 7, 1.0), (3, 1, 10.0), (9, 300, 0.1), (4, 300, 1e4), (4, 40, 0.0), (4, 40, 3.0)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", REGULARIZERS)
@np.errstate(all="ignore")  # behind the edge nobody else turns NumPy's warnings off
def test_engines_give_the_digits_of_the_core(name: str, dtype: str, engine: str) -> None:
    has_kernel = engines.find_kernel(engine, REGULARIZERS[name]) is not None
    # without a kernel it is the core itself that runs, on blocks
    for seed, (n, k, scale) in enumerate(PROBLEMS if has_kernel else PROBLEMS[:2]):
        # the exponential link overflows beyond
        theta = scores(n, k, min(scale, 10.0) if name == "poisson" else scale, dtype, seed)
        v = scores(n, k, 1.0, dtype, seed + 100)
        ordered = np.asfortranarray(theta) if seed % 2 else theta
        for tightness in TIGHTNESSES if TEST_ALL else TIGHTNESSES[seed % 2 :: 2]:
            loss = make_loss(name, tightness)
            for case in cases(name, n, k, seed)[:5]:
                value, gradient, y_star, hessian = core(loss, case, theta)
                size = max(1.0, float(np.abs(y_star).max()))
                bound = engines.bind(loss, case.y, k, dtype=dtype, n_threads=2)
                got_value, got_gradient = bound.value_and_gradient(ordered)
                assert_same_digits(got_value, value, dtype)
                assert_same_digits(got_gradient, gradient, dtype, size)
                assert (got_value >= 0).all()
                assert_same_digits(bound.value(theta), got_value, dtype)
                assert_same_digits(bound.y_star(theta), y_star, dtype, size)
                product = bound.hessian_product(theta, v)
                assert_same_digits(product, hessian(v), dtype, 10 * size)
                np.testing.assert_array_equal(product, bound.hessian_operator(theta)(v))


@pytest.fixture
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_blocks, "block_rows", lambda *_: 7)
    monkeypatch.setattr(_blocks, "_MIN_THREADED_SIZE", 0)


@pytest.mark.usefixtures("_small_blocks")
@pytest.mark.parametrize("name", REGULARIZERS)
def test_neither_blocks_nor_threads_leave_a_trace(name: str) -> None:
    loss = make_loss(name, 0.5)
    n, k = 23, 300
    theta = scores(n, k, 1.0, "float64", 5)
    for case in cases(name, n, k, 6)[:5]:
        one = loss.value_and_gradient(case.y, theta, n_threads=1)
        three = loss.value_and_gradient(case.y, theta, n_threads=3)
        np.testing.assert_array_equal(one[0], three[0])
        np.testing.assert_array_equal(one[1], three[1])
        for at in (0, 6, 7, 13, 22):
            row = slice(at, at + 1)
            value, gradient = loss.value_and_gradient(case.y[row], theta[row])
            assert_same_digits(value, one[0][row], "float64")
            assert_same_digits(gradient, one[1][row], "float64")


@pytest.mark.parametrize("tightness", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("name", SIMPLEX)
def test_masked_classes_and_bad_rows_are_those_of_the_core(name: str, tightness: float) -> None:
    loss = make_loss(name, tightness)
    n, k = 12, 300
    theta = scores(n, k, 1.0, "float64", 1)
    theta[:, ::3] = -np.inf
    theta[3, 4] = np.nan
    theta[5, 1] = np.inf
    theta[6] = -np.inf
    for case in cases(name, n, k, 2):
        value, gradient, _, _ = core(loss, case, theta)
        got_value, got_gradient = loss.value_and_gradient(case.y, theta)
        np.testing.assert_allclose(got_value, value, **TWO_WAYS)
        np.testing.assert_allclose(got_gradient, gradient, **TWO_WAYS)


@pytest.mark.parametrize("name", sorted(set(REGULARIZERS) - set(SIMPLEX)))
@np.errstate(all="ignore")
def test_infinite_entries_are_those_of_the_core(name: str) -> None:
    for tightness in (0.0, 0.5, 1.0):
        loss = make_loss(name, tightness)
        theta = scores(4, 6, 1.0, "float64", 1)
        theta[0, 1], theta[1, 1], theta[3, 2] = np.nan, np.inf, -np.inf
        for case in cases(name, 4, 6, 2):
            value, gradient, _, _ = core(loss, case, theta)
            got: Any = loss.value_and_gradient(case.y, theta)
            assert_same_digits(got[0], value, "float64")
            assert_same_digits(got[1], gradient, "float64")


@pytest.mark.parametrize("name", SIMPLEX)
def test_ties_and_perfect_predictions(name: str) -> None:
    n, k = 8, 300
    theta = np.zeros((n, k))
    theta[:, 5:9] = 4.0  # ties at the top
    theta[0] = np.linspace(0.0, 1e-12, k)
    for tightness in TIGHTNESSES:
        loss = make_loss(name, tightness)
        for y in (np.full(n, 7), loss.link(theta)):
            value, gradient = loss.value_and_gradient(y, theta)
            dense = np.eye(k)[y] if y.ndim == 1 else y
            with np.errstate(all="ignore"):
                solution = loss.solve(dense, theta)
                expected, y_star = solution.value(), solution.y_star
            assert_same_digits(value, expected, "float64")
            assert_same_digits(gradient, y_star - dense, "float64")


@pytest.mark.by_turns("name", "dtype", "engine")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", SIMPLEX)
def test_ties_of_huge_scores_do_not_swallow_the_targets(name: str, dtype: str) -> None:
    for k in (40, 300):
        theta = np.zeros((3, k), dtype=dtype)
        theta[:, 5:9] = np.asarray([[1e3], [1e8], [1e30]])  # θ + y is θ in the last two rows
        for tightness in (0.0, 0.5, 1.0):
            loss = make_loss(name, tightness)
            for case in cases(name, 3, k, 3):
                value, gradient, _, _ = core(loss, case, theta)
                got_value, got_gradient = loss.value_and_gradient(case.y, theta)
                assert_same_digits(got_value, value, dtype)
                assert_same_digits(got_gradient, gradient, dtype)
