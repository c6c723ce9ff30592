"""Every loss against the stored reference, which mpmath computed from the definition.

The promise: value and y* within 1e-13 relative in float64 and 1e-5 in float32, or within four
spacings of the dtype at 1 (times the largest target of the row, where that is above 1). On the
balls the floor is also times the largest score: a target on the sphere is rounded itself, and the
loss is the score times its distance from the sphere.
"""

import numpy as np
import pytest

import fitzpatrick as fp
from fitzpatrick.regularizers import Indicator, SquaredNorm, Tsallis
from fitzpatrick.sets import Box, L1Ball, L2Ball, Orthant
from tests.helpers import DTYPES, FLOOR_IN_EPS, RELATIVE, Library, assert_close, eps, to_numpy
from tests.reference import CASES, load

NAMED = {
    "sparsemap_l2_ball": SquaredNorm(L2Ball()),
    "sparsemap_l1_ball": SquaredNorm(L1Ball()),
    "sparsemap_orthant": SquaredNorm(Orthant()),
    "perceptron_cube": Indicator(Box()),
    "perceptron_l2_ball": Indicator(L2Ball()),
    "perceptron_l1_ball": Indicator(L1Ball()),
}
BALLS = (L1Ball, L2Ball)


def loss_of(case: str) -> fp.Loss:
    """The loss that a reference case is about: a registry name, or one of the sets above."""
    if case in fp.loss_names():
        return fp.get_loss(case)
    name = case.removeprefix("fitzpatrick_")
    kind = fp.FenchelYoungLoss if name == case else fp.FitzpatrickLoss
    if name.startswith("tsallis_"):
        return kind(Tsallis(float(name.removeprefix("tsallis_"))))
    return kind(NAMED[name])


def floor(domain: fp.sets.ConvexSet, y: np.ndarray, theta: np.ndarray, dtype: str) -> np.ndarray:
    scale = np.maximum(1, np.max(np.abs(y), axis=-1))
    if isinstance(domain, BALLS):
        scale = np.maximum(scale, np.max(np.abs(theta), axis=-1))
    return FLOOR_IN_EPS * eps(dtype) * scale.astype(np.float64)


@pytest.mark.parametrize("case", CASES)
def test_value_and_maximiser(case: str, xp: Library, dtype: str) -> None:
    loss = loss_of(case)
    rows = 0
    for points in load(case, dtype):
        if xp.name == "jax" and points.y.shape[-1] not in (3, 40):
            continue  # each shape is compiled anew, and all sizes go through the same functions
        y, theta = xp.asarray(points.y, dtype), xp.asarray(points.theta, dtype)
        # behind the edge: the reference divides each row by its exact sum itself
        with np.errstate(all="ignore"):
            solution = loss.solve(y, theta)
            value, y_star = to_numpy(solution.value()), to_numpy(solution.y_star)
        atol = floor(loss.regularizer.domain, points.y, points.theta, dtype)
        assert_close(value, points.value, rtol=RELATIVE[dtype], atol=atol)
        unique = ~np.any(np.isnan(points.y_star), axis=-1)
        assert_close(
            y_star[unique], points.y_star[unique], rtol=RELATIVE[dtype], atol=atol[unique, None]
        )
        assert np.all(value >= 0)
        if xp.name == "numpy":  # the public edge, which runs the CPU engine
            public, public_star = loss.value(y, theta), loss.y_star(y, theta)
            assert np.all(public >= 0)
            assert_close(public, points.value, rtol=RELATIVE[dtype], atol=atol)
            assert_close(
                public_star[unique],
                points.y_star[unique],
                rtol=RELATIVE[dtype],
                atol=atol[unique, None],
            )
        rows += len(value)
    assert rows >= (50 if xp.name == "jax" else 500)


def test_every_registry_loss_has_a_reference() -> None:
    assert set(fp.loss_names()) <= set(CASES)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_tolerance_is_not_loose(dtype: str) -> None:
    """The check above refuses values that are off by ten times the promise."""
    points = load("fitzpatrick_logistic", dtype)[2]
    rows = points.value > 1e-2
    off = points.value * (1 + 10 * RELATIVE[dtype])
    with pytest.raises(AssertionError, match="is not"):
        assert_close(
            off[rows], points.value[rows], rtol=RELATIVE[dtype], atol=FLOOR_IN_EPS * eps(dtype)
        )
