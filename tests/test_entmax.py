"""Tsallis losses and α-entmax at every order, and the derivative in it, against mpmath."""

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

import fitzpatrick as fp
from fitzpatrick._array import coupled_product
from fitzpatrick.regularizers import Tsallis
from fitzpatrick.regularizers.tsallis import entmax_alpha_slope, entmax_link, entmax_slope
from tests.helpers import (
    FLOOR_IN_EPS,
    RELATIVE,
    TEST_ALL,
    assert_close,
    assert_promised,
    eps,
    seeded,
)
from tests.reference import recipe, slopes

ORDERS = (1.0, 1 + 1e-12, 1 + 1e-9, 1 + 1e-6, 1.01, 1.05, 1.2, 1.5, 1.77, 2.0)
# From the softmax to sparsemax, most of them near 1, where 1/(α − 1) is large.
ALL_ORDERS = [1.0, *(1 + np.logspace(-15, 0, 2000 if TEST_ALL else 16)), 2 - 1e-3, 2 - 1e-9]
TIGHTNESSES = (0.0, 0.3, 1.0, 5.0)


def evaluate(y, theta, alpha, tightness):
    """The loss at one row, its maximizer and the slopes of that, from the definition."""
    omega = recipe.tsallis(alpha)
    loss = omega.loss_at(Fraction(float(tightness)))
    found = loss.evaluate(recipe.target("logistic", y), recipe.rationals(theta), 30)
    value, y_star = found.rounded(len(y))
    y = np.asarray(y, float) / np.sum(y, dtype=float)
    return value, y_star, slopes.slope(omega, y_star, y, tightness)


def draw_row(seed, dtype, k=5):
    """Scores, targets (dense, a label, or with zeros and a tiny one) and a direction."""
    rng = seeded(seed)
    y = rng.dirichlet(np.ones(k))
    if seed % 3 == 1:
        y = np.eye(k)[rng.integers(k)]
    elif seed % 3 == 2:
        y[:3] = 0.0, 0.0, 1e-30
    theta = rng.normal(size=k) * 10 ** rng.uniform(-2, 1.5)
    return (x.astype(dtype)[None] for x in (y / y.sum(), theta, rng.normal(size=k)))


def test_every_order_keeps_the_promise(dtype, compiled_rows):
    """The core's loss, maximizer and Hessian product, and those of the public edge."""
    for seed, alpha in enumerate(ALL_ORDERS):
        y, theta, v = draw_row(seed, dtype)
        tightness = TIGHTNESSES[seed % 4]
        expected, expected_y_star, d = evaluate(y[0], theta[0], alpha, tightness)
        loss = fp.FitzpatrickLoss(Tsallis(alpha), tightness)
        with np.errstate(all="ignore"):
            solution = loss.solve(y, theta)
            core = solution.value(), solution.y_star, solution.hessian_product(v)
        edge = loss.value(y, theta), loss.y_star(y, theta), loss.hessian_product(y, theta, v)
        # a slope is a power of p, and steep where p is small
        least = np.min(expected_y_star[expected_y_star > 0])
        slack = np.sum(RELATIVE[dtype] * d + FLOOR_IN_EPS * eps(dtype) / least)
        product = coupled_product(d[None], v.astype(float))
        for value, y_star, hessian_product in (core, edge):
            assert_promised(value, [expected], y, dtype)
            assert_promised(y_star, expected_y_star[None], y, dtype)
            assert_close(hessian_product, product, rtol=0, atol=4 * slack * np.max(np.abs(v)))
        link = evaluate(y[0], theta[0], alpha, 0.0)[1]
        assert_promised(loss.link(theta), link, y, dtype)


def test_a_label_at_the_edge_of_the_support():
    """Without its target its prediction would be next to 0, many orders below what it is."""
    loss = fp.FitzpatrickLoss(Tsallis(1.01))
    for gap in np.linspace(-101.2, -100.8, 9, dtype="float32"):
        theta = np.asarray([[gap, 0.0]], "float32")
        _, expected, _ = evaluate([1.0, 0.0], theta[0], 1.01, 1.0)
        with np.errstate(all="ignore"):
            y_star = loss.solve_labels(np.asarray([0]), theta).y_star
        assert_close(y_star, expected[None], rtol=RELATIVE["float32"], atol=0)


@pytest.mark.parametrize(
    ("dtype", "tightness", "tiny"), [("float64", 1e-12, 1e-315), ("float32", 1e-12, 1e-35)]
)
def test_entmax15_where_tightness_times_target_underflows(dtype, tightness, tiny, compiled_rows):
    """A target that counts for nothing, with a score at the threshold, and below it."""
    y = np.asarray([[1.0, tiny, 0.0]], dtype)
    loss = fp.FitzpatrickLoss(Tsallis(1.5), tightness)
    for theta in ([[0.0, -2.0, -9.0]], [[0.0, -5.0, -9.0]]):
        theta = np.asarray(theta, dtype)
        with np.errstate(all="ignore"):
            solution = loss.solve(y, theta)
        for value, gradient in (
            (solution.value(), solution.gradient()),
            loss.value_and_gradient(y, theta),
        ):
            assert_close(value, [0.0], rtol=0, atol=5 * tiny)
            assert_close(gradient, np.zeros((1, 3)), rtol=0, atol=eps(dtype))
        assert np.isfinite(loss.hessian_product(y, theta, np.ones_like(y))).all()


def exact_link(theta, alpha):
    """The maximizer at tightness 0, in 45 digits."""
    loss = recipe.tsallis(alpha).loss_at(Fraction(0))
    y = recipe.target("logistic", np.ones(len(theta)))
    return loss.evaluate(y, recipe.rationals(theta), 45).y_star


@pytest.mark.parametrize("scale", [1e-3, 1.0, 10.0, 1000.0])
def test_an_order_for_each_row_and_the_derivative_in_it(scale):
    theta, alpha = seeded(0).normal(size=(len(ORDERS), 6)) * scale, np.asarray(ORDERS)[:, None]
    p = entmax_link(theta, alpha)
    derivative = entmax_alpha_slope(p, alpha)
    for row, order in enumerate(ORDERS):
        with mp.workdps(50):
            here, step = exact_link(theta[row], mp.mpf(order)), mp.mpf(10) ** -13
            # on the side on which there are orders
            step = -step if order == 2 else step
            near, far = (exact_link(theta[row], mp.mpf(order) + n * step) for n in (1, 2))
            points = zip(here, near, far, strict=True)
            expected = [float((4 * y - 3 * x - z) / (2 * step)) for x, y, z in points]
        # an entry is exp of a number of size 40 at the most, which has that many rounding errors
        assert_close(p[row], np.asarray(here, dtype=float), rtol=1e-13, atol=1e-15)
        if scale <= 10:
            # differences are exact to step² times a third derivative
            assert_close(derivative[row], expected, rtol=1e-10, atol=1e-13)
    assert_close(p.sum(axis=1), 1.0, rtol=1e-15 * p.shape[1], atol=0)
    assert_close(derivative.sum(axis=1), 0.0, rtol=0, atol=1e-14)
    single = entmax_link(theta.astype(np.float32), alpha.astype(np.float32))
    assert single.dtype == np.float32


def test_masked_and_tied_scores():
    masked, nothing = [0.0, -np.inf, 0.0], [-np.inf] * 3
    theta = np.asarray([masked, [np.nan, 0.0, 0.0], [5.0, -1e9, -1e9], nothing])
    for order in ORDERS:
        alpha = np.full((4, 1), order)
        p = entmax_link(theta, alpha)
        assert_close(p[0], np.asarray([0.5, 0.0, 0.5]), rtol=1e-15, atol=0)
        assert np.isnan(p[1]).any()
        assert np.isnan(p[3]).all()
        assert p[2].tolist() == [1.0, 0.0, 0.0]
        rise = entmax_alpha_slope(p, alpha)[[0, 2]]
        assert_close(rise, np.zeros_like(rise), rtol=0, atol=1e-15)  # by symmetry
        assert entmax_slope(p, alpha)[0, 1] == 0


@pytest.mark.parametrize("alpha", [1.97, 1.9999, 2 - 1e-6, 2 - 1e-12])
@pytest.mark.parametrize("tightness", [0.3, 4.0])
def test_tied_scores_next_to_sparsemax_sum_to_one(alpha, tightness):
    """A target far below the others decays like a large power of its score, around a corner."""
    rng = seeded(11)
    theta = np.round(2 * rng.normal(size=(400, 7)))
    y = np.eye(7)[rng.integers(7, size=400)]
    with np.errstate(all="ignore"):
        p = fp.FitzpatrickLoss(Tsallis(alpha), tightness).solve(y, theta).y_star
    # the sum of seven entries, each with the error of an exponent of a few units
    assert_close(p.sum(axis=1), 1.0, rtol=0, atol=64 * eps("float64"))
