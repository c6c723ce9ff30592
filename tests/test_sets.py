"""Convex sets: projections, oracles, membership, normals, derivatives and faces."""

import itertools
import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from fitzpatrick import _root
from fitzpatrick.sets import (
    Birkhoff,
    Box,
    Budget,
    CappedSimplex,
    ConvexSet,
    Flat,
    L1Ball,
    L2Ball,
    OrderSimplex,
    Orthant,
    Permutahedron,
    Polytope,
    Product,
    Reals,
    Simplex,
    Transport,
)
from fitzpatrick.sets.polytope import PolytopeStatus
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

N, K = 80, 5
UNITS = np.eye(K)
CUBE = np.asarray(list(itertools.product([0.0, 1.0], repeat=K)))
WEIGHTS = (3.0, 1.5, 1.0, 0.0, -2.0)


def permutations(row) -> np.ndarray:
    return np.asarray(sorted(set(itertools.permutations(row))))


# The polytopes with all of their vertices.
VERTICES: dict[ConvexSet, np.ndarray] = {
    Simplex(): UNITS,
    Box(): CUBE,
    Box(-1.0, 2.5): 3.5 * CUBE - 1,
    L1Ball(3.0): 3 * np.concatenate([UNITS, -UNITS]),
    CappedSimplex(2): CUBE[CUBE.sum(axis=1) == 2],
    CappedSimplex(1.5): permutations((1.0, 0.5, 0.0, 0.0, 0.0)),
    Budget(1, 3): CUBE[np.isin(CUBE.sum(axis=1), (1, 2, 3))],
    Budget(0, 3.5): np.concatenate(
        [CUBE[CUBE.sum(axis=1) <= 3], permutations((1.0, 1.0, 1.0, 0.5, 0.0))]
    ),
    Permutahedron(WEIGHTS): permutations(WEIGHTS),
    Permutahedron((3.0, 0.0, 0.0, 0.0, -1.0)): permutations((3.0, 0.0, 0.0, 0.0, -1.0)),
    OrderSimplex(): np.tril(np.ones((K + 1, K)), -1),
    Product(Simplex(), Box(), sizes=(3, 2)): np.asarray(
        [[*a, *b] for a in np.eye(3) for b in itertools.product([0.0, 1.0], repeat=2)]
    ),
    Corner(): np.concatenate([UNITS, np.zeros((1, K))]),
    Flat(Birkhoff(), (3, 3)): np.asarray(
        [np.eye(3)[list(order)].ravel() for order in permutations(range(3))]
    ),
    Flat(Transport((1.0, 2.0), (1.0, 1.0, 1.0)), (2, 3)): np.asarray(
        [[*row, *(1 - row)] for row in np.eye(3)]
    ),
    Flat(Transport((1.0, 1.0), (0.5, 1.5)), (2, 2)): np.asarray(
        [[0.5, 0.5, 0.0, 1.0], [0.0, 1.0, 0.5, 0.5]]
    ),
}
SETS = [Reals(), Orthant(), L2Ball(), L2Ball(0.3), *VERTICES]
every_set = pytest.mark.parametrize("domain", SETS, ids=repr)
every_polytope = pytest.mark.parametrize("domain", VERTICES, ids=repr)


def width(domain: ConvexSet) -> int:
    """How many entries its points have here."""
    return VERTICES[domain].shape[1] if domain in VERTICES else K


@every_set
def test_projections_oracles_and_normals(domain, xp: Library, dtype: str) -> None:
    """P(x) ∈ C and ⟨x − P(x), c − P(x)⟩ <= 0 for all c ∈ C, for which vertices are enough.

    The oracle's point is at least as good as any vertex, and the normal gap is ⟨p − c, x⟩ >= 0.
    """
    if xp.name == "jax" and dtype == "float32":
        pytest.skip("JAX compiles each formula anew, and the dtype changes none of them")
    is_bounded = not isinstance(domain, (Reals, Orthant))

    def results(x, c):
        projection = domain.project(x)
        found = [projection, domain.project(projection), domain.project(c)]
        if is_bounded:
            best = domain.maximize(x)
            found += [best, domain.normal_gap(c, best, x)]
        return found

    points = VERTICES[domain] if domain in VERTICES else targets(domain, seeded(1), N, K, dtype)
    rng, inside = seeded(0), seeded(2)
    x = rng.normal(size=(N, width(domain))) * 10.0 ** rng.uniform(-2, 2, (N, 1))
    x[::4] = np.round(x[::4])  # ties
    x, c = x.astype(dtype).astype(np.float64), points[inside.integers(len(points), size=N)]
    c[::2] = (c[::2] + points[inside.integers(len(points), size=len(c[::2]))]) / 2
    c = c.astype(dtype).astype(np.float64)
    given = [xp.asarray(part, dtype) for part in (x, c)]
    found = xp.compiled(results)(*given)
    for each in found:
        assert_same_kind(each, given[0])
    p, again, fixed, *rest = map(to_numpy, found)
    largest = 1 + np.abs(points).max()
    size = (1 + np.max(np.abs(x), axis=-1, keepdims=True)) * largest
    assert np.all(domain.contains(p.astype(dtype)))
    assert_close(again, p, rtol=0, atol=8 * eps(dtype) * largest)
    assert_close(fixed, c, rtol=0, atol=8 * eps(dtype) * largest)
    normal = x - p
    angles = normal @ points.T - np.sum(normal * p, axis=-1, keepdims=True)
    assert_at_most(angles, 0.0, 64 * eps(dtype) * size * largest)
    if is_bounded:
        best, gap = rest
        assert np.all(domain.contains(best.astype(dtype)))
        scores = np.sum(best * x, axis=-1, keepdims=True)
        assert_at_most(x @ points.T, scores, 8 * eps(dtype) * K * size)
        assert np.all(gap >= 0)
        expected = np.sum((best - c) * x, axis=-1)
        assert_close(gap, expected, rtol=0, atol=32 * eps(dtype) * K * size[:, 0])


@every_polytope
def test_oracles_find_vertices(domain) -> None:
    """Which say whether the set has an interior, too."""
    p = domain.maximize(seeded(1).normal(size=(N, width(domain))))
    distance = np.abs(p[:, None] - VERTICES[domain]).max(axis=2).min(axis=1)
    assert_at_most(distance, 0.0, 1e-12)
    rank = np.linalg.matrix_rank(VERTICES[domain] - VERTICES[domain][0])
    assert domain.has_interior == (rank == width(domain))


@every_set
def test_projection_derivative_agrees_with_differences(domain, xp: Library) -> None:
    """Against a one-sided difference on each side; rows with a kink in between are left out."""
    rng = seeded(4)
    x, v = rng.normal(size=(2, N, width(domain)))
    h = 1e-7
    ends = [domain.project(x + sign * h * v) for sign in (-1, 1)]
    middle = domain.project(x)
    backward, forward = (middle - ends[0]) / h, (ends[1] - middle) / h
    smooth = np.all(np.abs(forward - backward) < 1e-5, axis=-1)
    assert np.mean(smooth) > 0.9
    derivative = xp.compiled(domain.project_derivative)(xp.asarray(x), xp.asarray(v))
    derivative = to_numpy(derivative)
    assert_close(derivative[smooth], ((forward + backward) / 2)[smooth], rtol=0, atol=1e-6)


@every_polytope
def test_polytope_with_the_oracle_of_a_set_is_that_set(domain) -> None:
    x, v = seeded(6).normal(size=(2, 16, width(domain)))
    polytope = Polytope(domain.maximize, batched=True)
    solution = polytope.solve(x)
    assert set(solution.status) == {PolytopeStatus.CONVERGED}
    assert_close(solution.point, domain.project(x), rtol=0, atol=1e-9)
    assert_close(polytope.project(x), solution.point, rtol=0, atol=0)
    np.testing.assert_array_equal(polytope.maximize(x), domain.maximize(x))
    # where the projection is smooth, both know its face
    expected = domain.project_derivative(x, v)
    same = np.abs(polytope.project_derivative(x, v) - expected).max(axis=1) < 1e-7
    assert np.mean(same) > 0.9


@pytest.mark.parametrize("library", ["torch", "jax"])
@pytest.mark.parametrize(
    "domain",
    [
        CappedSimplex(2),
        Budget(1, 3),
        Permutahedron(WEIGHTS[:4]),
        OrderSimplex(),
        Flat(Birkhoff(), (2, 2)),
        Polytope(CappedSimplex(2).maximize),
    ],
    ids=lambda domain: type(domain).__name__,
)
def test_projections_are_differentiable(domain, library: str) -> None:
    """Backward through PyTorch and JAX: the Jacobian is symmetric."""
    pytest.importorskip(library)
    x, v = seeded(8).normal(size=(2, 24, 4))
    if isinstance(domain, Budget):
        x[0, 0] = -np.inf  # masked
    expected = domain.project_derivative(x, v)
    assert np.all(np.isfinite(expected))
    if library == "torch":
        import torch

        scores = torch.tensor(x, requires_grad=True)
        projection = domain.project(scores)
        projection.backward(torch.tensor(v))
        value, found = projection.detach(), scores.grad
    else:
        import jax

        value, pull = jax.vjp(jax.jit(domain.project), jax.numpy.asarray(x))
        found = pull(jax.numpy.asarray(v))[0]
    assert_close(found, expected, rtol=1e-12, atol=1e-12)
    assert_close(value, domain.project(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@every_set
def test_half_precision(domain, library: str) -> None:
    """Projections and oracles give the dtype that they are given, also those on the host."""
    pytest.importorskip(library)
    x = np.round(8 * seeded(7).normal(size=(4, width(domain)))) / 8
    low = Library(library).asarray(x, "float16")
    if library == "torch":
        low = low.bfloat16()
    for method in (domain.project, domain.maximize, Polytope(Simplex().maximize).project):
        out = method(low)
        assert_same_kind(out, low)
        single = out.float() if library == "torch" else out.astype("float32")
        expected = method(x)
        spacing = 2**-7 * (1 + np.abs(expected[np.isfinite(expected)]).max(initial=0))
        assert_close(single, expected, rtol=2**-7, atol=spacing)


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
        (OrderSimplex(), [1.0, 0.5, 0.5], [1.0, 0.2, 0.2], [1.0, 0.5, 0.4]),
        (OrderSimplex(), [1.0, 0.5, 0.5], [1.0, 0.0, 0.0], [0.9, 0.5, 0.5]),
        (Budget(1, 2), [0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]),
        (Budget(1, 2), [0.5, 0.5, 1.0], [1.0, 0.0, 1.0], [0.5, 0.0, 1.0]),
    ],
    ids=repr,
)
def test_same_face(domain, z, inside, outside) -> None:
    z, inside, outside = np.asarray(z), np.asarray(inside), np.asarray(outside)
    assert domain.same_face(inside, z)
    assert not domain.same_face(outside, z)
    if not isinstance(domain, (Orthant, OrderSimplex)):
        middle = {Simplex(): 1 / 3, Budget(1, 2): 0.5}.get(domain, 0.01)
        center = np.full(3, middle)
        assert domain.same_face(outside, center)  # an interior point lies on no smaller face


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
def test_a_point_is_inside_where_it_is_its_own_projection(domain) -> None:
    """Off a point of the set in one entry, or in two that keep its sum; NaN is outside."""
    k, rng = width(domain), seeded(9)
    x = targets(domain, rng, N, k, "float64")
    i, j = rng.permuted(np.tile(np.arange(k), (N, 1)), axis=1)[:, :2].T
    x[np.arange(N), i] += 0.05
    x[: N // 2][np.arange(N // 2), j[: N // 2]] -= 0.05
    x[-1] = -7.0
    is_inside = np.abs(domain.project(x) - x).max(axis=1) < 1e-6
    x[0, 1], is_inside[0] = np.nan, False
    np.testing.assert_array_equal(domain.contains(x), is_inside)


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
        (Permutahedron((0.1, 0.2, 0.3)).project(np.asarray([1e9, 0.5, -1e9])), [0.3, 0.2, 0.1]),
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
