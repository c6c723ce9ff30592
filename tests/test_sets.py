"""Convex sets: projections, oracles, membership, normals, derivatives and faces."""

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from fitzpatrick import _root
from fitzpatrick.sets import (
    Box,
    Budget,
    CappedSimplex,
    L1Ball,
    L2Ball,
    OrderSimplex,
    Orthant,
    Permutahedron,
    Product,
    Reals,
    Simplex,
)
from tests.contracts.cases import Corner
from tests.helpers import (
    Library,
    assert_at_most,
    assert_close,
    assert_same_kind,
    eps,
    seeded,
    targets,
    to_numpy,
)

SETS = [
    Reals(),
    Orthant(),
    Box(),
    Box(-1.0, 2.5),
    Simplex(),
    L2Ball(),
    L2Ball(0.3),
    L1Ball(),
    L1Ball(3.0),
    CappedSimplex(2),
    CappedSimplex(1.5),
    Budget(1, 2),
    Budget(0, 3.5),
    Permutahedron(5),
    Permutahedron((3.0, 0.0, 0.0, 0.0, -1.0)),
    OrderSimplex(),
    Product(Simplex(), Box(), sizes=(3, 2)),
    Corner(),
]
BOUNDED = [s for s in SETS if not isinstance(s, (Reals, Orthant))]
every_set = pytest.mark.parametrize("domain", SETS, ids=repr)
N, K = 80, 5


def sort_projection(x: np.ndarray) -> np.ndarray:
    """The textbook projection onto the simplex: sort, accumulate, threshold; with spare digits."""
    x = x.astype(np.longdouble)
    x = x - np.max(x, axis=-1, keepdims=True)
    u = -np.sort(-x, axis=-1)
    excess = np.cumsum(u, axis=-1) - 1
    rank = np.arange(1, x.shape[-1] + 1)
    support = np.sum(u * rank > excess, axis=-1, keepdims=True)
    tau = np.take_along_axis(excess, support - 1, axis=-1) / support
    return np.maximum(x - tau, 0)


def points(dtype: str, seed: int = 0, n: int = N, k: int = K) -> np.ndarray:
    rng = seeded(seed)
    rows = rng.normal(size=(n, k)) * 10.0 ** rng.uniform(-2, 2, (n, 1))
    rows[::4] = np.round(rows[::4])
    return rows.astype(dtype).astype(np.float64)


@every_set
def test_projection(domain, xp: Library, dtype: str) -> None:
    """In the set, idempotent, and nearest: ⟨x − p, c − p⟩ <= 0 for every c in the set."""
    x, project = points(dtype), xp.compiled(domain.project)
    p = project(xp.asarray(x, dtype))
    assert_same_kind(p, xp.asarray(x, dtype))
    assert np.all(to_numpy(domain.contains(p)))
    scale = 1 + np.max(np.abs(x), axis=-1)
    again = project(xp.asarray(to_numpy(p), dtype))
    assert_close(again, p, rtol=0, atol=8 * eps(dtype))
    p = to_numpy(p)
    c = targets(domain, seeded(1), N, K, dtype)
    assert_close(project(xp.asarray(c, dtype)), c, rtol=0, atol=4 * eps(dtype))
    angle = np.sum((x - p) * (c - p), axis=-1)
    assert_at_most(angle, 0.0, 32 * eps(dtype) * scale * (1 + np.max(np.abs(c), axis=-1)))


@pytest.mark.parametrize("domain", BOUNDED, ids=repr)
def test_oracle_and_normal_gap(domain, xp: Library, dtype: str) -> None:
    """p is in the set and ⟨p − y, n⟩ ≥ 0 for every y, which the gap is, without a sign."""
    normal = points(dtype)
    p = domain.maximize(xp.asarray(normal, dtype))
    assert_same_kind(p, xp.asarray(normal, dtype))
    assert np.all(to_numpy(domain.contains(p)))
    size = np.sum(np.abs(normal), axis=-1) * (1 + np.max(np.abs(to_numpy(p)), axis=-1))
    for seed in range(3):
        y = targets(domain, seeded(seed), N, K, dtype)
        expected = np.sum((to_numpy(p) - y) * normal, axis=-1)
        assert_at_most(0.0, expected, 4 * eps(dtype) * size)
        gap = domain.normal_gap(xp.asarray(y, dtype), p, xp.asarray(normal, dtype))
        assert_same_kind(gap, p)
        assert np.all(to_numpy(gap) >= 0)
        assert_close(gap, expected, rtol=0, atol=32 * eps(dtype) * size)


@every_set
def test_projection_derivative_agrees_with_differences(domain, xp: Library) -> None:
    """Against a one-sided difference on each side; rows with a kink in between are left out."""
    rng = seeded(4)
    x, v = rng.normal(size=(2, N, K))
    h = 1e-7
    ends = [np.asarray(domain.project(x + sign * h * v)) for sign in (-1, 1)]
    middle = np.asarray(domain.project(x))
    backward, forward = (middle - ends[0]) / h, (ends[1] - middle) / h
    smooth = np.all(np.abs(forward - backward) < 1e-5, axis=-1)
    assert np.mean(smooth) > 0.9
    derivative = xp.compiled(domain.project_derivative)(xp.asarray(x), xp.asarray(v))
    derivative = to_numpy(derivative)
    assert_close(derivative[smooth], ((forward + backward) / 2)[smooth], rtol=0, atol=1e-6)


def test_oracle_derivative_of_the_euclidean_ball() -> None:
    rng = seeded(5)
    theta, v = rng.normal(size=(2, N, K))
    ball, h = L2Ball(2.0), 1e-6
    difference = (ball.maximize(theta + h * v) - ball.maximize(theta - h * v)) / (2 * h)
    assert_close(ball.maximize_derivative(theta, v), difference, rtol=1e-6, atol=1e-8)
    assert_close(ball.maximize_derivative(0 * theta, v), 0.0, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("domain", "z", "inside", "outside"),
    [
        (Simplex(), [0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]),
        (Box(), [0.5, 1.0, 0.0], [0.0, 1.0, 0.0], [0.5, 1.0, 0.1]),
        (Orthant(), [0.5, 0.0, 3.0], [9.0, 0.0, 0.0], [0.5, 0.1, 3.0]),
        (L2Ball(), [1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]),
        (L1Ball(), [0.5, -0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]),
    ],
    ids=repr,
)
def test_same_face(domain, z, inside, outside) -> None:
    z, inside, outside = np.asarray(z), np.asarray(inside), np.asarray(outside)
    assert domain.same_face(inside, z)
    assert not domain.same_face(outside, z)
    if not isinstance(domain, Orthant):
        centre = np.full(3, 1 / 3) if isinstance(domain, Simplex) else np.full(3, 0.01)
        assert domain.same_face(outside, centre)  # an interior point lies on no smaller face


ADVERSARIES = {
    # one entry leaves the support at each step of a method that starts with all of them
    "geometric": lambda k: -(2.0 ** -np.arange(k))[::-1],
    "falling sums": lambda k: -np.cumsum(1 / np.arange(1, k + 1)) / k,
    "slow": lambda k: -np.sqrt(np.arange(k) / k),
    "logarithms": lambda k: -np.log1p(np.arange(k)) / np.log1p(k),
    "ties": lambda k: np.repeat([0.0, -0.3, -0.6], (k + 2) // 3)[:k],
    "all equal": lambda k: np.full(k, 3.0),
    "far apart": lambda k: np.linspace(-1e4, 1e4, k),
    "one above": lambda k: np.where(np.arange(k) == 0, 1e4, -1e4),
    "just active": lambda k: np.where(np.arange(k) == 0, 0.0, -1 + 1e-12),
    "random": lambda k: seeded(k).normal(size=k),
    # many small entries need digits that τ, near the threshold, cannot hold
    "one stands out": lambda k: np.where(np.arange(k) == 0, 0.5, 0.0),
    "near equal": lambda k: 10 + 1e-3 * seeded(k).normal(size=k),
}


@pytest.mark.parametrize("name", ADVERSARIES)
def test_simplex_projection_of_adversarial_rows(name: str, xp: Library, dtype: str) -> None:
    """The fixed number of steps is enough: PyTorch and JAX never stop early."""
    for k in (1, 2, 3, 17, 60, 3000):
        if xp.name == "jax" and (k != 60 or dtype == "float32"):
            continue  # each shape is compiled anew
        x = ADVERSARIES[name](k)[None].astype(dtype)
        p = to_numpy(xp.compiled(Simplex().project)(xp.asarray(x)))
        assert_close(p, sort_projection(x), rtol=0, atol=4 * eps(dtype))
        assert_close(np.sum(p, axis=-1), 1.0, rtol=0, atol=max(k, 4) * eps(dtype))


def test_scores_of_a_masked_or_broken_row() -> None:
    """−∞ gets probability 0; NaN spoils its own row only."""
    x = np.asarray([[0.0, -np.inf, 0.0], [np.nan, 0.0, 1.0], [3.0, 0.0, 0.0]])
    p, vertex = Simplex().project(x), Simplex().maximize(x)
    np.testing.assert_array_equal(p[[0, 2]], [[0.5, 0, 0.5], [1, 0, 0]])
    np.testing.assert_array_equal(vertex[[0, 2]], [[1, 0, 0], [1, 0, 0]])
    assert np.all(np.isnan(p[1]))
    assert np.all(np.isnan(vertex[1]))


@every_set
def test_contains_says_no(domain) -> None:
    """A point well outside is outside, row by row; NaN is nowhere."""
    inside = targets(domain, seeded(0), 4, K, "float64")
    if not isinstance(domain, Reals):
        outside = inside.copy()
        outside[2] = -7.0
        np.testing.assert_array_equal(domain.contains(outside), [True, True, False, True])
    inside[1, 3] = np.nan
    assert not domain.contains(inside)[1]


TINY, HUGE, UNIT = np.full(2, 1e-200), np.full(2, 1e200), np.full(2, np.sqrt(0.5))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (Reals().maximize(np.asarray([-1.0, 0.0, 2.0])), [-np.inf, 0.0, np.inf]),
        (Orthant().maximize(np.asarray([-1.0, 0.0, 2.0])), [0.0, 0.0, np.inf]),
        # the point nearest to 0 where the score is 0
        (Box(1.0, 2.0).maximize(np.asarray([0.0, 1.0, -1.0])), [1, 2, 1]),
        (Box().project([-1, 0, 3]), [0, 0, 1]),
        (Simplex().project([3, 0]), [1, 0]),
        (L2Ball().maximize(TINY), UNIT),
        (L2Ball().project(HUGE), UNIT),
    ],
)
def test_odd_points(found, expected) -> None:
    np.testing.assert_allclose(found, expected, rtol=4 * eps("float64"))


ERRORS = [
    (lambda: Box(1.0, 1.0), r"Box needs lower < upper, got \[1.0, 1.0\]"),
    (lambda: Box(np.zeros(3), np.ones(3)), r"Box needs two numbers.* got array.* subclass of"),
    *(
        (lambda ball=ball, radius=radius: ball(radius), "a ball needs a positive radius")
        for ball in (L1Ball, L2Ball)
        for radius in (0.0, -1.0, math.nan)
    ),
    (lambda: Simplex().project(["a", "b"]), "x must be real numbers"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_errors(call, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_sets_are_values() -> None:
    """Frozen, hashable, equal where their parameters are, and printed as they are written."""
    assert Box(0.0, 1.0) == Box()
    assert len({Simplex(), Simplex(), L1Ball(2.0), L1Ball()}) == 3
    assert repr(L2Ball(2.0)) == "L2Ball(radius=2.0)"
    with pytest.raises(FrozenInstanceError):
        Box().lower = 3.0  # type: ignore[misc]  # that it cannot be set is the point


@pytest.mark.parametrize("spread", [0.0, 1e-4])
def test_equal_scores_take_as_few_steps_as_others(monkeypatch, spread):
    """Their τ is 1/k, far below its start, whose rounding errors it has."""
    taken = []
    step = _root.newton_step
    monkeypatch.setattr(_root, "newton_step", lambda *a: taken.append(1) or step(*a))
    x = spread * np.random.default_rng(0).normal(size=(64, 1000))
    p = Simplex().project(x.astype(np.float32))
    np.testing.assert_allclose(p.sum(axis=1, dtype=float), 1, rtol=0, atol=4 * 2.0**-23)
    assert len(taken) <= 10
