"""Every loss against the stored reference, which mpmath computed from the definition.

The promise: value and y* within 1e-13 relative in float64 and 1e-5 in float32, or within four
spacings of the dtype at 1 (times the largest target of the row, where that is above 1). On the
balls the floor is also times the largest score: a target on the sphere is rounded itself, and the
loss is the score times its distance from the sphere.
"""

import numpy as np
import pytest

import fitzpatrick as fp
from fitzpatrick.engines.table import find_kernel
from fitzpatrick.regularizers import Indicator, Regularizer, SquaredNorm, Tsallis
from fitzpatrick.sets import Box, L1Ball, L2Ball, Orthant
from tests.helpers import (
    DTYPES,
    FLOOR_IN_EPS,
    RELATIVE,
    TEST_ALL,
    Library,
    assert_close,
    eps,
    to_numpy,
)
from tests.reference import (
    CASES,
    END_CASES,
    Points,
    load,
    recompute,
    regularizer_of,
    tightness_of,
)

REGULARIZERS = {
    "sparsemap_l2_ball": SquaredNorm(L2Ball()),
    "sparsemap_l1_ball": SquaredNorm(L1Ball()),
    "sparsemap_orthant": SquaredNorm(Orthant()),
    "perceptron_cube": Indicator(Box()),
    "perceptron_l2_ball": Indicator(L2Ball()),
    "perceptron_l1_ball": Indicator(L1Ball()),
    **{f"tsallis_{alpha}": Tsallis(alpha) for alpha in (1.1, 1.3, 1.7, 1.9)},
}
# JAX compiles every operation for every shape, so that all cases come to it in one shape, which
# is that of the contracts too. All sizes go through the same functions.
JAX_SHAPE = (35, 4)
TORCH_SIZE = 4


def find_regularizer(name: str) -> Regularizer:
    """The regularizer of a reference: of the registry, or one of those above."""
    return REGULARIZERS[name] if name in REGULARIZERS else fp.get_loss(name).regularizer


def loss_of(case: str) -> fp.Loss:
    """The loss that a reference case is about."""
    return fp.FitzpatrickLoss(find_regularizer(regularizer_of(case).name), tightness_of(case))


def floor(case: str, y: np.ndarray, theta: np.ndarray, dtype: str) -> np.ndarray:
    scale = np.maximum(1, np.max(np.abs(y), axis=-1))
    if regularizer_of(case).domain in ("l1_ball", "l2_ball"):
        scale = np.maximum(scale, np.max(np.abs(theta), axis=-1))
    return FLOOR_IN_EPS * eps(dtype) * scale.astype(np.float64)


def assert_accurate(case: str, value, y_star, points: Points, dtype: str, floors: int = 1) -> None:
    """Non-negative values, and the promise kept by them and by the maximizers."""
    value, y_star = to_numpy(value), to_numpy(y_star)
    atol = floors * floor(case, points.y, points.theta, dtype)
    assert np.all(value >= 0)
    assert_close(value, points.value, rtol=RELATIVE[dtype], atol=atol)
    unique = ~np.any(np.isnan(points.y_star), axis=-1)
    assert_close(
        y_star[unique], points.y_star[unique], rtol=RELATIVE[dtype], atol=atol[unique, None]
    )


def rows_for(xp: Library, groups: tuple[Points, ...]) -> tuple[Points, ...]:
    """All rows for NumPy; some for the others, unless all are asked for."""
    if xp.name == "numpy" or TEST_ALL:
        return groups
    if xp.name == "torch":
        return tuple(points for points in groups if points.y.shape[1] == TORCH_SIZE)
    n, k = JAX_SHAPE
    points = next(points for points in groups if points.y.shape[1] == k)
    rows = np.linspace(0, len(points.value) - 1, n).astype(int)
    return (Points(*(array[rows] for array in points)),)


@pytest.mark.parametrize("case", CASES)
def test_value_and_maximizer(case: str, xp: Library, dtype: str) -> None:
    if xp.name == "jax" and not TEST_ALL:
        if dtype == "float32":
            pytest.skip("the contracts compare JAX with NumPy in float32")
        if tightness_of(case) in (0.25, 2.0):
            pytest.skip("one tightness between the ends is enough for JAX")
    loss = loss_of(case)
    for points in rows_for(xp, load(case, dtype)):
        y, theta = xp.asarray(points.y, dtype), xp.asarray(points.theta, dtype)
        # behind the edge: the reference divides each row by its exact sum itself
        with np.errstate(all="ignore"):
            solution = loss.solve(y, theta)
            value, y_star = solution.value(), solution.y_star
        assert_accurate(case, value, y_star, points, dtype)
        if xp.name == "numpy":  # the public edge, which runs the CPU engine
            assert_accurate(case, loss.value(y, theta), loss.y_star(y, theta), points, dtype)


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in CASES
        if find_kernel("numba", find_regularizer(regularizer_of(case).name)) is not None
    ],
)
def test_compiled_rows(case: str, dtype: str, compiled_rows: None) -> None:
    loss = loss_of(case)
    for points in load(case, dtype):
        y, theta = (Library("numpy").asarray(x, dtype) for x in (points.y, points.theta))
        assert_accurate(case, loss.value(y, theta), loss.y_star(y, theta), points, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", [case for case in END_CASES if regularizer_of(case).is_perceptron])
@pytest.mark.parametrize("tightness", [0.5, 1.0, 2.0])
def test_perceptrons_are_the_same_at_every_tightness(
    case: str, tightness: float, dtype: str
) -> None:
    loss = fp.FitzpatrickLoss(find_regularizer(case), tightness)
    for points in load(case, dtype):
        y, theta = (Library("numpy").asarray(x, dtype) for x in (points.y, points.theta))
        assert_accurate(case, loss.value(y, theta), loss.y_star(y, theta), points, dtype)


LARGE_ROWS = 12 if TEST_ALL else 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tightness", [1e-3, 10.0, 100.0])
@pytest.mark.parametrize(
    "name",
    [
        name
        for name in END_CASES
        if tightness_of(name) == 0 and not regularizer_of(name).is_perceptron
    ],
)
def test_a_tightness_far_from_the_stored_ones(name: str, tightness: float, dtype: str) -> None:
    """A few rows of every size but the largest, recomputed here from the definition."""
    case = regularizer_of(name).case(tightness)
    rng = np.random.default_rng([ord(letter) for letter in f"{case}/{dtype}"])
    loss = fp.FitzpatrickLoss(find_regularizer(name), tightness)
    groups = load(name, dtype)[:-1]
    for group in rng.choice(len(groups), LARGE_ROWS, replace=len(groups) < LARGE_ROWS):
        row = rng.integers(len(groups[group].value), size=1)
        y, theta = groups[group].y[row], groups[group].theta[row]
        value, y_star = recompute(case, y[0], theta[0])
        points = Points(y, theta, np.asarray([value]), y_star[None])
        # a projection is known up to a spacing of y, which counts (1 + c) times the distance of
        # y* from y, or as much as the scores, in each of the k terms of the loss
        is_ball = regularizer_of(case).domain in ("l1_ball", "l2_ball")
        floors = y.shape[1] if is_ball else 1
        with np.errstate(all="ignore"):
            solution = loss.solve(y, theta)
            assert_accurate(case, solution.value(), solution.y_star, points, dtype, floors)
        assert_accurate(case, loss.value(y, theta), loss.y_star(y, theta), points, dtype, floors)


def test_every_registry_loss_has_a_reference() -> None:
    assert set(fp.loss_names()) <= set(CASES)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_tolerance_is_not_loose(dtype: str) -> None:
    """The check above refuses values that are off by ten times the promise."""
    points = load("fitzpatrick_logistic", dtype)[2]
    rows = points.value > 1e-2
    points = Points(*(array[rows] for array in points))
    off = points.value * (1 + 10 * RELATIVE[dtype])
    with pytest.raises(AssertionError, match="is not"):
        assert_accurate("fitzpatrick_logistic", off, points.y_star, points, dtype)
