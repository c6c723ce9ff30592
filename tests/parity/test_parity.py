"""Every way to compute a loss against mpmath, at the stored points.

The promise (docs/understand/exact.md): values and maximizers within 1e-13 of their size in float64
and 1e-5 in float32, or four spacings of the dtype at the larger of 1 and the largest target.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.helpers import DTYPES, RELATIVE, assert_close, eps, seeded
from tests.reference import Points, recipe, slopes

from .batches import REGULARIZERS, Batch, batches
from .implementations import IMPLEMENTATIONS, Implementation, Result

# Those whose rows have paths of their own.
WIDE_NAMES = ("logistic", "sparsemax", "entmax15", "tsallis_1.3", "sigmoid", "poisson", "squared")


def installed_only(implementation: Implementation, name: str) -> Any:
    """A parameter of a test, which is skipped where a package is not installed."""
    is_missing, reason = not implementation.is_installed, f"needs {implementation.package}"
    mark = pytest.mark.skipif(is_missing, reason=reason)
    return pytest.param(implementation, name, id=f"{implementation.name}-{name}", marks=mark)


CASES = [
    installed_only(implementation, name)
    for implementation in IMPLEMENTATIONS
    for name in implementation.names
]
LINKS = [case for case in CASES if case.values[0].links(case.values[1])]
LARGE = [
    case
    for case in CASES
    if case.values[0].name in ("core", "Numba", "Triton", "JAX")
    and case.values[1] in ("sigmoid", "poisson")
]
WIDE = [case for case in CASES if case.values[0].is_wide and case.values[1] in WIDE_NAMES]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("implementation", "name"), CASES)
def test_stored_points(implementation: Implementation, name: str, dtype: str) -> None:
    """Values, gradients and Hessian products, in every form of targets, at every tightness."""
    for batch in stored(implementation, name, dtype):
        theta = batch.theta
        result = implementation.evaluate(batch.omega, batch.tightness, batch.y, theta, batch.v)
        try:
            assert_accurate(batch, result)
        except AssertionError as error:
            error.add_note(f"{batch.tightness=} {batch.form=} {theta.shape=}")
            raise


@pytest.mark.parametrize(("implementation", "name"), LARGE)
def test_tightness_1000_in_single_precision(implementation: Implementation, name: str) -> None:
    """c counts what cancels a thousand times; the core in double precision keeps enough of it."""
    for batch in batches(name, 10.0, "float32", "dense", rows=96):
        y, theta = exact_targets(name, batch.points), batch.theta.astype(np.float64)
        exact = IMPLEMENTATIONS[0].evaluate(batch.omega, 1e3, y, theta, batch.v)
        points = Points(batch.points.y, batch.theta, exact.value, exact.gradient + y)
        large = Batch(name, 1e3, "float32", "dense", points)
        assert_accurate(large, implementation.evaluate(large.omega, 1e3, *points[:2], large.v))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("implementation", "name"), LINKS)
def test_links(implementation: Implementation, name: str, dtype: str) -> None:
    rows = implementation.rows
    for batch in batches(name, 0.0, dtype, "dense", rows):
        link = implementation.link(batch.omega, batch.theta)
        unique = ~np.isnan(batch.points.y_star).any(axis=1)
        size = np.max(np.abs(batch.points.y_star), axis=1, initial=1, where=unique[:, None])
        floor = np.maximum(batch.floor, 4 * eps(dtype) * size)[:, None]
        expected = batch.points.y_star
        assert_close(link[unique], expected[unique], rtol=RELATIVE[dtype], atol=floor[unique])


@pytest.mark.parametrize(("implementation", "name"), WIDE)
def test_wide_rows(implementation: Implementation, name: str) -> None:
    """300 classes, supports of every size, scores of many scales: what the core on NumPy gives.

    Wide rows have paths of their own, and mpmath takes long for them.
    """
    rng, n, k = seeded(0), 24, 300
    y = np.zeros((n, k))
    for row, size in zip(y, np.resize([1, 2, 3, 9, 150, 299, 300, 1], n), strict=True):
        row[rng.choice(k, size, replace=False)] = rng.dirichlet(np.ones(size))
    theta = rng.normal(size=(n, k)) * np.resize([0.0, 1e-3, 0.1, 3.0, 1e4], n)[:, None]
    theta[-3:, 5:9] = 4.0
    theta[::5, ::3] = np.where(y[::5, ::3] > 0, theta[::5, ::3], -np.inf)
    theta[1, :3] = -1e160  # whose squares overflow
    if not REGULARIZERS[name].domain.has_labels:
        theta = np.clip(theta, -20, 20)
    hard = np.sum(y > 0, axis=1) == 1
    points = Points(y, theta, np.zeros(n), y)
    for tightness in (0.0, 0.5, 2.0):
        for form in implementation.forms_of(name):
            batch = Batch(name, tightness, "float64", form, points)
            batch = batch.with_rows(hard if form == "labels" else slice(None))
            expected = IMPLEMENTATIONS[0].evaluate(
                batch.omega, tightness, batch.points.y, batch.theta, batch.v
            )
            found = implementation.evaluate(batch.omega, tightness, batch.y, batch.theta, batch.v)
            rtol, atol = 2 * RELATIVE["float64"], 8 * eps("float64")
            assert_close(found.value, expected.value, rtol=rtol, atol=atol)
            assert_close(found.gradient, expected.gradient, rtol=rtol, atol=atol)
            if not slopes.has_kinks(recipe.regularizer_of(name)) and found.product is not None:
                # ⟨d, v⟩ is a sum of k terms
                assert_close(found.product, expected.product, rtol=rtol, atol=k * atol)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_tolerance_is_not_loose(dtype: str) -> None:
    """What is off by ten times the promise is refused."""
    batch = batches("logistic", 1.0, dtype, "dense")[0]
    batch = batch.with_rows(batch.points.value > 1e-2)
    good = IMPLEMENTATIONS[0].evaluate(batch.omega, 1.0, batch.y, batch.theta, batch.v)
    assert_accurate(batch, good)
    off = 1 + 10 * RELATIVE[dtype]
    for wrong in (
        good._replace(value=good.value * off),
        good._replace(gradient=good.gradient * off),
        good._replace(product=good.product * (1 + 1e3 * RELATIVE[dtype])),
    ):
        with pytest.raises(AssertionError, match="is not"):
            assert_accurate(batch, wrong)


def stored(implementation: Implementation, name: str, dtype: str) -> Iterator[Batch]:
    """What an implementation is compared at."""
    tightnesses = implementation.tightnesses.get(dtype, ())
    for tightness in tightnesses[:2] if recipe.regularizer_of(name).is_perceptron else tightnesses:
        for form in implementation.forms_of(name):
            yield from batches(name, tightness, dtype, form, implementation.rows)


def assert_accurate(batch: Batch, result: Result) -> None:
    """The promise, and losses that are never negative."""
    points, dtype = batch.points, batch.dtype
    rtol, floor = RELATIVE[dtype], batch.floor
    assert np.all(result.value >= 0)
    assert_close(result.value, points.value, rtol=rtol, atol=floor)
    unique = ~np.isnan(points.y_star).any(axis=1)
    y_star, gradient = points.y_star[unique], result.gradient[unique]
    y = exact_targets(batch.name, points)[unique]
    # y* is as exact as promised; y is rounded, and so is the difference
    error = rtol * np.abs(y_star) + floor[unique, None] + eps(dtype) * np.abs(y)
    assert_close(gradient, y_star - y, rtol=eps(dtype), atol=error)
    if result.product is not None and slopes.has_slope(recipe.regularizer_of(batch.name)):
        assert_product(batch.with_rows(unique), gradient, result.product[unique], y, error)


def assert_product(batch: Batch, gradient, found, y, error) -> None:
    """Hessian products within what the promised error of y* makes of the slopes."""
    regularizer, c = recipe.regularizer_of(batch.name), batch.tightness
    y_star, v = batch.points.y_star, batch.v.astype(float)
    d = slopes.slope(regularizer, y_star, y, c)
    expected = slopes.product(regularizer, d, v)
    upper = 1.0 if regularizer.domain in ("simplex", "cube") else np.inf
    lower = -np.inf if regularizer.domain == "reals" else 0.0
    # the slopes of maximizers as far off as they may be
    uncertain = sum(
        np.abs(slopes.slope(regularizer, np.clip(p, lower, upper), y, c) - d)
        for p in (y_star - error, y_star + error)
    )
    uncertain, same = np.nan_to_num(uncertain), np.ones(len(y), bool)
    if slopes.has_kinks(regularizer):
        # rounding may put a maximizer on the other side of a kink: such rows do not count
        given, found_gradient = batch.points.y, gradient.astype(batch.dtype)
        at_end = (y_star == 0) | (y_star == 1)
        same = (found_gradient == -given) == (y_star == 0)
        same = np.all(same & ((found_gradient == 1 - given) == (y_star == 1)), axis=1)
        # beside a target a gradient does not tell 0 from what is lost in rounding
        lost = slopes.slope(regularizer, eps(batch.dtype) * y, y, c)
        uncertain = np.where(at_end, lost, uncertain)
    uncertain = uncertain + RELATIVE[batch.dtype] * d + 4 * eps(batch.dtype)
    size = np.max(np.abs(v), axis=1, keepdims=True)
    atol = size * uncertain
    if regularizer.domain == "simplex":
        total = np.sum(d, axis=1, keepdims=True)
        share = np.divide(d, total, where=total > 0, out=np.zeros_like(d))
        atol = 2 * size * (uncertain + share * np.sum(uncertain, axis=1, keepdims=True))
        # ⟨d, v⟩ is a sum of k terms
        atol = atol + batch.v.shape[1] * eps(batch.dtype) * size * d
    assert_close(found[same], expected[same], rtol=0, atol=atol[same])


def exact_targets(name: str, points: Points) -> np.ndarray:
    """The targets that the stored values are about: divided by their sum on the simplex."""
    y = points.y.astype(float)
    is_simplex = recipe.regularizer_of(name).domain == "simplex"
    return y / y.sum(axis=1, keepdims=True) if is_simplex else y
