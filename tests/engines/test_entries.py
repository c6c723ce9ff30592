"""Entry-wise losses at the edges of what their rows cover, against the core."""

import itertools
from typing import Any

import numpy as np
import pytest

import fitzpatrick as fp
from fitzpatrick.engines.compiled import _math
from tests.helpers import seeded

from .cases import (
    TIGHTNESSES,
    bind_loss,
    make_loss,
)

# y near both ends of the unit interval, and hard labels
COUNTS = np.asarray([0.0, 1e-30, 1e-3, 0.5, 1.0, 2.0, 7.5, 1e3])
SCORES = np.asarray([0.0, 1e-9, 0.3, 1.0, 4.0, 12.0, 30.0, 60.0, 300.0, 1e4])


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
        value, gradient = bind_loss(loss, y, 1, engine=engine).value_and_gradient(theta)
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
    rng = seeded(5)
    k = 5 if name == "logistic" else 1
    theta = rng.normal(size=(400, k))
    y = np.clip(make_loss(name).link(theta) * rng.uniform(0.7, 1.3, size=(400, k)), 1e-3, 0.99)
    if name == "logistic":
        y /= y.sum(axis=1, keepdims=True)
    loss = make_loss(name, tightness)
    value = bind_loss(loss, y, k, engine=engine).value(theta)
    # log(p/y) is a sum of numbers below 8 in size, and so is what λ is the root of; an error there
    # moves the loss by the slope p − y. The worst of 10,000 rows was 90 eps.
    exact = loss.solve(y, theta)
    slack = 8 * 90 * np.finfo(float).eps * (np.abs(exact.gradient()).sum(axis=1) + exact.value())
    assert (np.abs(value - exact.value()) <= slack).all()


def test_rough_functions_are_as_good_as_they_say() -> None:
    x = np.linspace(-40, 690, 2001)
    ratio = np.asarray([_math.rough_exp(v) for v in -x]) / np.exp(-x)
    np.testing.assert_allclose(ratio, 1, atol=0.035)
    z = np.concatenate([np.linspace(-39, 40, 2001), np.geomspace(40, 1e15, 100)])
    omega = fp.special.wright_omega(z)
    np.testing.assert_allclose([_math.rough_omega(v) for v in z], omega, rtol=0.06)
    np.testing.assert_allclose([_math.near_omega(v) for v in z], omega, rtol=2e-4)
