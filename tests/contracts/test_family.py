"""The losses of one regularizer as a family: what the tightness c does to them.

L_c is the Fenchel-Young loss of Ω + c D_Ω(y, ·). It decreases in c and is convex in c, with the
slope −D_Ψ(y, y*_c); for c <= 1 it lies between (1 − c) L_FY and (1 − c) L_FY + c L_F.
"""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import xlogy

import fitzpatrick as fp
from fitzpatrick.regularizers import Quadratic, Tsallis
from tests.contracts.cases import CASES, TIGHTNESSES, Case
from tests.contracts.draws import Batch, check_all
from tests.helpers import Library, assert_at_most, assert_close, eps, seeded, to_numpy

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def values(batch: Batch, y, theta) -> dict[float, np.ndarray]:
    """The loss of every tightness."""
    return {loss.tightness: to_numpy(batch.solve(loss, y, theta).value()) for loss in batch.losses}


@every_case
def test_decreasing_and_convex_in_the_tightness(case: Case, xp: Library, dtype: str) -> None:
    """So between two tightnesses a loss lies below the chord, and outside of them above it."""

    def check(batch: Batch) -> None:
        y, theta = batch.array(batch.draw_targets()), batch.array(batch.draw_scores())
        losses = values(batch, y, theta)
        for looser, tighter in pairwise(losses):
            assert_at_most(losses[tighter], losses[looser], batch.slack(losses[looser]))
        ordered = list(losses)
        for left, middle, right in zip(ordered, ordered[1:], ordered[2:], strict=False):
            share = (middle - left) / (right - left)
            chord = (1 - share) * losses[left] + share * losses[right]
            # three numbers of at most the size of the first are rounded
            assert_at_most(losses[middle], chord, batch.slack(losses[left]))

    check_all(case, xp, dtype, check)


@every_case
def test_slope_in_the_tightness_is_minus_the_divergence(
    case: Case, xp: Library, dtype: str
) -> None:
    """A difference of a convex function lies between its slopes at the two ends.

    Scores are small enough for y* to keep clear of the places where D_Ψ(y, ·) is steep: there
    the last bit of y* would decide.
    """
    step = eps(dtype) ** (1 / 3)

    def check(batch: Batch) -> None:
        y, theta = batch.array(batch.draw_targets()), batch.array(batch.draw_scores())
        for c in TIGHTNESSES:
            if c + step > batch.omega.max_tightness:
                continue
            ends = []
            for tightness in (c, c + step):
                solution = batch.solve(fp.FitzpatrickLoss(batch.omega, tightness), y, theta)
                divergence = to_numpy(fp.divergences.bregman(batch.omega, y, solution.y_star))
                ends.append((to_numpy(solution.value()), divergence))
            (value_left, fall_left), (value_right, fall_right) = ends
            fall = value_left - value_right
            # exact up to the rounding of two values and of two divergences
            rounding = batch.slack(value_left, step * fall_left)
            assert_at_most(step * fall_right, fall, rounding)
            assert_at_most(fall, step * fall_left, rounding)

    check_all(case, xp, dtype, check, scales=(0.1, 1.0))


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.sample.has_curvature], ids=lambda case: case.name
)
@pytest.mark.parametrize("tightness", [1e-12, 1e-4])
def test_continuous_at_tightness_0(case: Case, tightness: float) -> None:
    """Convexity: 0 <= L_0 − L_c <= c D_Ψ(y, ŷ), however small c is."""

    def check(batch: Batch) -> None:
        y, theta = batch.array(batch.draw_targets()), batch.array(batch.draw_scores())
        whole = to_numpy(batch.losses[0].value(y, theta))
        near = to_numpy(fp.FitzpatrickLoss(batch.omega, tightness).value(y, theta))
        fall = to_numpy(fp.divergences.bregman(batch.omega, y, batch.losses[0].link(theta)))
        slack = batch.slack(whole)
        assert_at_most(near, whole, slack)
        assert_at_most(whole - near, tightness * fall, slack)

    check_all(case, Library("numpy"), "float64", check, scales=(0.1, 1.0))


@pytest.mark.parametrize("tightness", TIGHTNESSES)
def test_quadratic_losses_are_mahalanobis_distances(tightness: float) -> None:
    rng = seeded(0)
    A = np.cov(rng.normal(size=(3, 9)))
    y, theta = rng.normal(size=(2, 50, 3))
    residual = theta @ np.linalg.inv(A) - y
    form = np.einsum("ni,ij,nj->n", residual, A, residual)
    loss = fp.FitzpatrickLoss(Quadratic(A), tightness)
    # both sides solve a system with A, whose condition number is of the order of 10
    assert_close(loss.value(y, theta), form / 2 / (1 + tightness), rtol=1e-11, atol=0)


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
