"""Rows at the edges of what the fast paths cover."""

import functools

import numpy as np
import pytest
from mpmath import mp
from scipy import sparse

import fitzpatrick as fp
from tests.helpers import seeded

from .cases import (
    SIMPLEX,
    bind_loss,
    make_loss,
)
from .exact import solve_by_groups


@functools.cache
def ties_below_a_peak(name, dtype, tightness):
    """Labels and scores, and in 60 digits their losses and maximizers; for both engines."""
    k, reach = 20_000, {"sparsemax": 1, "entmax15": 2}[name] + tightness
    margins = (2**-6, 2**-10, 1e-4, 1e-5, 1e-5, 1e-12, 1e-13, 3e-14)
    n = len(margins)
    theta = np.zeros((n, k), dtype=dtype)
    for row, margin in enumerate(margins):
        theta[row, 7] = reach - margin
    theta[1] += 0.3
    theta[4, 9] = theta[4, 7]  # two peaks
    theta[4, 10:] = reach / 2
    labels = np.asarray([7, 7, 0, 7, 9, 0, 7, 7])
    dense = np.zeros((n, k), dtype=dtype)
    dense[np.arange(n), labels] = 1
    return labels, dense, theta, *solve_by_groups(name, tightness, dense, theta)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["sparsemax", "entmax15"])
@np.errstate(all="ignore")
def test_many_ties_just_within_reach_of_a_peak(name, dtype):
    """A rounding error of τ that is longer than their distance to it would lose them all."""
    for tightness in (0.0, 0.5, 1.0):
        labels, dense, theta, value, y_star = ties_below_a_peak(name, dtype, tightness)
        loss = make_loss(name, tightness)
        # A sum of k non-negative terms that is accumulated in any order is off by less than k eps
        # times the sum (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2), and
        # the sum of p is what τ is solved from. Spread over the ties it moves each p by eps, and p
        # at a peak, which has few to share it with, by k eps; so does the loss. The bug that this
        # test is for made the sum 51.
        error = theta.shape[1] * np.finfo(dtype).eps
        for y in (labels, sparse.csr_array(dense), dense):
            got, gradient = loss.value_and_gradient(y, theta)
            np.testing.assert_allclose(np.sum(gradient, axis=1, dtype=float), 0, atol=error)
            np.testing.assert_allclose(got, value, rtol=error, atol=error)
            np.testing.assert_allclose(gradient, y_star - dense, rtol=0, atol=error)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["sparsemax", "entmax15"])
@np.errstate(all="ignore")
def test_ties_that_tau_has_no_digits_for(name, dtype):
    """Where all ties together have less than their number of rounding errors, steps lead back.

    τ cannot be between them and the root, and may be carried above it, where they are lost.
    """
    eps, rng = float(np.finfo(dtype).eps), seeded(1)
    for k, tightness in ((300, 0.0), (20_000, 0.0), (3000, 1.0)):
        loss = make_loss(name, tightness)
        theta = np.zeros((60, k), dtype=dtype)
        reach = {"sparsemax": 1, "entmax15": 2}[name] + tightness
        theta[:, 7] = reach - k * eps * 10 ** rng.uniform(-4, 1, 60)
        theta[::2, 9] = theta[::2, 7]
        theta += rng.choice([0.0, 0.3, 1.0, 10.0], (60, 1)).astype(dtype)
        labels = np.full(60, 7)
        dense = np.zeros((60, k), dtype=dtype)
        dense[:, 7] = 1
        # a step back of half a rounding error is not taken, and gives each entry as much; what is
        # left are the rounding errors of the sum
        for y_star in (loss.y_star(labels, theta), loss.solve(dense, theta).y_star):
            np.testing.assert_allclose(y_star.sum(axis=1, dtype=float), 1, atol=k * eps)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("tightness", [30.0, 1e3, 1e6])
def test_the_logistic_root_is_found_at_any_tightness(tightness, dtype):
    """The interval that it lies in is as long as the tightness."""
    rng = seeded(0)
    y, theta = rng.dirichlet(np.full(10, 0.3), 60), rng.normal(size=(60, 10))
    theta *= 10.0 ** rng.uniform(-3, 3, (60, 1))
    loss = make_loss("logistic", tightness)
    few = np.where(y < 0.05, 0.0, y)
    for targets in (y, few / few.sum(axis=1, keepdims=True)):
        for form in (targets, sparse.csr_array(targets)):
            y_star = loss.y_star(form, theta.astype(dtype))
            # ten numbers, each within four rounding errors
            atol = 40 * np.finfo(dtype).eps
            np.testing.assert_allclose(y_star.sum(axis=1, dtype=float), 1, atol=atol)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("tightness", [0.0, 1e-12, 0.5, 1.0, 2.0, 1e6])
def test_logistic_losses_of_any_size_keep_their_digits(tightness, form):
    """Scores made for a maximizer p near y, whose loss is y (E(ρ) + c E(−ρ)), ρ = log(p/y)."""
    rng, k = seeded(0), 8
    scales = np.geomspace(1e-5, 1, 26)
    y = rng.dirichlet(np.ones(k), len(scales))
    p = y * np.exp(scales[:, None] * rng.uniform(-1, 1, y.shape))
    p /= p.sum(axis=1, keepdims=True)
    theta = np.log(p) + tightness * (p - y) / p
    with mp.workdps(40):
        rho = [
            [mp.log(mp.mpf(a) / mp.mpf(b)) for a, b in zip(*row, strict=True)]
            for row in zip(p.tolist(), y.tolist(), strict=True)
        ]
        expected = [
            float(
                sum(
                    b * (mp.expm1(r) - r + tightness * (mp.expm1(-r) + r))
                    for b, r in zip(*row, strict=True)
                )
            )
            for row in zip(y.tolist(), rho, strict=True)
        ]
    loss = fp.get_loss("fitzpatrick_logistic", tightness)
    value = loss.value(form(y), theta)
    # An error of ρ, of which scores up to ten and their sums give some eps, counts as much as the
    # slope (1 + c) ρ; the loss is about (1 + c) ρ²/2.
    size = np.asarray(expected)
    np.testing.assert_array_less(
        abs(value - expected),
        32 * np.finfo(float).eps * (np.sqrt(2 * (1 + tightness) * size) + size),
    )


def test_buffers_may_not_overlap_what_is_still_read():
    loss = fp.get_loss("sparsemax")
    y, theta = np.full((3, 4), 0.25), np.zeros((3, 4))
    with pytest.raises(ValueError, match=r"out\[1\] overlaps y"):
        loss.value_and_gradient(y, theta, out=(np.empty(3), y))
    with pytest.raises(ValueError, match="out overlaps y"):
        loss.hessian_product(y, theta, theta, out=y)
    frozen, both = np.empty((3, 4)), np.empty((4, 4))
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match=r"out\[1\] is read-only"):
        loss.value_and_gradient(y, theta, out=(np.empty(3), frozen))
    with pytest.raises(ValueError, match=r"out\[1\] overlaps theta"):
        loss.value_and_gradient(y, theta, out=(np.empty(3), theta))
    with pytest.raises(ValueError, match=r"out\[0\] overlaps out\[1\]"):
        loss.value_and_gradient(y, theta, out=(both[0, :3], both[:3]))


def test_a_hessian_product_may_overwrite_its_direction_but_not_overlap_it() -> None:
    loss, rng = fp.get_loss("logistic"), seeded(0)
    theta, v = rng.normal(size=(6, 5)), rng.normal(size=(7, 5))
    y = rng.integers(0, 5, 6)
    expected = loss.hessian_product(y, theta, v[:6])
    with pytest.raises(ValueError, match="overlaps v"):
        loss.hessian_product(y, theta, v[:6], out=v[1:])
    np.testing.assert_array_equal(loss.hessian_product(y, theta, v[:6], out=v[:6]), expected)


def test_any_sparse_format_goes_with_buffers() -> None:
    loss, theta = fp.get_loss("sparsemax"), np.zeros((3, 3))
    out = np.empty(3), np.empty((3, 3))
    value, gradient = loss.value_and_gradient(sparse.dok_array(np.eye(3)), theta, out=out)
    assert value is out[0]
    np.testing.assert_allclose(gradient, np.full((3, 3), 1 / 3) - np.eye(3))


@pytest.mark.parametrize(("dtype", "depth"), [("float32", 1e20), ("float64", 1e160)])
@pytest.mark.parametrize("k", [6, 300])
@pytest.mark.parametrize("name", SIMPLEX)
@np.errstate(all="ignore")
def test_scores_whose_squares_overflow(name, k, dtype, depth):
    theta = np.zeros((3, k), dtype=dtype)
    theta[1, :3] = -depth
    theta[2, 1:] = -depth
    y = np.zeros((3, k), dtype=dtype)
    y[:, :2] = 0.5
    loss = make_loss(name)
    core = loss.solve(y, theta)
    for target in (y, sparse.csr_array(y)):
        value, gradient = loss.value_and_gradient(target, theta)
        np.testing.assert_allclose(value, core.value(), rtol=1e-5)
        np.testing.assert_allclose(gradient, core.y_star - y, atol=1e-6)


@pytest.mark.parametrize(("dtype", "size"), [(np.float32, 1e8), (np.float64, 1e16)])
@pytest.mark.parametrize("name", ["sparsemax", "entmax15"])
@pytest.mark.parametrize("tightness", [0.0, 0.5, 1.0])
def test_scores_so_large_that_one_is_no_digit_of_them(name, tightness, dtype, size):
    rng = seeded(0)
    theta = rng.standard_normal((3, 700)).astype(dtype)
    theta[[0, 2]] *= size
    labels = np.array([0, 1, 699])
    loss = make_loss(name, tightness)
    value, gradient = loss.value_and_gradient(labels, theta)
    expected = loss.solve_labels(labels, theta)
    np.testing.assert_allclose(value, expected.value(), rtol=1e-5)
    np.testing.assert_allclose(gradient, expected.gradient(), atol=1e-5)


@pytest.mark.parametrize("alpha", [1.7, 1.99, 1.999, 1.9999])
@np.errstate(all="ignore")
def test_compiled_rows_near_sparsemax_are_exact_in_float32(alpha):
    """There one Newton step does not square the error: the function bends at single entries."""
    pytest.importorskip("numba")
    rng = seeded(0)
    theta = np.round(2 * rng.normal(size=(200, 7))).astype(np.float32)
    y = np.eye(7, dtype=np.float32)[rng.integers(7, size=200)]
    loss = fp.FitzpatrickLoss(fp.regularizers.Tsallis(alpha))
    p = bind_loss(loss, y, 7, dtype="float32", engine="numba").y_star(theta)
    expected = loss.solve(y.astype(np.float64), theta.astype(np.float64)).y_star
    # the documented accuracy of y* in float32
    np.testing.assert_allclose(p, expected, rtol=1e-5, atol=4 * np.finfo(np.float32).eps)
