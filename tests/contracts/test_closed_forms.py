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
from tests.contracts.cases import TIGHTNESSES
from tests.contracts.draws import ROWS
from tests.helpers import (
    TWO_WAYS,
    Library,
    assert_close,
    assert_promised,
    scores,
    targets,
    to_numpy,
)

# the shape of the other contracts, which JAX has compiled its operations for
N, K = ROWS, 4
NUMPY = Library("numpy")
every_tightness = pytest.mark.parametrize("tightness", TIGHTNESSES)


def draw(
    domain, dtype: str = "float64", n: int = N, k: int = K, scale: float = 10.0, seed: int = 0
):
    rng = np.random.default_rng(seed)
    return targets(domain, rng, n, k, dtype), scores(domain, rng, n, k, dtype, scale)


def odds(d: np.ndarray, c: float) -> np.ndarray:
    """r = ω(d − c + log c)/c, which is e^d at c = 0: the odds against the label at y*."""
    return np.exp(d) if c == 0 else np.real(wrightomega(d - c + np.log(c))) / c


@every_tightness
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 1e4])
def test_hard_labels_give_the_wright_omega_function(
    tightness: float, xp: Library, dtype: str, scale: float
) -> None:
    """With r the odds, L_c = (1 − c) log(1 + r) + c r, y*_j = 1/(1 + r), e^{θ_i − λ} elsewhere.

    r depends on the scores through d = lse_{i≠j} θ − θ_j; at c = 1 it is the loss itself.
    """
    rng = np.random.default_rng(3)
    labels = rng.integers(K, size=N)
    theta = (scale * rng.normal(size=(N, K))).astype(dtype).astype(np.float64)
    is_label = np.eye(K, dtype=bool)[labels]
    others = np.where(is_label, -np.inf, theta)
    highest = np.max(others, axis=-1, keepdims=True)  # off at once: scores are up to 4e4
    others = others - highest
    d = logsumexp(others, axis=-1) - (theta - highest)[is_label]
    with np.errstate(over="ignore", invalid="ignore"):
        r = odds(d, tightness)
        # log(1 + r) = d + log(1 + e^−d) at c = 0, where r overflows
        log_odds = np.logaddexp(0, d) if tightness == 0 else np.log1p(r)
        expected = log_odds + (tightness * (r - log_odds) if tightness else 0)
        wrong = np.where(np.isinf(r), 1, r / (1 + r))
    share = np.exp(others - logsumexp(others, axis=-1, keepdims=True))
    y_star = np.where(is_label, (1 / (1 + r))[:, None], share * wrong[:, None])

    loss = fp.FitzpatrickLoss(Negentropy(), tightness)
    y, theta = xp.asarray(np.eye(K)[labels], dtype), xp.asarray(theta, dtype)
    for target in (y, xp.asarray(labels)):
        assert_promised(loss.value(target, theta), expected, y, dtype)
        assert_promised(loss.y_star(target, theta), y_star, y, dtype)


def test_logistic_is_the_relative_entropy_to_the_soft_argmax() -> None:
    """Written out: Σ y log y + lse θ − ⟨y, θ⟩."""
    y, theta = draw(Simplex())
    expected = np.sum(xlogy(y, y) - y * theta, axis=-1) + logsumexp(theta, axis=-1)
    assert_close(fp.get_loss("logistic").value(y, theta), expected, rtol=1e-13, atol=1e-13)


@every_tightness
def test_squared_losses(tightness: float, xp: Library, dtype: str) -> None:
    """½‖y − θ‖² divided by 1 + c, with y* = (θ + c y)/(1 + c)."""
    y, theta = draw(fp.sets.Reals(), dtype)
    arrays = xp.asarray(y, dtype), xp.asarray(theta, dtype)
    square = np.sum((y - theta) ** 2, axis=-1)
    y_star = (theta + tightness * y) / (1 + tightness)
    loss = fp.FitzpatrickLoss(SquaredNorm(), tightness)
    assert_promised(loss.value(*arrays), square / 2 / (1 + tightness), y, dtype)
    assert_promised(loss.y_star(*arrays), y_star, y, dtype)


@every_tightness
@pytest.mark.parametrize("domain", [Simplex(), Box(), L2Ball(), L1Ball()], ids=repr)
def test_sparsemap_losses_project_between_scores_and_target(tightness: float, domain) -> None:
    """y* = P_C((θ + c y)/(1 + c)), and the loss is the objective there, written out."""
    y, theta = draw(domain, scale=3.0)
    y_star = np.asarray(domain.project((theta + tightness * y) / (1 + tightness)))
    gap = y_star - y
    square = np.sum(y**2 - y_star**2 - tightness * gap**2, axis=-1)
    expected = square / 2 + np.sum(gap * theta, axis=-1)
    loss = fp.FitzpatrickLoss(SquaredNorm(domain), tightness)
    # a sum of k products of numbers up to 1 and up to the scores
    rounding = 8 * K * np.finfo(float).eps * (2 + np.max(np.abs(theta)))
    assert_close(loss.value(y, theta), expected, rtol=0, atol=rounding)
    assert_close(loss.y_star(y, theta), y_star, rtol=0, atol=rounding)


@every_tightness
def test_quadratic_losses_are_mahalanobis_distances(tightness: float) -> None:
    rng = np.random.default_rng(0)
    A = np.cov(rng.normal(size=(3, 9)))
    y, theta = rng.normal(size=(2, 50, 3))
    residual = theta @ np.linalg.inv(A) - y
    form = np.einsum("ni,ij,nj->n", residual, A, residual)
    loss = fp.FitzpatrickLoss(Quadratic(A), tightness)
    # both sides solve a system with A, whose condition number is of the order of 10
    assert_close(loss.value(y, theta), form / 2 / (1 + tightness), rtol=1e-11, atol=0)
    identity = fp.FitzpatrickLoss(Quadratic(np.eye(3)), tightness)
    squared = fp.FitzpatrickLoss(SquaredNorm(), tightness)
    assert_promised(identity.value(y, theta), squared.value(y, theta), y, "float64")


@pytest.mark.parametrize("domain", [Simplex(), Box(), L1Ball(), L2Ball()], ids=repr)
def test_a_perceptron_is_its_own_fitzpatrick_loss(domain, xp: Library, dtype: str) -> None:
    """All are max ⟨y' − y, θ⟩ over C, here from the support function."""
    y, theta = draw(domain, dtype)
    support = {
        Simplex: lambda t: np.max(t, axis=-1),
        Box: lambda t: np.sum(np.maximum(t, 0), axis=-1),
        L1Ball: lambda t: np.max(np.abs(t), axis=-1),
        L2Ball: lambda t: np.linalg.norm(t, axis=-1),
    }[type(domain)](theta)
    arrays = xp.asarray(y, dtype), xp.asarray(theta, dtype)
    values = [fp.FitzpatrickLoss(Indicator(domain), c).value(*arrays) for c in TIGHTNESSES]
    for value in values[1:]:
        np.testing.assert_array_equal(to_numpy(values[0]), to_numpy(value))
    expected = support - np.sum(y * theta, axis=-1)
    size = np.abs(support) + np.sum(np.abs(y * theta), axis=-1)
    # sums of K products, and this test's own in float64
    rounding = 2 * K * (np.finfo(dtype).eps + np.finfo(np.float64).eps) * size
    assert_close(values[0], expected, rtol=0, atol=rounding)


@every_tightness
def test_two_classes_of_the_logistic_loss_are_one_sigmoid(
    tightness: float, xp: Library, dtype: str
) -> None:
    """logistic((1 − p, p), (0, θ)) = sigmoid(p, θ), values, maximizers and curvature."""
    rng = np.random.default_rng(8)
    p = rng.choice([0.0, 0.25, 0.5, 0.875, 1.0], size=(N, 1))
    theta = (10 * rng.normal(size=(N, 1))).astype(dtype).astype(np.float64)
    two = [xp.asarray(x, dtype) for x in (np.hstack([1 - p, p]), np.hstack([0 * theta, theta]))]
    one = [xp.asarray(x, dtype) for x in (p, theta)]
    logistic, sigmoid = (
        fp.FitzpatrickLoss(omega, tightness) for omega in (Negentropy(), Bernoulli())
    )
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


@every_tightness
def test_hard_labels_of_the_sigmoid_losses(tightness: float) -> None:
    """Those of two classes: d = −θ at y = 1 and θ at y = 0, summed over labels."""
    theta = np.random.default_rng(1).normal(size=(N, K)) * 20
    y = (np.arange(N * K).reshape(N, K) % 2).astype(float)
    r = odds(np.where(y == 1, -theta, theta), tightness)
    expected = np.sum(np.log1p(r) + tightness * (r - np.log1p(r)), axis=-1)
    value = fp.FitzpatrickLoss(Bernoulli(), tightness).value(y, theta)
    assert_close(value, expected, **TWO_WAYS)


@every_tightness
@pytest.mark.parametrize(
    ("alpha", "limit"),
    [(1, Negentropy()), (1.0, Negentropy()), (2, SquaredNorm(Simplex()))],
    ids=repr,
)
def test_tsallis_meets_its_ends(tightness, alpha, limit, xp: Library, dtype: str) -> None:
    """α = 1 is the negentropy and α = 2 half the squared norm."""
    y, theta = (xp.asarray(x, dtype) for x in draw(Simplex(), dtype, scale=100.0))
    ours, theirs = (fp.FitzpatrickLoss(omega, tightness) for omega in (Tsallis(alpha), limit))
    assert_promised(ours.value(y, theta), theirs.value(y, theta), y, dtype)
    assert_promised(ours.y_star(y, theta), theirs.y_star(y, theta), y, dtype)


@every_tightness
@pytest.mark.parametrize("distance", [1e-2, 1e-4])
def test_tsallis_is_continuous_at_its_ends(tightness, distance: float) -> None:
    """The losses approach those of the ends in proportion to the distance from them."""
    rng = np.random.default_rng(2)
    y, theta = rng.dirichlet(np.ones(K), N), rng.normal(size=(N, K))
    for alpha, limit in ((1 + distance, Negentropy()), (2 - distance, SquaredNorm(Simplex()))):
        near, end = (
            fp.FitzpatrickLoss(omega, tightness).value(y, theta)
            for omega in (Tsallis(alpha), limit)
        )
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


def psi(omega, p: np.ndarray) -> np.ndarray:
    """ψ at interior points p, written out here."""
    if isinstance(omega, Negentropy):
        return p * np.log(p) - p * (not omega.is_coupled)
    if isinstance(omega, Bernoulli):
        return p * np.log(p) + (1 - p) * np.log(1 - p)
    if isinstance(omega, Tsallis):
        return (p**omega.alpha - p) / (omega.alpha * (omega.alpha - 1))
    return p * p / 2


def slopes(omega, p: np.ndarray) -> np.ndarray:
    """ψ' at interior points p, up to a constant on the simplex, written out here."""
    if isinstance(omega, Negentropy):
        return np.log(p) + omega.is_coupled
    if isinstance(omega, Bernoulli):
        return np.log(p / (1 - p))
    if isinstance(omega, Tsallis):
        return p ** (omega.alpha - 1) / (omega.alpha - 1)
    return p


# geometric, since the entropies are steep at the ends
_HALF = np.geomspace(1e-12, 0.5, 20_000)
UNIT = np.concatenate([_HALF, 1 - _HALF])
COUNTS = np.geomspace(1e-12, 40, 80_000)


def supremum(omega, y: np.ndarray, theta: np.ndarray, points: np.ndarray, c: float) -> float:
    """sup over p of Ω(y) − Ω(p) − c D(y, p) + ⟨p − y, θ⟩, by brute force, up to the grid."""
    inside = y > 0 if not isinstance(omega, Bernoulli) else (y > 0) & (y < 1)
    own = np.sum(psi(omega, np.where(inside, y, 0.5)) * inside)
    if not inside.all() and isinstance(omega, Tsallis | SquaredNorm):
        own = np.sum(psi(omega, y))
    fall = own - np.sum(psi(omega, points), axis=-1)
    divergence = fall - np.sum((y - points) * slopes(omega, points), axis=-1)
    return float(np.max(fall - c * divergence + np.sum((points - y) * theta, axis=-1)))


@every_tightness
@pytest.mark.parametrize(
    "omega",
    [
        Negentropy(),
        SquaredNorm(Simplex()),
        Tsallis(1.5),
        Tsallis(1.2),
        Tsallis(1.8),
        Bernoulli(),
        SquaredNorm(Box()),
        Negentropy(fp.sets.Orthant()),
    ],
    ids=repr,
)
def test_losses_are_suprema(tightness: float, omega) -> None:
    """The definition by brute force, over two classes, or over one number in [0, 1] or [0, ∞).

    A grid of step h misses a maximum by h²/8 times the curvature there. In log p that is about
    p + c y, below 3 on [0, 1], where h = 1.4e-3, and below 25 for counts, where h = 4e-4.
    """
    for y in (0.0, 1e-3, 0.3, 1.0):
        for score in (-3.0, 0.4, 3.0):
            if omega.is_coupled:
                points = np.stack([UNIT, 1 - UNIT], axis=-1)
                target, theta = np.asarray([y, 1 - y]), np.asarray([score, 0.0])
            else:
                points = UNIT[:, None] if omega.domain.bounds[1] == 1 else COUNTS[:, None]
                target, theta = np.asarray([y]), np.asarray([score])
            brute = supremum(omega, target, theta, points, tightness)
            value = fp.FitzpatrickLoss(omega, tightness).value(target, theta)
            assert_close(value, brute, rtol=0, atol=1e-6)
