"""Losses that are known in closed form, or that coincide with one another, and the definition."""

import numpy as np
import pytest
from scipy.special import logsumexp, wrightomega, xlogy

import fitzpatrick as fp
from fitzpatrick.regularizers import (
    Bernoulli,
    Indicator,
    Negentropy,
    Quadratic,
    SquaredNorm,
    Tsallis,
)
from fitzpatrick.sets import Box, L1Ball, L2Ball, Simplex
from tests.helpers import Library, assert_close, assert_promised, scores, targets, to_numpy

N, K = 60, 4
NUMPY = Library("numpy")


def draw(
    domain, dtype: str = "float64", n: int = N, k: int = K, scale: float = 10.0, seed: int = 0
):
    rng = np.random.default_rng(seed)
    return targets(domain, rng, n, k, dtype), scores(domain, rng, n, k, dtype, scale)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 1e4])
def test_hard_labels_give_the_wright_omega_function(xp: Library, dtype: str, scale: float) -> None:
    """L_F = ω(d − 1), y*_j = 1/(1 + ω) and e^{θ_i − λ} elsewhere, d = lse_{i≠j} θ − θ_j."""
    rng = np.random.default_rng(3)
    labels = rng.integers(K, size=N)
    theta = (scale * rng.normal(size=(N, K))).astype(dtype).astype(np.float64)
    is_label = np.eye(K, dtype=bool)[labels]
    others = np.where(is_label, -np.inf, theta)
    omega = wrightomega(logsumexp(others, axis=-1) - theta[is_label] - 1)
    share = np.exp(others - logsumexp(others, axis=-1, keepdims=True))
    y_star = np.where(is_label, (1 / (1 + omega))[:, None], share * (omega / (1 + omega))[:, None])

    loss = fp.get_loss("fitzpatrick_logistic")
    y, theta = xp.asarray(np.eye(K)[labels], dtype), xp.asarray(theta, dtype)
    for target in (y, xp.asarray(labels)):
        assert_promised(loss.value(target, theta), omega, y, dtype)
        assert_promised(loss.y_star(target, theta), y_star, y, dtype)


def test_hard_labels_of_the_logistic_loss_give_softplus(xp: Library, dtype: str) -> None:
    rng = np.random.default_rng(4)
    labels = rng.integers(K, size=N)
    theta = (10 * rng.normal(size=(N, K))).astype(dtype).astype(np.float64)
    others = np.where(np.eye(K, dtype=bool)[labels], -np.inf, theta)
    expected = np.logaddexp(0, logsumexp(others, axis=-1) - theta[np.arange(N), labels])
    value = fp.get_loss("logistic").value(xp.asarray(labels), xp.asarray(theta, dtype))
    assert_promised(value, expected, np.ones((N, 1)), dtype)


def test_logistic_is_the_relative_entropy_to_the_soft_argmax() -> None:
    """Written out: Σ y log y + lse θ − ⟨y, θ⟩."""
    y, theta = draw(Simplex())
    expected = np.sum(xlogy(y, y) - y * theta, axis=-1) + logsumexp(theta, axis=-1)
    assert_close(fp.get_loss("logistic").value(y, theta), expected, rtol=1e-13, atol=1e-13)


def test_squared_losses(xp: Library, dtype: str) -> None:
    """½‖y − θ‖² and ¼‖y − θ‖², with y* = (y + θ)/2."""
    y, theta = draw(fp.sets.Reals(), dtype)
    arrays = xp.asarray(y, dtype), xp.asarray(theta, dtype)
    square = np.sum((y - theta) ** 2, axis=-1)
    assert_promised(fp.get_loss("squared").value(*arrays), square / 2, y, dtype)
    assert_promised(fp.get_loss("fitzpatrick_squared").value(*arrays), square / 4, y, dtype)
    assert_promised(fp.get_loss("fitzpatrick_squared").y_star(*arrays), (y + theta) / 2, y, dtype)


def test_quadratic_losses_are_mahalanobis_distances() -> None:
    rng = np.random.default_rng(0)
    A = np.cov(rng.normal(size=(3, 9)))
    y, theta = rng.normal(size=(2, 50, 3))
    residual = theta @ np.linalg.inv(A) - y
    form = np.einsum("ni,ij,nj->n", residual, A, residual)
    fenchel_young, fitzpatrick = (
        kind(Quadratic(A)) for kind in (fp.FenchelYoungLoss, fp.FitzpatrickLoss)
    )
    assert_close(fenchel_young.value(y, theta), form / 2, rtol=1e-11, atol=0)
    assert_close(fitzpatrick.value(y, theta), form / 4, rtol=1e-11, atol=0)
    identity = fp.FitzpatrickLoss(Quadratic(np.eye(3)))
    assert_close(
        identity.value(y, theta),
        fp.get_loss("fitzpatrick_squared").value(y, theta),
        rtol=1e-14,
        atol=0,
    )


@pytest.mark.parametrize("domain", [Simplex(), Box(), L1Ball(), L2Ball()], ids=repr)
def test_a_perceptron_is_its_own_fitzpatrick_loss(domain, xp: Library, dtype: str) -> None:
    """Both are max ⟨y' − y, θ⟩ over C, here from the support function."""
    y, theta = draw(domain, dtype)
    support = {
        Simplex: lambda t: np.max(t, axis=-1),
        Box: lambda t: np.sum(np.maximum(t, 0), axis=-1),
        L1Ball: lambda t: np.max(np.abs(t), axis=-1),
        L2Ball: lambda t: np.linalg.norm(t, axis=-1),
    }[type(domain)](theta)
    arrays = xp.asarray(y, dtype), xp.asarray(theta, dtype)
    values = [
        kind(Indicator(domain)).value(*arrays) for kind in (fp.FenchelYoungLoss, fp.FitzpatrickLoss)
    ]
    np.testing.assert_array_equal(to_numpy(values[0]), to_numpy(values[1]))
    expected = support - np.sum(y * theta, axis=-1)
    size = np.abs(support) + np.sum(np.abs(y * theta), axis=-1)
    rounding = 8 * np.finfo(dtype).eps * size + 100 * np.finfo(np.float64).eps * size
    assert_close(values[0], expected, rtol=0, atol=rounding)


@pytest.mark.parametrize("prefix", ["", "fitzpatrick_"])
def test_two_classes_of_the_logistic_loss_are_one_sigmoid(
    prefix: str, xp: Library, dtype: str
) -> None:
    """logistic((1 − p, p), (0, θ)) = sigmoid(p, θ), values, maximisers and curvature."""
    rng = np.random.default_rng(8)
    p = rng.choice([0.0, 0.25, 0.5, 0.875, 1.0], size=(N, 1))
    theta = (10 * rng.normal(size=(N, 1))).astype(dtype).astype(np.float64)
    two = [xp.asarray(x, dtype) for x in (np.hstack([1 - p, p]), np.hstack([0 * theta, theta]))]
    one = [xp.asarray(x, dtype) for x in (p, theta)]
    logistic, sigmoid = fp.get_loss(prefix + "logistic"), fp.get_loss(prefix + "sigmoid")
    assert_promised(sigmoid.value(*one), logistic.value(*two), p, dtype, factor=2)
    assert_promised(
        sigmoid.y_star(*one), to_numpy(logistic.y_star(*two))[:, 1:], p, dtype, factor=2
    )
    v = np.hstack([np.zeros((N, 1)), np.ones((N, 1))])
    curvature = logistic.hessian_product(*two, xp.asarray(v, dtype))
    assert_promised(
        sigmoid.hessian_product(*one, xp.asarray(v[:, 1:], dtype)),
        to_numpy(curvature)[:, 1:],
        p,
        dtype,
        factor=2,
    )


def test_hard_labels_of_the_fitzpatrick_sigmoid_loss() -> None:
    """ω(−θ − 1) at y = 1 and ω(θ − 1) at y = 0, summed over labels."""
    theta = np.random.default_rng(1).normal(size=(N, K)) * 20
    y = (np.arange(N * K).reshape(N, K) % 2).astype(float)
    expected = np.sum(wrightomega(np.where(y == 1, -theta, theta) - 1), axis=-1)
    value = fp.get_loss("fitzpatrick_sigmoid").value(y, theta)
    assert_close(value, expected, rtol=1e-13, atol=0)


PAIRS = [fp.FenchelYoungLoss, fp.FitzpatrickLoss]


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize(
    ("alpha", "limit"),
    [(1, Negentropy()), (1.0, Negentropy()), (2, SquaredNorm(Simplex()))],
    ids=repr,
)
def test_tsallis_meets_its_ends(kind, alpha, limit, xp: Library, dtype: str) -> None:
    """α = 1 is the negentropy and α = 2 half the squared norm."""
    y, theta = (xp.asarray(x, dtype) for x in draw(Simplex(), dtype, scale=100.0))
    ours, theirs = kind(Tsallis(alpha)), kind(limit)
    assert_promised(ours.value(y, theta), theirs.value(y, theta), y, dtype)
    assert_promised(ours.y_star(y, theta), theirs.y_star(y, theta), y, dtype)


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("distance", [1e-2, 1e-4])
def test_tsallis_is_continuous_at_its_ends(kind, distance: float) -> None:
    """The losses approach those of the ends in proportion to the distance from them."""
    rng = np.random.default_rng(2)
    y, theta = rng.dirichlet(np.ones(K), N), rng.normal(size=(N, K))
    for alpha, limit in ((1 + distance, Negentropy()), (2 - distance, SquaredNorm(Simplex()))):
        near, end = kind(Tsallis(alpha)).value(y, theta), kind(limit).value(y, theta)
        gap = np.max(np.abs(near - end) / (end + 0.1))
        assert 0 < gap < 3 * distance


@pytest.mark.parametrize("alpha", [1.0, 1.2, 1.5, 1.7, 2.0])
def test_tsallis_value_conjugate_and_link(alpha: float) -> None:
    """Ω from its formula, Ω* by brute force over two classes, the link as its argmax."""
    grid = np.linspace(0, 1, 200_001)
    points = np.stack([grid, 1 - grid], axis=-1)
    omega = Tsallis(alpha)
    if alpha == 1:
        expected = np.sum(xlogy(points, points), axis=-1)
    else:
        expected = (np.sum(points**alpha, axis=-1) - 1) / (alpha * (alpha - 1))
    values = omega.value(points)
    assert_close(values, expected, rtol=1e-12, atol=1e-14)
    for theta in ([0.3, -0.2], [1.0, 0.0], [4.0, 0.0]):
        objective = points @ np.asarray(theta) - values
        assert_close(omega.conjugate(np.asarray(theta)), np.max(objective), rtol=0, atol=1e-10)
        assert_close(omega.link(np.asarray(theta)), points[np.argmax(objective)], rtol=0, atol=1e-4)


def slopes(omega, p: np.ndarray) -> np.ndarray:
    """A subgradient of Ω at the interior points p, written out here."""
    if isinstance(omega, Negentropy):
        return np.log(p) + isinstance(omega.domain, Simplex)
    if isinstance(omega, Bernoulli):
        return np.log(p / (1 - p))
    if isinstance(omega, Tsallis):
        return p ** (omega.alpha - 1) / (omega.alpha - 1)
    return p


@pytest.mark.parametrize(
    "omega",
    [Negentropy(), SquaredNorm(Simplex()), Tsallis(1.5), Tsallis(1.2), Tsallis(1.8)],
    ids=repr,
)
@pytest.mark.parametrize("y", [0.0, 1e-3, 0.3, 1.0])
@pytest.mark.parametrize("score", [-3.0, -0.4, 0.0, 0.7, 5.0])
def test_fitzpatrick_function_is_the_supremum(omega, y: float, score: float) -> None:
    """F = sup ⟨y − p, θ'⟩ + ⟨p, θ⟩ over θ' ∈ ∂Ω(p), by brute force over two classes."""
    # dense near both ends, where the entropies are steep
    half = np.concatenate([np.logspace(-12, -2, 20_000), np.linspace(0.01, 0.5, 100_000)])
    p = np.concatenate([half, 1 - half])
    points = np.stack([p, 1 - p], axis=-1)
    target, theta = np.asarray([y, 1 - y]), np.asarray([score, 0.0])
    brute = np.max(np.sum((target - points) * slopes(omega, points) + points * theta, axis=-1))
    assert_close(fp.fitzpatrick_function(omega, target, theta), brute, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("omega", [Bernoulli(), SquaredNorm(Box())], ids=repr)
@pytest.mark.parametrize("y", [0.0, 1e-3, 0.3, 1.0])
@pytest.mark.parametrize("score", [-3.0, -0.4, 0.0, 0.7, 5.0])
def test_fitzpatrick_function_is_the_supremum_on_the_cube(omega, y: float, score: float) -> None:
    half = np.concatenate([np.logspace(-12, -2, 20_000), np.linspace(0.01, 0.5, 100_000)])
    p = np.concatenate([half, 1 - half])
    brute = np.max((y - p) * slopes(omega, p) + p * score)
    value = fp.fitzpatrick_function(omega, np.asarray([y]), np.asarray([score]))
    assert_close(value, brute, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("y", [0.0, 1e-3, 0.3, 4.0])
@pytest.mark.parametrize("score", [-3.0, 0.0, 1.5, 3.0])
def test_fitzpatrick_function_is_the_supremum_for_counts(y: float, score: float) -> None:
    omega = Negentropy(fp.sets.Orthant())
    p = np.concatenate([np.logspace(-12, -2, 20_000), np.linspace(0.01, 40, 400_000)])
    brute = np.max((y - p) * np.log(p) + p * score)
    value = fp.fitzpatrick_function(omega, np.asarray([y]), np.asarray([score]))
    assert_close(value, brute, rtol=1e-9, atol=1e-7)
