"""The engine gives the digits of the core on everything that both can serve."""

import numpy as np
import pytest

import fitzpatrick as fp
from fitzpatrick import engines
from fitzpatrick.engines._blocks import BLOCK_BYTES, LARGE_BLOCK_BYTES, block_rows

from .cases import LOSSES, SIMPLEX_LOSSES, assert_same_digits, cases, core, scores

SHAPES = [(5, 7), (3, 1), (33, 700), (9, 1031)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 10.0, 1e4])
@pytest.mark.parametrize("name", LOSSES)
def test_engine_gives_the_digits_of_the_core(name: str, scale: float, dtype: str) -> None:
    if "poisson" in name:
        scale = min(scale, 10.0)  # the exponential link overflows beyond
    loss = fp.get_loss(name)
    for seed, (n, k) in enumerate(SHAPES):
        theta = scores(n, k, scale, dtype, seed)
        v = scores(n, k, 1.0, dtype, seed + 100)
        for case in cases(name, n, k, seed):
            value, gradient, y_star, hessian = core(name, case, theta)
            size = max(1.0, float(np.abs(y_star).max()))
            for order in ("C", "F"):
                bound = engines.bind(loss, case.y, k, dtype=dtype, n_threads=2)
                ordered = np.asarray(theta, order=order)
                got_value, got_gradient = bound.value_and_gradient(ordered)
                assert_same_digits(got_value, value, dtype)
                assert_same_digits(got_gradient, gradient, dtype, size)
                assert (got_value >= 0).all()
                assert_same_digits(bound.value(ordered), got_value, dtype)
            assert_same_digits(loss.y_star(case.y, theta), y_star, dtype, size)
            with np.errstate(all="ignore"):
                product = hessian(v)
            assert_same_digits(loss.hessian_product(case.y, theta, v), product, dtype, 10 * size)
            np.testing.assert_array_equal(
                loss.hessian_product(case.y, theta, v), bound.hessian_operator(theta)(v)
            )


@pytest.mark.parametrize("name", SIMPLEX_LOSSES)
def test_masked_classes_and_bad_rows_are_those_of_the_core(name: str) -> None:
    loss = fp.get_loss(name)
    n, k = 12, 700
    theta = scores(n, k, 1.0, "float64", 1)
    theta[:, ::3] = -np.inf
    theta[3, 4] = np.nan
    theta[5, 1] = np.inf
    theta[6] = -np.inf
    for case in cases(name, n, k, 2):
        value, gradient, _, _ = core(name, case, theta)
        got_value, got_gradient = loss.value_and_gradient(case.y, theta)
        np.testing.assert_allclose(got_value, value, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(got_gradient, gradient, rtol=1e-13, atol=2e-15)


@pytest.mark.parametrize("k", [3, 40, 1024])
@pytest.mark.parametrize(
    "name", ["logistic", "fitzpatrick_logistic", "fitzpatrick_sparsemax", "fitzpatrick_entmax15"]
)
def test_block_borders_leave_no_trace(name: str, k: int) -> None:
    step = block_rows(k, 8, BLOCK_BYTES if "logistic" in name else LARGE_BLOCK_BYTES)
    theta = scores(2 * step + 1, k, 1.0, "float64", 3)
    labels = np.random.default_rng(4).integers(0, k, len(theta))
    loss = fp.get_loss(name)
    value, gradient = loss.value_and_gradient(labels, theta)
    for at in (0, step - 1, step, 2 * step - 1, 2 * step):
        alone, alone_gradient = loss.value_and_gradient(labels[at : at + 1], theta[at : at + 1])
        assert_same_digits(alone, value[at : at + 1], "float64")
        assert_same_digits(alone_gradient, gradient[at : at + 1], "float64")
    for n in (step - 1, step, step + 1):
        some, _ = loss.value_and_gradient(labels[:n], theta[:n])
        assert_same_digits(some, value[:n], "float64")


@pytest.mark.parametrize("name", LOSSES)
def test_results_do_not_depend_on_the_number_of_threads(name: str) -> None:
    loss = fp.get_loss(name)
    n, k = 600, 700
    theta = scores(n, k, 1.0, "float64", 5)
    for case in cases(name, n, k, 6)[:5]:
        one = loss.value_and_gradient(case.y, theta, n_threads=1)
        three = loss.value_and_gradient(case.y, theta, n_threads=3)
        np.testing.assert_array_equal(one[0], three[0])
        np.testing.assert_array_equal(one[1], three[1])


@pytest.mark.parametrize("name", SIMPLEX_LOSSES)
def test_ties_and_perfect_predictions(name: str) -> None:
    loss = fp.get_loss(name)
    n, k = 8, 600
    theta = np.zeros((n, k))
    theta[:, 5:9] = 4.0  # ties at the top
    theta[0] = np.linspace(0.0, 1e-12, k)
    for y in (np.full(n, 7), loss.link(theta)):
        value, gradient = loss.value_and_gradient(y, theta)
        dense = np.eye(k)[y] if y.ndim == 1 else y
        with np.errstate(all="ignore"):
            solution = loss.solve(dense, theta)
            expected, y_star = solution.value(), solution.y_star
        assert_same_digits(value, expected, "float64")
        assert_same_digits(gradient, y_star - dense, "float64")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("k", [40, 600])
@pytest.mark.parametrize("name", SIMPLEX_LOSSES)
def test_ties_of_huge_scores_do_not_swallow_the_targets(name: str, k: int, dtype: str) -> None:
    theta = np.zeros((3, k), dtype=dtype)
    theta[:, 5:9] = np.asarray([[1e3], [1e8], [1e30]])  # θ + y is θ in the last two rows
    for case in cases(name, 3, k, 3):
        value, gradient, _, _ = core(name, case, theta)
        got_value, got_gradient = fp.get_loss(name).value_and_gradient(case.y, theta)
        assert_same_digits(got_value, value, dtype)
        assert_same_digits(got_gradient, gradient, dtype)
