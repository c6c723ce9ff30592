"""Rows at the edges of what the fast paths cover, beyond the stored points of tests/parity."""

import numpy as np
import pytest
from mpmath import mp
from scipy import sparse

import fitzpatrick as fp
from fitzpatrick.engines import negentropy
from fitzpatrick.regularizers import Tsallis
from tests.helpers import seeded

from .cases import bind_loss, make_loss

pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.parametrize("name", ["sparsemax", "entmax15"])
@np.errstate(all="ignore")
def test_ties_just_within_reach_of_a_peak(name, dtype):
    """A rounding error of τ that is longer than their distance to it would lose them all.

    Where all ties together have less than their number of rounding errors, τ cannot be between
    them and the root, and may be carried above it, where they are lost as well.
    """
    eps, rng = float(np.finfo(dtype).eps), seeded(1)
    fixed = np.asarray([2**-6, 2**-10, 1e-4, 1e-5, 1e-12, 3e-14])
    for k, tightness in ((300, 0.0), (20_000, 0.0), (3000, 1.0), (20_000, 0.5)):
        loss = make_loss(name, tightness)
        reach = {"sparsemax": 1, "entmax15": 2}[name] + tightness
        margins = np.concatenate([k * eps * 10 ** rng.uniform(-4, 1, 60), fixed])
        theta = np.zeros((len(margins), k), dtype=dtype)
        theta[:, 7] = reach - margins
        theta[::2, 9] = theta[::2, 7]  # two peaks
        theta += rng.choice([0.0, 0.3, 1.0, 10.0], (len(margins), 1)).astype(dtype)
        theta[-1, 10:] = theta[-1, 0] + reach / 2
        labels = np.where(np.arange(len(margins)) < 62, 7, 0)
        dense = (labels[:, None] == np.arange(k)).astype(dtype)
        # A sum of k non-negative terms that is accumulated in any order is off by less than k eps
        # times the sum (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2), and
        # the sum of p is what τ is solved from. The bugs that this test is for made the sum 51.
        rows = [loss.y_star(y, theta) for y in (labels, sparse.csr_array(dense))]
        for y_star in (*rows, loss.solve(dense, theta).y_star):
            np.testing.assert_allclose(y_star.sum(axis=1, dtype=float), 1, rtol=0, atol=k * eps)


@pytest.mark.parametrize("bad", [-np.inf, np.inf, np.nan])
def test_no_root_is_sought_of_targets_whose_scores_are_not_finite(bad, monkeypatch):
    """There is none, and the search for it would take all of its passes."""
    y, theta = np.asarray([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]), np.asarray([[0.0, 1, 2], [1, 0, 2]])
    theta[1, 1] = bad
    loss = make_loss("logistic", 1.0)
    with np.errstate(all="ignore"):
        core = loss.solve(y, theta).y_star
    monkeypatch.setattr(negentropy, "MAX_PASSES", None)  # a search would raise
    np.testing.assert_allclose(loss.y_star(y, theta), core, rtol=16 * np.finfo(float).eps)


@pytest.mark.parametrize("tightness", [30.0, 1e3, 1e6])
def test_the_logistic_root_is_found_at_any_tightness(tightness, dtype):
    """The interval that it lies in is as long as the tightness, and the steps grow with it."""
    rng = seeded(0)
    y, theta = rng.dirichlet(np.full(10, 0.3), 60), rng.normal(size=(60, 10))
    theta = (theta * 10.0 ** rng.uniform(-3, 3, (60, 1))).astype(dtype)
    loss = make_loss("logistic", tightness)
    few = np.where(y < 0.05, 0.0, y)
    for targets in (y, few / few.sum(axis=1, keepdims=True)):
        rows = [loss.y_star(y, theta) for y in (targets, sparse.csr_array(targets))]
        with np.errstate(all="ignore"):
            rows.append(loss.solve(targets.astype(dtype), theta).y_star)
        for p in rows:
            # ten numbers, each within four rounding errors; and s = θ − τ is rounded, which counts
            # by the slope of each number
            slope = p**2 / (p + tightness * targets + np.finfo(dtype).tiny)
            rounding = 40 + (slope * (np.abs(theta) + np.abs(theta).max(axis=1)[:, None])).sum(
                axis=1
            )
            error = np.abs(p.sum(axis=1, dtype=float) - 1)
            assert np.all(error <= rounding * np.finfo(dtype).eps)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("tightness", [0.0, 0.5, 1.0, 2.0, 1e6])
def test_logistic_losses_of_any_size_keep_their_digits(tightness, form):
    """Scores made for a maximizer p near y, whose loss is y (E(ρ) + c E(−ρ)), ρ = log(p/y)."""
    rng, k = seeded(0), 8
    scales = np.geomspace(1e-5, 1, 26)
    y = rng.dirichlet(np.ones(k), len(scales))
    p = y * np.exp(scales[:, None] * rng.uniform(-1, 1, y.shape))
    p /= p.sum(axis=1, keepdims=True)
    theta = np.log(p) + tightness * (p - y) / p
    with mp.workdps(40):
        exact = np.frompyfunc(mp.mpf, 1, 1)(y)
        rho = np.frompyfunc(mp.log, 1, 1)(np.frompyfunc(mp.mpf, 1, 1)(p) / exact)
        expm1 = np.frompyfunc(mp.expm1, 1, 1)
        terms = exact * (expm1(rho) - rho + tightness * (expm1(-rho) + rho))
        size = terms.sum(axis=1).astype(float)
    # An error of ρ, of which scores up to ten and their sums give some eps, counts as much as the
    # slope (1 + c) ρ; the loss is about (1 + c) ρ²/2.
    error = abs(make_loss("logistic", tightness).value(form(y), theta) - size)
    slack = 32 * np.finfo(float).eps * (np.sqrt(2 * (1 + tightness) * size) + size)
    np.testing.assert_array_less(error, slack)


@pytest.mark.parametrize("tightness", [1e-12, 1e-4, 0.05, 0.25])
@pytest.mark.parametrize("name", ["sigmoid", "poisson", "logistic"])
@np.errstate(all="ignore")
def test_a_small_tightness_costs_no_digits(name, tightness):
    """log c may be −28, and no number that is added up may be that large."""
    rng, k = seeded(5), 5
    theta = rng.normal(size=(400, k))
    y = np.clip(make_loss(name).link(theta) * rng.uniform(0.7, 1.3, size=(400, k)), 1e-3, 0.99)
    if name == "logistic":
        y /= y.sum(axis=1, keepdims=True)
    loss = make_loss(name, tightness)
    exact = loss.solve(y, theta)
    # log(p/y) is a sum of numbers below 8 in size, and so is what λ is the root of; an error there
    # moves the loss by the slope p − y. The worst of 10,000 rows was 90 eps.
    slack = 8 * 90 * np.finfo(float).eps * (np.abs(exact.gradient()).sum(axis=1) + exact.value())
    assert (np.abs(loss.value(y, theta) - exact.value()) <= slack).all()


@pytest.mark.parametrize("tightness", [0.0, 0.25, 1.0, 10.0])
@pytest.mark.parametrize("name", ["sigmoid", "poisson"])
@np.errstate(all="ignore")
def test_targets_that_are_all_but_zero(name, tightness):
    """Losses of about y |θ|, where p underflows; 1e-290 is as good as nothing."""
    targets, scores = [1e-310, 1e-305, 2e-300, 1e-290], [-600.0, -709.0, -745.0, -1e4, -1e9]
    y, theta = (x.reshape(-1, 1) for x in np.meshgrid(targets, scores))
    loss = make_loss(name, tightness)
    # one by one: the core computes all rows between two that it is called for
    for row in range(len(y)):
        at = slice(row, row + 1)
        value, gradient = loss.value_and_gradient(y[at], theta[at])
        exact = loss.solve(y[at], theta[at])
        assert np.isfinite(exact.value())
        np.testing.assert_allclose(value, exact.value(), rtol=1e-12, atol=1e-290)
        np.testing.assert_allclose(gradient, exact.gradient(), rtol=1e-12, atol=1e-290)


@pytest.mark.parametrize("alpha", [1.7, 1.99, 1.999, 1.9999])
@np.errstate(all="ignore")
def test_rows_near_sparsemax_are_exact_in_float32(alpha):
    """There one Newton step does not square the error: the function bends at single entries."""
    rng = seeded(0)
    theta = np.round(2 * rng.normal(size=(200, 7))).astype(np.float32)
    y = np.eye(7, dtype=np.float32)[rng.integers(7, size=200)]
    loss = fp.FitzpatrickLoss(Tsallis(alpha))
    p = bind_loss(loss, y, 7, dtype="float32").y_star(theta)
    expected = loss.solve(y.astype(np.float64), theta.astype(np.float64)).y_star
    # the documented accuracy of y* in float32
    np.testing.assert_allclose(p, expected, rtol=1e-5, atol=4 * np.finfo(np.float32).eps)
