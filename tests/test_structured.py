"""Isotonic regression, assignments, subsets and polytopes, and the losses on them."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

import fitzpatrick as fp
from fitzpatrick.regularizers import Bernoulli, Indicator, Negentropy, SquaredNorm
from fitzpatrick.sets import (
    Birkhoff,
    Box,
    Budget,
    CappedSimplex,
    ConvergenceError,
    Flat,
    OrderSimplex,
    Permutahedron,
    Polytope,
    Product,
    Simplex,
    Transport,
)
from fitzpatrick.sets.isotonic import (
    block_log_shares,
    block_means,
    decreasing,
    decreasing_blocks,
)
from fitzpatrick.sets.polytope import PolytopeStatus
from tests.helpers import Library, assert_at_most, assert_close, eps, seeded, to_numpy

SCALES = (0.1, 1.0, 10.0)


def rows(k: int, seed: int = 0, n: int = 12) -> np.ndarray:
    rng = seeded([31, seed])
    return np.concatenate([scale * rng.normal(size=(n, k)) for scale in SCALES])


# Isotonic regression.


def test_isotonic_regression(xp: Library, dtype: str) -> None:
    isotonic = pytest.importorskip("sklearn.isotonic")
    x = rows(40, seed=10).astype(dtype)
    x[::3] = np.round(x[::3])
    x[0], x[1], x[2] = np.arange(40), -np.arange(40), 0
    expected = [isotonic.isotonic_regression(row.astype(float), increasing=False) for row in x]
    fit = to_numpy(decreasing(xp.asarray(x)))
    assert_close(fit, expected, rtol=0, atol=16 * eps(dtype) * (1 + np.abs(x).max()))
    assert np.all(np.diff(fit) <= 16 * eps(dtype) * np.abs(x).max())


def test_blocks_of_the_entropy(xp: Library) -> None:
    """Levels log Σ eˣ − log Σ eʷ by the min-max formula of isotonic regression."""
    x, w = (-np.sort(-rows(7, seed=seed), axis=-1) for seed in (23, 24))

    def level(j: int, k: int) -> np.ndarray:
        sums = [np.logaddexp.reduce(part[:, j : k + 1], axis=-1) for part in (x, w)]
        return sums[0] - sums[1]

    expected = [
        np.max([np.min([level(j, k) for j in range(i + 1)], axis=0) for k in range(i, 7)], axis=0)
        for i in range(7)
    ]
    starts = decreasing_blocks(xp.asarray(x), xp.asarray(w))
    shares = [to_numpy(block_log_shares(xp.asarray(part), starts)) for part in (x, w)]
    levels = x - w - shares[0] + shares[1]
    assert_close(levels.T, expected, rtol=0, atol=64 * eps("float64") * np.abs(x).max())


def test_means_of_long_blocks_keep_their_digits(xp: Library) -> None:
    x = seeded(27).uniform(1, 2, 100_000).astype("float32")
    starts = np.arange(len(x)) == 0
    means = to_numpy(block_means(xp.asarray(x), xp.asarray(starts)))
    assert_close(means, x.mean(dtype=float), rtol=4 * eps("float32"), atol=0)


def test_isotonic_regression_of_nothing_and_of_nan() -> None:
    assert decreasing(np.empty((0, 3))).shape == (0, 3)
    fit = decreasing(np.asarray([[1.0, np.nan, 3.0], [1.0, 3.0, 2.0]]))
    assert np.isnan(fit[0]).any()
    np.testing.assert_array_equal(fit[1], [2, 2, 2])


# Assignments and transport plans.


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 1e3, 1e4])
def test_projection_onto_assignments_at_any_scale(scale: float) -> None:
    """Sums within rounding errors of the scores; and nearest, for an LP bounds ⟨x − p, v − p⟩."""
    x = scale * seeded(11).normal(size=(6, 12, 12))
    p = Birkhoff().project(x)
    rounding = 64 * eps("float64") * 24
    assert_close(p.sum(axis=-1), 1.0, rtol=0, atol=rounding)
    assert_close(p.sum(axis=-2), 1.0, rtol=0, atol=rounding)
    gap = np.sum((x - p) * (Birkhoff().maximize(x - p) - p), axis=(-2, -1))
    assert_at_most(gap, 0.0, 12 * rounding * (24 + 10 * scale))


def test_link_of_the_negentropy_on_plans(xp: Library) -> None:
    """log P = θ − u_i − v_j, with the masses of rows and columns, which differ."""
    a, b = (0.5, 1.0, 1.5), (0.75, 0.75, 0.75, 0.75)
    theta = 2 * seeded(13).normal(size=(3, 4))
    link = to_numpy(xp.compiled(Negentropy(Transport(a, b)).link)(xp.asarray(theta)))
    assert_close(link.sum(axis=1), np.asarray(a), rtol=1e-13, atol=0)
    assert_close(link.sum(axis=0), np.asarray(b), rtol=1e-13, atol=0)
    normal = theta - np.log(link)
    assert_close(normal - normal[:1] - normal[:, :1] + normal[0, 0], 0.0, rtol=0, atol=1e-11)


def test_marginals_with_almost_the_same_total() -> None:
    """They are scaled to it; numbers that a user rounds never agree to the last digit."""
    a, b = (1.0, 2.0), np.asarray([1.5, 1.5 + 2e-6])
    for p in (
        Transport(a, tuple(b)).project(seeded(30).normal(size=(2, 2))),
        Negentropy(Transport(a, tuple(b))).link(seeded(30).normal(size=(2, 2))),
    ):
        assert_close(p.sum(axis=1), np.asarray(a), rtol=1e-13, atol=0)
        assert_close(p.sum(axis=0), b * (3 / b.sum()), rtol=1e-13, atol=0)


def matrices(n: int, scale: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Doubly stochastic targets, some of them permutations, and scores."""
    rng = seeded(seed)
    theta = scale * rng.normal(size=(5, n, n))
    y = Birkhoff().project(rng.normal(size=(5, n, n)))
    y[0] = np.eye(n)
    return y, theta


@pytest.mark.parametrize("tightness", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 1e3, 1e4])
def test_maximizer_of_the_negentropy_on_assignments(tightness: float, scale: float) -> None:
    """Its sums, and θ − ∇Ψ(P) − c ∇²Ψ(P)(P − Y) = u_i + v_j; the loss from its definition."""
    y, theta = matrices(6, scale, seed=14)
    loss = fp.FitzpatrickLoss(Negentropy(Birkhoff()), tightness)
    p = loss.y_star(y, theta)
    rounding = 64 * eps("float64") * 12
    assert_close(p.sum(axis=-1), 1.0, rtol=0, atol=rounding)
    assert_close(p.sum(axis=-2), 1.0, rtol=0, atol=rounding)
    value = loss.value(y, theta)
    assert np.all(value >= 0)
    known = p.min(axis=(-2, -1)) > 1e-250
    y, theta, p, value = (x[known] for x in (y, theta, p, value))
    if scale <= 30:
        assert np.all(known)
    normal = theta - np.log(p) - tightness * (p - y) / p
    centered = normal - normal[:, :1] - normal[:, :, :1] + normal[:, :1, :1]
    size = 1 + np.abs(normal).max(initial=0)
    assert_close(centered, 0.0, rtol=0, atol=256 * eps("float64") * size)
    kl = np.sum(np.where(y > 0, y * np.log(np.where(y > 0, y, 1) / p), 0), axis=(-2, -1))
    chi2 = np.sum((y - p) ** 2 / p, axis=(-2, -1))
    expected = (1 - tightness) * kl + tightness * chi2
    assert_close(value, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("scale", "tightness", "seed"), [(1e5, 1.0, 25), (1e8, 1.0, 25), (1e8, 0.1, 57)]
)
def test_fitzpatrick_sinkhorn_of_many_items_at_large_scales(
    scale: float, tightness: float, seed: int
) -> None:
    """Where entries off the best assignment fall like one over the scale, and tie it together."""
    rng = seeded(seed)
    y, theta = np.eye(20)[rng.permutation(20)], scale * rng.normal(size=(20, 20))
    p = fp.FitzpatrickLoss(Negentropy(Birkhoff()), tightness).y_star(y, theta)
    rounding = 64 * eps("float64") * 40
    assert_close(p.sum(axis=-1), 1.0, rtol=0, atol=rounding)
    assert_close(p.sum(axis=-2), 1.0, rtol=0, atol=rounding)
    # the gap of p as an assignment for θ is at most that of the entropies in it, 20 (1 + log 20)
    gap = np.sum(theta * (Birkhoff().maximize(theta) - p))
    assert_at_most(gap, 20 * (1 + math.log(20)), 1e-10 * scale)


@pytest.mark.parametrize("omega", [Negentropy(Birkhoff()), SquaredNorm(Birkhoff())], ids=repr)
def test_losses_on_matrices_have_their_gradient_and_hessian(omega) -> None:
    y, theta = matrices(3, 1.0, seed=15)
    v, h = seeded(16).normal(size=theta.shape), 1e-6
    loss = fp.FitzpatrickLoss(omega, 0.5)
    value, gradient = loss.value_and_gradient(y, theta)
    assert value.shape == (5,)
    assert_close(gradient, loss.y_star(y, theta) - y, rtol=0, atol=1e-14)
    ends = [loss.value(y, theta + sign * h * v) for sign in (1, -1)]
    slope = np.sum(gradient * v, axis=(-2, -1))
    assert_close((ends[0] - ends[1]) / (2 * h), slope, rtol=1e-6, atol=1e-8)
    ends = [loss.gradient(y, theta + sign * h * v) for sign in (1, -1)]
    product = loss.hessian_product(y, theta, v)
    assert_close(product, (ends[0] - ends[1]) / (2 * h), rtol=1e-5, atol=1e-7)
    flat = type(omega)(Flat(Birkhoff(), (3, 3)))
    same = fp.FitzpatrickLoss(flat, 0.5).value(y.reshape(5, 9), theta.reshape(5, 9))
    assert_close(value, same, rtol=1e-13, atol=1e-14)
    assert_close(loss.value(y[1], theta[1]), value[1], rtol=1e-12, atol=1e-15)
    assert_close(loss.value(omega.link(theta), theta), 0.0, rtol=0, atol=1e-13)
    out = np.empty(5), np.empty_like(theta)
    loss.value_and_gradient(y, theta, out=out)
    assert_close(out[1], gradient, rtol=0, atol=1e-14)
    assert loss.hessian_product(y, theta, v, out=out[1]) is out[1]
    assert_close(out[1], product, rtol=0, atol=1e-14)


def test_hessians_on_matrices_keep_all_sums() -> None:
    """Also of rows and columns whose slopes are tiny beside others, to ten times the promise."""
    y, theta = matrices(6, 10.0, seed=28)
    product = fp.FenchelYoungLoss(Negentropy(Birkhoff())).hessian_product(y, theta, theta / 10)
    for axis in (-1, -2):
        size = np.sum(np.abs(product), axis=axis)
        assert_at_most(np.abs(np.sum(product, axis=axis)), 1e-12 * size, 0.0)


def test_losses_on_matrices_of_other_libraries() -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    from fitzpatrick.jax import make_fitzpatrick_loss

    y, theta = matrices(3, 1.0, seed=22)
    omega = Negentropy(Birkhoff())
    loss, in_jax = fp.FitzpatrickLoss(omega), make_fitzpatrick_loss(omega)
    value, gradient = loss.value_and_gradient(y, theta)
    found = loss.value_and_gradient(torch.asarray(y), torch.asarray(theta))
    traced = jax.jit(jax.value_and_grad(lambda scores: in_jax(scores, y).sum()))(theta)
    for total, slope in ((found[0].sum(), found[1]), traced):
        assert_close(total, value.sum(), rtol=1e-12, atol=1e-14)
        assert_close(slope, gradient, rtol=1e-12, atol=1e-13)


def test_perceptron_of_assignments() -> None:
    y, theta = matrices(4, 1.0, seed=17)
    best = Birkhoff().maximize(theta)
    value = fp.FenchelYoungLoss(Indicator(Birkhoff())).value(y, theta)
    assert_close(value, np.sum((best - y) * theta, axis=(-2, -1)), rtol=1e-13, atol=1e-13)


# Subsets.


@pytest.mark.parametrize("tightness", [0.0, 1.0])
@pytest.mark.parametrize("scale", [0.1, 10.0])
def test_bernoulli_on_subsets(tightness: float, scale: float) -> None:
    """Against the maximizer on the cube at θ − τ, with τ by bisection."""
    rng = seeded(18)
    theta = scale * rng.normal(size=(8, 6))
    y = CappedSimplex(2).project(rng.normal(size=(8, 6)))
    y[0] = [1, 0, 0, 1, 0, 0]
    coins = fp.FitzpatrickLoss(Bernoulli(), tightness)
    loss = fp.FitzpatrickLoss(Bernoulli(CappedSimplex(2)), tightness)
    p = loss.y_star(y, theta)
    for i in range(8):
        tau = brentq(
            lambda t, i=i: coins.y_star(y[i], theta[i] - t).sum() - 2,
            -10 * scale - 50,
            10 * scale + 50,
            xtol=1e-14,
        )
        assert_close(p[i], coins.y_star(y[i], theta[i] - tau), rtol=1e-11, atol=1e-13)
        expected = coins.value(y[i], theta[i] - tau)
        assert_close(loss.value(y[i], theta[i]), expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("tightness", [0.0, 1.0, 3.0])
def test_masked_coins_take_no_part(tightness: float, dtype: str) -> None:
    """Like a row without them; NaN where no more are left than the sum asks for."""
    loss = fp.FitzpatrickLoss(Bernoulli(CappedSimplex(1.5)), tightness)
    theta, y, v = seeded(29).normal(size=(3, 12, 5)).astype(dtype)
    y, kept = CappedSimplex(1.5).project(y), np.asarray([0, 1, 3, 5, 6])
    wide = [np.full((12, 7), number, dtype) for number in (0, -np.inf, 1)]
    for full, part in zip(wide, (y, theta, v), strict=True):
        full[:, kept] = part
    expected = *loss.value_and_gradient(y, theta), loss.hessian_product(y, theta, v)
    found = *loss.value_and_gradient(*wide[:2]), loss.hessian_product(*wide)
    assert_close(found[0], expected[0], rtol=8 * eps(dtype), atol=0)
    for full, part in zip(found[1:], expected[1:], strict=True):
        assert_close(full[:, kept], part, rtol=0, atol=8 * eps(dtype) * np.abs(part).max())
        # coupled slopes are never zero, but they are as small as numbers are
        assert_close(np.delete(full, kept, axis=1), 0.0, rtol=0, atol=64 * np.finfo(dtype).tiny)
    scores = [[-np.inf, 0.0, -np.inf], [-np.inf] * 3, [0.0, -np.inf, 1.0], [0.0, 1.0, 2.0]]
    is_nan = np.isnan(Bernoulli(CappedSimplex(2)).link(scores)).all(axis=1)
    np.testing.assert_array_equal(is_nan, [True, True, True, False])
    at_mask = loss.value(np.asarray([0.5, 0.5, 0.5]), np.asarray([-np.inf, 0.0, 1.0]))
    assert at_mask == np.inf


def test_coins_of_a_subset_far_from_zero() -> None:
    """Many small probabilities need digits that τ, as large as the scores, cannot hold."""
    theta = np.concatenate([np.zeros((4, 1)), -seeded(26).uniform(5, 8, (4, 3000))], axis=1) + 1e6
    p = Bernoulli(CappedSimplex(2)).link(theta)
    assert_close(p.sum(axis=1), 2.0, rtol=0, atol=3001 * eps("float64"))


# Polytopes of a user.


def test_a_thousand_random_polytopes() -> None:
    """The gap, which certifies a projection, is tiny, and the active vertices mix to the point."""
    rng = seeded(19)
    for _ in range(1000):
        m, k = rng.integers(2, 25), rng.integers(2, 12)
        vertices = rng.normal(size=(m, k)) * 10.0 ** rng.uniform(-1, 1)
        if rng.random() < 0.5:
            vertices = np.round(vertices)
        x = rng.normal(size=k) * 10.0 ** rng.uniform(-1, 1)
        polytope = Polytope(lambda scores, v=vertices: v[np.argmax(v @ scores)])
        solution = polytope.solve(x)
        assert solution.status == (PolytopeStatus.CONVERGED,)
        p = solution.point
        largest = 1 + 2 * np.abs(vertices).max()
        size = largest * (np.linalg.norm(x - p) + 0.1 * largest)
        assert_at_most(np.max((vertices - p) @ (x - p)), 0.0, polytope.tolerance * size)
        active = solution.active[0]
        assert len(active.weights) <= k + 1
        assert (active.weights >= 0).all()  # and the point is in the hull
        assert_close(active.weights @ active.vertices, p, rtol=0, atol=1e-13)


def test_a_warm_start_saves_calls() -> None:
    polytope = Polytope(Permutahedron(8).maximize, batched=True)
    x = seeded(20).normal(size=(10, 8))
    cold = polytope.solve(x)
    warm = polytope.solve(x + 1e-3, start=cold.active)
    assert_close(warm.point, cold.point, rtol=0, atol=1e-9)
    assert np.all(warm.n_calls == 1)
    assert np.all(cold.n_calls > 1)


def test_polytope_errors() -> None:
    simplex = Simplex().maximize
    with pytest.raises(TypeError, match="needs a function of scores"):
        Polytope(3)
    with pytest.raises(ValueError, match="max_calls >= 1"):
        Polytope(simplex, max_calls=0)
    with pytest.raises(ConvergenceError, match=r"needs more than max_calls=2 calls") as caught:
        Polytope(simplex, max_calls=2).project(np.zeros(4))
    assert caught.value.status is PolytopeStatus.LIMIT
    with pytest.raises(ValueError, match="the oracle returned NaN or infinity"):
        Polytope(lambda scores: scores * np.nan).project(np.ones(3))
    for answer, kind, message in (
        (None, TypeError, r"the oracle returned None, not a point of shape \(3,\)"),
        ("best", TypeError, "the oracle has to return numbers, got 'best'"),
        ([[1.0], [1.0, 2.0]], TypeError, "the oracle has to return numbers"),
        (2.0, ValueError, r"the number 2.0 for scores of shape \(3,\); pass batched=True"),
        (np.ones(2), ValueError, r"shape \(2,\) for scores of shape \(3,\); pass batched=True"),
        (np.ones((1, 3)), ValueError, r"shape \(1, 3\) for scores of shape \(3,\)"),
    ):
        with pytest.raises(kind, match=message):
            Polytope(lambda _, answer=answer: answer).project(np.ones(3))
    with pytest.raises(ValueError, match=r"shape \(3,\) for scores of shape \(1, 3\)$"):
        Polytope(lambda _: np.ones(3), batched=True).project(np.ones(3))
    with pytest.raises(ValueError, match="the oracle minimizes"):
        Polytope(lambda scores: simplex(-scores)).project(np.asarray([3.0, 0.0, 0.0]))
    # a point outside of what the oracle returned before; the first two calls tell its direction
    answers = iter(np.asarray([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [-1.0, -1.0]]))
    with pytest.raises(ValueError, match="scores 2 less than a mixture of points"):
        Polytope(lambda _: next(answers)).project(np.asarray([1.0, 1.0]))
    with pytest.raises(ValueError, match="finite numbers"):
        Polytope(simplex).solve(np.asarray([np.inf, 0.0]))
    active = Polytope(simplex).solve(np.zeros(3)).active
    with pytest.raises(ValueError, match="start holds 1 active sets for 2 rows"):
        Polytope(simplex).solve(np.zeros((2, 3)), start=active)


def test_a_polytope_leaves_nan_in_its_row() -> None:
    x = np.asarray([[np.nan, 0.0], [0.5, 0.5]])
    polytope = Polytope(Simplex().maximize)
    for result in (polytope.project(x), polytope.maximize(x)):
        assert np.isnan(result[0]).all()
        assert np.isfinite(result[1]).all()


# Bad input.


BIRKHOFF_LOSS = fp.FenchelYoungLoss(SquaredNorm(Birkhoff()))
ERRORS = [
    *(
        (lambda k=k: CappedSimplex(k), "CappedSimplex needs a positive sum k")
        for k in (0, -1, math.inf, math.nan)
    ),
    (lambda: CappedSimplex("2"), "CappedSimplex needs a number k"),
    (lambda: Budget(2, 1), r"Budget needs 0 <= low <= high, got \[2, 1\]"),
    (lambda: Permutahedron((1.0, math.inf)), "at least one weight, all finite"),
    (lambda: Permutahedron(None), "a sequence of weights, or their number"),
    (lambda: Transport((1.0, 1.0), (1.0, 2.0)), r"the same total, got 2 and 3; divide each"),
    (lambda: Transport((1.0, 0.0), (1.0,)), "positive row and column sums"),
    (lambda: Product(Birkhoff()), "Product needs sets of vectors"),
    (lambda: Product(Simplex(), sizes=(1, 2)), "one positive size for each of its 1 sets"),
    (lambda: Flat(Birkhoff(), (4,)), "have 2 axes"),
    (lambda: Bernoulli(Box(0.0, 2.0)), r"is defined on CappedSimplex\(\), got domain=Box"),
    (lambda: CappedSimplex(2.5).project(np.zeros(2)), "a row needs at least 3 entries"),
    (lambda: Permutahedron(4).maximize(np.zeros(3)), r"4 weights .* got rows of 3"),
    (lambda: Birkhoff().project(np.zeros((2, 9))), r"square .* got shape \(2, 9\); for rows of n²"),
    (
        lambda: Transport((3.0,), (1.0, 2.0)).project(np.zeros((2, 2))),
        r"matrices \(…, 1, 2\), got shape \(2, 2\)",
    ),
    (lambda: Flat(Birkhoff(), (2, 2)).project(np.zeros(5)), r"5 entries are no .* shape \(2, 2\)"),
    (lambda: Product(Simplex(), Simplex()).project(np.zeros(3)), "a multiple of 2 entries, got 3"),
    (lambda: Bernoulli(CappedSimplex(3)).link(np.zeros(3)), "needs more than k = 3 entries"),
    (lambda: BIRKHOFF_LOSS.value(np.eye(3), np.zeros((2, 3, 3))), "must have the same shape"),
    (
        lambda: fp.divergences.bregman(SquaredNorm(Birkhoff()), np.eye(2), np.eye(2)),
        r"are matrices; use fitzpatrick\.sets\.Flat",
    ),
    *(
        (lambda kind=kind: kind(Birkhoff()).solve(*np.eye(2), 0.0), "and this takes vectors")
        for kind in (Negentropy, SquaredNorm, Indicator)
    ),
]


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_errors(call, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.parametrize(
    ("domain", "row", "message"),
    [
        (CappedSimplex(2), [1.0, 0.5, 0.0], r"it sums to 1.5, not 2"),
        (CappedSimplex(2), [2.0, 0.0, 0.0], r"entry 0 is 2, outside \[0, 1\]"),
        (Budget(1, 2), [0.5, 0.0, 0.0], r"it sums to 0.5, outside \[1, 2\]"),
        (Permutahedron(3), [3.0, 3.0, 1.0], "it sums to 7, and the weights sum to 6"),
        (Permutahedron(3), [4.0, 1.0, 1.0], "some of its largest entries"),
        (OrderSimplex(), [1.0, 0.2, 0.4], "entry 2 is 0.4, and should be between 0 and 0.2"),
        (Birkhoff(), [[1.0, 0.0], [0.0, 0.5]], r"row 1 sums to 0.5, not 1"),
        # the largest error for its sum, which is the smaller one in numbers
        (
            Transport((1, 1e3), (1, 1e3)),
            [[1 + 1e-6, 0], [0, 1e3 + 5e-6]],
            "row 0 sums to 1.000001,",
        ),
        (Birkhoff(), [[1.5, -0.5], [-0.5, 1.5]], "negative or NaN"),
        (Product(Simplex(), Simplex()), [1.0, 0.0, 0.7, 0.7], r"in block 1 \(entries 2 to 3\) it"),
    ],
    ids=repr,
)
def test_targets_outside_of_the_set(domain, row, message: str) -> None:
    loss = fp.FitzpatrickLoss(SquaredNorm(domain))
    with pytest.raises(ValueError, match=message):
        loss.value(np.asarray(row), np.zeros_like(np.asarray(row)))


def test_nan_stays_in_its_matrix() -> None:
    x = seeded(21).normal(size=(3, 4, 4))
    x[1, 2, 3] = np.nan
    for p in (Birkhoff().project(x), Negentropy(Birkhoff()).link(x), Birkhoff().maximize(x)):
        assert np.isnan(p[1]).all()
        assert np.isfinite(p[[0, 2]]).all()
