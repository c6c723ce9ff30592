"""Losses of order n: the supremum over chains in mpmath, and their place between the two ends."""

import dataclasses
import math

import numpy as np
import pytest
from mpmath import mp, mpf

import fitzpatrick as fp
from fitzpatrick.regularizers import (
    Bernoulli,
    Indicator,
    Negentropy,
    Quadratic,
    SquaredNorm,
    Tsallis,
    TwiceDifferentiable,
)
from fitzpatrick.sets import Birkhoff, CappedSimplex, L2Ball, Orthant, Simplex, Transport
from tests.helpers import assert_at_most, eps, seeded

ENTROPIES = [
    Negentropy(),
    Negentropy(Orthant()),
    Bernoulli(),
    Tsallis(1.5),
    Tsallis(1.2),
    Tsallis(1.8),
]
every_entropy = pytest.mark.parametrize("omega", ENTROPIES, ids=repr)


def batch(omega, rng, rows=40, k=5, scale=1.0):
    """Targets with zeros and labels among them, and scores."""
    y = rng.dirichlet(np.full(k, 0.5), rows)
    y[: rows // 4] = np.eye(k)[rng.integers(0, k, rows // 4)]
    y[rows // 4 : rows // 2, 0] = 0
    if not omega.domain.is_product:
        y /= y.sum(axis=1, keepdims=True)
    return y, rng.normal(size=(rows, k)) * scale


def gradient_of(omega):
    """ψ', from the definition of Ω."""
    if isinstance(omega, Bernoulli):
        return lambda p: mp.log(p / (1 - p))
    if isinstance(omega, Negentropy):
        return mp.log
    return lambda p: (p ** (mpf(omega.alpha) - 1)) / (mpf(omega.alpha) - 1)


def chain_objective(omega, y, theta, chain):
    """⟨y_m − y, θ⟩ + Σ ⟨y_{i−1} − y_i, ∇Ψ(y_i)⟩ of one row; entries 0 → 0 count nothing."""
    slope, total, before = gradient_of(omega), mpf(0), y
    for point in chain:
        total += sum(
            (a - b) * slope(b) for a, b in zip(before, point, strict=True) if not a == b == 0
        )
        before = point
    return total + sum((a - b) * t for a, b, t in zip(before, y, theta, strict=True))


@every_entropy
@pytest.mark.parametrize("order", [3, 4])
def test_value_is_the_supremum_over_chains(omega, order):
    """The chain found attains the loss, and no chain beside it has more.

    Around a maximum errors count squared: in 40 digits the objective of the chain is the supremum
    up to what its row sums are off, times τ.
    """
    rng = seeded(11)
    y, theta = batch(omega, rng, rows=12, k=3, scale=2.0)
    loss = fp.FitzpatrickLoss(omega, order=order)
    with np.errstate(all="ignore"):
        regularizer, given = loss.regularizer, (y, theta)
        if isinstance(omega, Bernoulli):  # a coin is a row of two classes
            regularizer = fp.FitzpatrickLoss(Negentropy(), order=order).regularizer
            given = np.stack([y, 1 - y], axis=-1), np.stack([theta, 0 * theta], axis=-1)
        solution = regularizer.solve(*given, 1.0)
        chains = solution.formulas.point(solution.w)[0]
        chains = chains[..., 0] if isinstance(omega, Bernoulli) else chains
    values = loss.value(y, theta)
    for row in range(len(y)):
        with mp.workdps(40):
            chain = [[mpf(float(x)) for x in point[row]] for point in chains]
            ends = [[mpf(float(x)) for x in part[row]] for part in (y, theta)]
            best = chain_objective(omega, *ends, chain)
            assert abs(float(best) - values[row]) <= 1e-12 * (1 + values[row])
            for size in (1e-2, 1e-1, 0.5):
                other = [[x * mp.exp(size * float(rng.normal())) for x in point] for point in chain]
                if isinstance(omega, Bernoulli):
                    other = [
                        [min(x, (1 + a) / 2) for x, a in zip(*pair, strict=True)]
                        for pair in zip(other, chain, strict=True)
                    ]
                if not omega.domain.is_product:
                    other = [[x / sum(point) for x in point] for point in other]
                assert float(chain_objective(omega, *ends, other) - best) <= 1e-13


@pytest.mark.parametrize("omega", [*ENTROPIES, *map(Tsallis, (1.05, 1.9, 1.95))], ids=repr)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 1e3])
def test_between_fitzpatrick_and_fenchel_young(omega, scale):
    """At every order, and never a number that depends on the other rows."""
    if omega.domain == Orthant():
        scale = min(scale, 30.0)  # beyond, e^θ is too large to compare
    y, theta = batch(omega, seeded(5), rows=16, scale=scale)
    below = fp.FitzpatrickLoss(omega).value(y, theta)
    above = fp.FenchelYoungLoss(omega).value(y, theta)
    room = 1e-11 * (1 + above)
    for order in (3, 4, 8):
        loss = fp.FitzpatrickLoss(omega, order=order)
        value = loss.value(y, theta)
        assert_at_most(below, value, room)
        assert_at_most(value, above, room)
        assert value[7] == pytest.approx(loss.value(y[7], theta[7]), rel=1e-12)
        below = value
        link = fp.FenchelYoungLoss(omega).link(theta)
        np.testing.assert_allclose(loss.link(theta), link, rtol=1e-12, atol=1e-300)


def test_labels_are_one_hot_rows():
    rng = seeded(9)
    labels, theta, v = (
        rng.integers(0, 6, 30),
        4 * rng.normal(size=(30, 6)),
        rng.normal(size=(30, 6)),
    )
    one_hot = np.eye(6)[labels]
    for omega in (Negentropy(), Tsallis(1.5)):
        loss = fp.FitzpatrickLoss(omega, order=5)
        for ours, dense in zip(
            (*loss.value_and_gradient(labels, theta), loss.hessian_product(labels, theta, v)),
            (*loss.value_and_gradient(one_hot, theta), loss.hessian_product(one_hot, theta, v)),
            strict=True,
        ):
            np.testing.assert_allclose(ours, dense, rtol=1e-11, atol=1e-12)


def test_small_gradients_keep_their_digits():
    """Of a coin at either label, and of two classes, which are a coin."""
    theta = np.array([1.0, 30.0, 38.0, 60.0, 300.0])
    coin, pair = (fp.FitzpatrickLoss(omega, order=3) for omega in (Bernoulli(), Negentropy()))
    gradient = coin.gradient(np.zeros(5), -theta)
    np.testing.assert_allclose(coin.gradient(np.ones(5), theta), -gradient, rtol=1e-12)
    two = pair.gradient(np.zeros(5, int), np.stack([theta, 0 * theta], axis=1))
    np.testing.assert_allclose(two, np.stack([-gradient, gradient], axis=1), rtol=1e-12)


def test_distance_to_fenchel_young_is_the_geodesic_one():
    """(n − 1)(L_FY − L_n) tends to d²/2, which is 2 arcsin²√(1 − p) at a label."""
    omega, labels, theta = Negentropy(), np.array([0, 0]), np.array([[0.0, 0.5], [0.0, -1.0]])
    end = fp.FenchelYoungLoss(omega).value(labels, theta)
    falls = [
        (n - 1) * (end - fp.FitzpatrickLoss(omega, order=n).value(labels, theta)) for n in (26, 51)
    ]
    angle = np.arcsin(np.sqrt(omega.link(theta)[:, 1]))
    # less the terms of order 1/n
    np.testing.assert_allclose(2 * falls[1] - falls[0], 2 * angle**2, rtol=0.02)


def test_order_is_a_tightness_for_quadratic_potentials():
    for omega in (SquaredNorm(), SquaredNorm(Simplex()), SquaredNorm(L2Ball()), Tsallis(2.0)):
        assert fp.FitzpatrickLoss(omega, order=5) == fp.FitzpatrickLoss(omega, tightness=0.25)
    quadratic = Quadratic(np.eye(2))
    assert fp.FitzpatrickLoss(quadratic, order=3).tightness == 0.5
    perceptron = Indicator(Simplex())
    assert fp.FitzpatrickLoss(perceptron, order=3).regularizer == perceptron


@every_entropy
def test_orders_2_and_infinity_are_the_two_ends(omega):
    assert fp.FitzpatrickLoss(omega, order=2) == fp.FitzpatrickLoss(omega)
    assert fp.FitzpatrickLoss(omega, order=math.inf) == fp.FenchelYoungLoss(omega)
    assert fp.FitzpatrickLoss(omega, order=3) != fp.FitzpatrickLoss(omega)
    assert repr(fp.FitzpatrickLoss(omega, order=3)).endswith("order=3)")


@pytest.mark.parametrize("order", [3, 4, 6])
@pytest.mark.parametrize("alpha", [1.2, 1.5, 1.8])
def test_targets_that_are_a_sparse_link(alpha, order):
    """Zeros of the link are zeros of the chain, although rounding errors may lie above them."""
    loss = fp.FitzpatrickLoss(Tsallis(alpha), order=order)
    theta = np.geomspace(0.1, 30, 200)[:, None] * seeded(9).normal(size=(200, 8))
    value, gradient = loss.value_and_gradient(loss.link(theta), theta)
    # the link is as exact as the scores are, and slopes of the potential amplify that
    bound = 64 * eps("float64") * (1 + np.abs(theta).max(axis=1)) / (alpha - 1)
    assert_at_most(value, 0.0, bound)
    assert_at_most(np.abs(gradient), 0.0, bound[:, None])


def test_chains_that_are_not_solved_raise():
    rng = seeded(14)
    y, theta = rng.dirichlet(np.ones(20), 50), 100 * rng.normal(size=(50, 20))
    loss = fp.FitzpatrickLoss(Tsallis(1.99), order=3)
    with pytest.raises(fp.sets.ConvergenceError, match="did not converge"):
        loss.value(np.float32(y), np.float32(theta))


def test_rows_without_any_class_are_nan_by_themselves():
    theta = np.array([[-np.inf, -np.inf, -np.inf], [0.0, 1.0, 2.0]])
    loss = fp.FitzpatrickLoss(Negentropy(), order=3)
    for y in (np.array([0, 1]), np.eye(3)[[0, 1]]):
        value = loss.value(y, theta)
        assert np.isnan(value[0])
        assert value[1] == pytest.approx(loss.value(y[1:], theta[1:])[0], rel=1e-14)


def test_copies_and_other_tightnesses():
    loss = fp.FitzpatrickLoss(Negentropy(), order=3)
    assert dataclasses.replace(loss) == loss
    assert dataclasses.replace(loss, order=4) == fp.FitzpatrickLoss(Negentropy(), order=4)
    with pytest.raises(ValueError, match="has an order"):
        fp.get_loss(loss, tightness=0.5)
    with pytest.raises(ValueError, match=r"order 3 has no tightness of its own, got 0\.5"):
        fp.Loss(loss.regularizer, 0.5).value([0], [[0.0, 1.0]])


def test_masks_extremes_and_single_precision():
    loss = fp.FitzpatrickLoss(Negentropy(), order=3)
    theta = np.array([[0.5, -np.inf, 1.0], [1e4, -1e4, 0.0], [np.nan, 0.0, 0.0]])
    y = np.array([[0.5, 0.0, 0.5], [0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    value, gradient = loss.value_and_gradient(y, theta)
    assert np.isfinite(value[:2]).all()
    assert gradient[0, 1] == 0
    assert np.isnan(value[2])
    for target in (np.array([1]), np.eye(3)[[1]]):  # which is masked
        value_at_mask, gradient = loss.value_and_gradient(target, theta[:1])
        assert value_at_mask == np.inf
        assert gradient[0, 1] == -1
    alone = np.array([[2.0, -np.inf, -np.inf]])
    for target in (np.array([0]), np.eye(3)[[0]]):
        for result in loss.value_and_gradient(target, alone):
            np.testing.assert_array_equal(result, 0)
    rows = np.float32(theta[:2])
    np.testing.assert_allclose(loss.value(np.float32(y[:2]), rows), value[:2], rtol=1e-4)


@every_entropy
def test_subnormal_targets_count_as_zero(omega, dtype):
    """Ratios to them would have no digits, and logarithms of the ratios no bound."""
    y, theta = (x.astype(dtype) for x in batch(omega, seeded(16), scale=5.0))
    tiny = np.where(y == 0, np.finfo(dtype).smallest_subnormal, y)
    loss = fp.FitzpatrickLoss(omega, order=4)
    found, expected = (loss.value_and_gradient(target, theta) for target in (tiny, y))
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("omega", [Negentropy(), Bernoulli(), Tsallis(1.5)], ids=repr)
def test_other_array_libraries(omega):
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    y, theta = batch(omega, seeded(12), rows=6, k=4)
    loss = fp.FitzpatrickLoss(omega, order=3)
    expected = loss.value_and_gradient(y, theta)
    found = loss.value_and_gradient(torch.asarray(y), torch.asarray(theta))
    traced = jax.jit(loss.value_and_gradient)(y, theta)
    for ours, theirs, whole in zip(found, traced, expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), whole, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(np.asarray(theirs), whole, rtol=1e-12, atol=1e-13)


def test_compile():
    """The whole call is one graph, and so is the link, which is that of Ω."""
    torch = pytest.importorskip("torch")
    y, theta = map(torch.asarray, batch(Negentropy(), seeded(12), rows=6, k=4))
    loss = fp.FitzpatrickLoss(Negentropy(), order=3)

    def results(y, theta):
        return *loss.value_and_gradient(y, theta), loss.link(theta)

    torch._dynamo.reset()
    compiled = torch.compile(results, fullgraph=True, backend="eager")
    for found, expected in zip(compiled(y, theta), results(y, theta), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"order": 1}, ValueError, "order must be 2"),
        ({"order": math.nan}, TypeError, "an integer or math.inf"),
        ({"order": -math.inf}, TypeError, "an integer or math.inf"),
        ({"order": 2.5}, TypeError, "an integer or math.inf"),
        ({"order": True}, TypeError, "an integer or math.inf"),
        ({"order": 3, "tightness": 0.5}, ValueError, "exclude one another"),
    ],
)
def test_errors(arguments, error, message):
    with pytest.raises(error, match=message):
        fp.FitzpatrickLoss(Negentropy(), **arguments)


@pytest.mark.parametrize(
    "omega",
    [
        TwiceDifferentiable(np.sum, np.sinh, np.cosh),
        Negentropy(Birkhoff()),
        Negentropy(Transport((1.0, 2.0), (2.0, 1.0))),
        Bernoulli(CappedSimplex(2)),  # coins that share a sum
    ],
    ids=lambda omega: f"{type(omega).__name__} on {omega.domain!r}",
)
def test_regularizers_without_losses_of_order_n_say_so(omega):
    with pytest.raises(TypeError, match="no losses of order n; leave order out"):
        fp.FitzpatrickLoss(omega, order=3)
