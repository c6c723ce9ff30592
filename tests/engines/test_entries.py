"""Entry-wise losses at the edges of what their rows cover, against the core."""

import itertools
from typing import Any

import numpy as np
import pytest

import fitzpatrick as fp
from fitzpatrick import engines
from fitzpatrick.engines import _entries
from fitzpatrick.engines.compiled import _math

from .cases import RELATIVE, TIGHTNESSES, make_loss

# y near both ends of the unit interval, and hard labels
COINS = np.asarray([0.0, 1.0, 1e-30, 1e-12, 1e-3, 0.3, 0.5, 0.9, 1 - 1e-6])
COUNTS = np.asarray([0.0, 1e-30, 1e-3, 0.5, 1.0, 2.0, 7.5, 1e3])
SCORES = np.asarray([0.0, 1e-9, 0.3, 1.0, 4.0, 12.0, 30.0, 60.0, 300.0, 1e4])


def grid(name: str, dtype: str) -> tuple[Any, Any]:
    """Every target with every score, of either sign."""
    targets = COUNTS if name == "poisson" else COINS
    both = np.concatenate([SCORES, -SCORES])
    both = both[both < 50] if name == "poisson" else both  # beyond, e^θ is more than float32 knows
    y, theta = np.meshgrid(targets, both, indexing="ij")
    # one entry a row: nothing hides behind the rest of a sum
    return y.reshape(-1, 1).astype(dtype), theta.reshape(-1, 1).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("tightness", TIGHTNESSES)
@pytest.mark.parametrize("name", ["sigmoid", "poisson", "squared", "sparse_sigmoid"])
@np.errstate(all="ignore")
def test_every_entry_has_the_digits_of_the_core(name: str, tightness: float, dtype: str) -> None:
    loss = make_loss(name, tightness)
    y, theta = grid(name, dtype)
    bound = engines.bind(loss, y, 1, dtype)
    value, gradient = bound.value_and_gradient(theta)
    # The core in float64 is the reference in both precisions. A rounding error of θ, or of a term
    # c (1 − 2y) beside it, moves the loss by its slope p − y, which is at most 1 on the unit cube.
    wide = loss.solve(y.astype(np.float64), theta.astype(np.float64))
    eps = float(np.finfo(dtype).eps)
    size = 8 * eps * (1 + np.abs(theta[:, 0]) + tightness)
    slope = np.maximum(np.abs(wide.gradient()[:, 0]), eps)
    error = np.abs(value - wide.value())
    assert (error <= RELATIVE[dtype] * wide.value() + size * slope + 8 * eps).all()
    p = np.maximum(1, np.maximum(wide.y_star, y))  # the gradient is rounded beside y
    np.testing.assert_array_less(
        np.abs(gradient - wide.gradient()), (RELATIVE[dtype] + size[:, None]) * p
    )
    assert (value >= 0).all()
    p_star = bound.y_star(theta)
    np.testing.assert_array_less(
        np.abs(p_star - wide.y_star), (RELATIVE[dtype] + size[:, None]) * p
    )


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("tightness", TIGHTNESSES)
@pytest.mark.parametrize("name", ["sigmoid", "poisson"])
@np.errstate(all="ignore")
def test_targets_that_are_all_but_zero(name: str, tightness: float, engine: Any) -> None:
    """Losses of about y |θ|, where p underflows; 1e-290 is as good as nothing."""
    if engine == "numba":
        pytest.importorskip("numba")
    targets, scores = [1e-310, 1e-305, 2e-300, 1e-290], [-600.0, -709.0, -745.0, -1e4, -1e9]
    loss = make_loss(name, tightness)
    for pair in itertools.product(targets, scores):  # one by one, lest one of them calls the core
        y, theta = (np.full((1, 1), x) for x in pair)
        value, gradient = engines.bind(loss, y, 1, engine=engine).value_and_gradient(theta)
        exact = loss.solve(y, theta)
        assert np.isfinite(exact.value())
        np.testing.assert_allclose(value, exact.value(), rtol=1e-12, atol=1e-290)
        np.testing.assert_allclose(gradient, exact.gradient(), rtol=1e-12, atol=1e-290)


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("tightness", [1e-12, 1e-4, 0.05, 0.25])
@pytest.mark.parametrize("name", ["sigmoid", "poisson", "logistic"])
def test_a_small_tightness_costs_no_digits(name: str, tightness: float, engine: Any) -> None:
    """log c may be −28, and no number that is added up may be that large."""
    if engine == "numba":
        pytest.importorskip("numba")
    rng = np.random.default_rng(5)
    k = 5 if name == "logistic" else 1
    theta = rng.normal(size=(400, k))
    y = np.clip(make_loss(name).link(theta) * rng.uniform(0.7, 1.3, size=(400, k)), 1e-3, 0.99)
    if name == "logistic":
        y /= y.sum(axis=1, keepdims=True)
    loss = make_loss(name, tightness)
    value = engines.bind(loss, y, k, engine=engine).value(theta)
    # log(p/y) is a sum of numbers below 8 in size, and so is what λ is the root of; an error there
    # moves the loss by the slope p − y. The worst of 10,000 rows was 90 eps.
    exact = loss.solve(y, theta)
    slack = 8 * 90 * np.finfo(float).eps * (np.abs(exact.gradient()).sum(axis=1) + exact.value())
    assert (np.abs(value - exact.value()) <= slack).all()


@pytest.mark.parametrize("name", ["sigmoid", "poisson", "squared", "sparse_sigmoid"])
def test_a_target_that_is_the_prediction_costs_nothing(name: str) -> None:
    theta = np.random.default_rng(0).normal(size=(6, 50))
    for tightness in TIGHTNESSES:
        loss = make_loss(name, tightness)
        value, gradient = loss.value_and_gradient(loss.link(theta), theta)
        # y is off by a rounding error, which the loss squares; p is up to e^3
        np.testing.assert_allclose(value, 0, atol=1e-28)
        np.testing.assert_allclose(gradient, 0, atol=1e-14)


@pytest.mark.parametrize("name", ["sigmoid", "poisson", "sparse_sigmoid"])
@np.errstate(all="ignore")
def test_infinite_scores_stay_in_their_row(name: str) -> None:
    y = np.full((5, 3), 0.25)
    theta = np.random.default_rng(0).normal(size=(5, 3))
    clean = theta.copy()
    theta[1, 0], theta[2, 1], theta[3, 2] = np.inf, -np.inf, np.nan
    for tightness in TIGHTNESSES:
        loss = make_loss(name, tightness)
        expected = loss.solve(y, theta)
        value, gradient = loss.value_and_gradient(y, theta)
        np.testing.assert_allclose(value, expected.value(), rtol=1e-13)
        np.testing.assert_allclose(gradient, expected.gradient(), rtol=1e-13, atol=1e-15)
        others = [0, 4]
        np.testing.assert_allclose(value[others], loss.value(y, clean)[others], rtol=1e-13)


def test_hard_labels_have_the_closed_form() -> None:
    """ω(∓θ − 1), whichever engine computes it."""
    theta = np.linspace(-40, 40, 81)[:, None]
    for label in (0.0, 1.0):
        value = make_loss("sigmoid").value(np.full_like(theta, label), theta)
        gap = theta[:, 0] if label == 0 else -theta[:, 0]
        np.testing.assert_allclose(value, fp.special.wright_omega(gap - 1), rtol=1e-13)


def test_coins_that_do_not_converge_are_left_to_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    y, theta = np.asarray([[0.25, 1e-200]]), np.asarray([[2.0, -600.0]])
    loss = make_loss("sigmoid", 0.5)
    expected = loss.solve(y, theta).value()
    np.testing.assert_allclose(loss.value(y, theta), expected, rtol=1e-13)
    monkeypatch.setattr(_entries, "solve_coins", lambda *_: None)
    np.testing.assert_allclose(loss.value(y, theta), expected, rtol=1e-13)


def test_rough_functions_are_as_good_as_they_say() -> None:
    x = np.linspace(-40, 690, 2001)
    ratio = np.asarray([_math.rough_exp(v) for v in -x]) / np.exp(-x)
    np.testing.assert_allclose(ratio, 1, atol=0.035)
    z = np.concatenate([np.linspace(-39, 40, 2001), np.geomspace(40, 1e15, 100)])
    omega = fp.special.wright_omega(z)
    np.testing.assert_allclose([_math.rough_omega(v) for v in z], omega, rtol=0.06)
    np.testing.assert_allclose([_math.near_omega(v) for v in z], omega, rtol=2e-4)
