"""Losses beyond the stored points of tests/parity that are known in closed form."""

import numpy as np
import pytest
from scipy.special import xlogy

import fitzpatrick as fp
from fitzpatrick.regularizers import (
    Negentropy,
    Quadratic,
    SquaredNorm,
    Tsallis,
)
from fitzpatrick.sets import Simplex
from tests.contracts.cases import TIGHTNESSES
from tests.contracts.draws import ROWS
from tests.helpers import (
    Library,
    assert_close,
    assert_promised,
    scores,
    seeded,
    targets,
)

N, K = ROWS, 4
every_tightness = pytest.mark.parametrize("tightness", TIGHTNESSES)


def draw(
    domain, dtype: str = "float64", n: int = N, k: int = K, scale: float = 10.0, seed: int = 0
):
    rng = seeded(seed)
    return targets(domain, rng, n, k, dtype), scores(domain, rng, n, k, dtype, scale)


@every_tightness
def test_quadratic_losses_are_mahalanobis_distances(tightness: float) -> None:
    rng = seeded(0)
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
    rng = seeded(2)
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
