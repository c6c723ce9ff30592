"""α-entmax with an array of orders, and its derivative in them, against 40 digits of mpmath."""

import mpmath as mp
import numpy as np
import pytest

from fitzpatrick.regularizers.tsallis import entmax_alpha_slope, entmax_link, entmax_slope
from tests.helpers import assert_close

ORDERS = (1.0, 1 + 1e-12, 1 + 1e-6, 1.01, 1.2, 1.5, 1.77, 2.0)


def exact(theta, alpha):
    """(1 + β(θ − λ))₊^(1/β), with λ by bisection of Σ p = 1."""
    beta = alpha - 1

    def point(lam):
        if beta == 0:
            return [mp.exp(t - lam) for t in theta]
        return [max(mp.mpf(0), 1 + beta * (t - lam)) ** (1 / beta) for t in theta]

    k = mp.mpf(len(theta))
    low = max(theta)
    high = low + (mp.log(k) if beta == 0 else (k**beta - 1) / beta)
    for _ in range(140):
        middle = (low + high) / 2
        low, high = (middle, high) if mp.fsum(point(middle)) > 1 else (low, middle)
    return point((low + high) / 2)


def rows(scale, k=7):
    return np.random.default_rng(0).normal(size=(len(ORDERS), k)) * scale


@pytest.mark.parametrize("scale", [1e-3, 1.0, 10.0, 1000.0])
def test_values(scale):
    theta, alpha = rows(scale), np.asarray(ORDERS)[:, None]
    p = entmax_link(theta, alpha)
    with mp.workdps(40):
        expected = [
            exact([mp.mpf(t) for t in row], mp.mpf(a)) for row, a in zip(theta, ORDERS, strict=True)
        ]
    # an entry is exp of a number of size 40 at the most, which has so many rounding errors
    assert_close(p, np.asarray(expected, dtype=float), rtol=1e-13, atol=1e-15)
    assert_close(p.sum(axis=1), np.ones(len(ORDERS)), rtol=1e-15 * p.shape[1], atol=0)
    single = entmax_link(theta.astype(np.float32), alpha.astype(np.float32))
    assert single.dtype == np.float32


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_the_derivative_in_the_order(scale):
    theta, alpha = rows(scale, k=5), np.asarray(ORDERS)[:, None]
    with mp.workdps(40):
        step = mp.mpf(10) ** -13
        slopes = []
        for row, a in zip(theta, ORDERS, strict=True):
            scores, order = [mp.mpf(t) for t in row], mp.mpf(a)
            # on the side on which there are orders
            sign = -1 if a == 2 else 1
            near, far = (exact(scores, order + sign * n * step) for n in (1, 2))
            here = exact(scores, order)
            slopes.append(
                [
                    sign * (4 * y - 3 * x - z) / (2 * step)
                    for x, y, z in zip(here, near, far, strict=True)
                ]
            )
        expected = np.asarray(slopes, dtype=float)
    actual = entmax_alpha_slope(entmax_link(theta, alpha), alpha)
    # differences are exact to step² times a third derivative
    assert_close(actual, expected, rtol=1e-10, atol=1e-13)
    assert_close(actual.sum(axis=1), np.zeros(len(ORDERS)), rtol=0, atol=1e-15 * len(ORDERS))


def test_masked_and_tied_scores():
    theta = np.asarray([[0.0, -np.inf, 0.0], [np.nan, 0.0, 0.0], [5.0, -1e9, -1e9]])
    for order in ORDERS:
        alpha = np.full((3, 1), order)
        p = entmax_link(theta, alpha)
        assert_close(p[0], np.asarray([0.5, 0.0, 0.5]), rtol=1e-15, atol=0)
        assert np.isnan(p[1]).any()
        assert p[2].tolist() == [1.0, 0.0, 0.0]
        slopes = entmax_alpha_slope(p, alpha)[[0, 2]]
        assert_close(slopes, np.zeros_like(slopes), rtol=0, atol=1e-15)  # by symmetry
        assert entmax_slope(p, alpha)[0, 1] == 0
