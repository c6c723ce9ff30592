"""The losses of one regularizer as a family: what the tightness c does to them.

L_c is the Fenchel-Young loss of Ω + c D_Ω(y, ·). It decreases in c and is convex in c, with the
slope −D_Ψ(y, y*_c); for c <= 1 it lies between (1 − c) L_FY and (1 − c) L_FY + c L_F.
"""

from itertools import pairwise

import numpy as np
import pytest

import fitzpatrick as fp
from fitzpatrick.regularizers import Negentropy, SquaredNorm
from fitzpatrick.sets import Simplex
from tests.contracts.cases import CASES, TIGHTNESSES, Case
from tests.contracts.draws import Batch, check_all
from tests.helpers import Library, assert_at_most, eps, seeded, to_numpy

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


def test_beyond_tightness_1_a_loss_need_not_be_convex_in_the_target() -> None:
    """On segments of targets it is, up to rounding, for c <= 1, and clearly is not for c = 4."""
    rng = seeded(0)
    y, z = rng.dirichlet(np.full(3, 0.2), (2, 200))
    theta = 4 * rng.normal(size=(200, 3))
    for omega in (Negentropy(), SquaredNorm(Simplex())):
        excess = {}
        for c in (0.5, 1.0, 4.0):
            loss = fp.FitzpatrickLoss(omega, c)
            mean = loss.value(y, theta) / 2 + loss.value(z, theta) / 2
            excess[c] = np.max(loss.value(y / 2 + z / 2, theta) - mean)
        assert excess[0.5] < 1e-13
        assert excess[1.0] < 1e-13
        assert excess[4.0] > 1e-3


def test_losses_of_one_regularizer_and_tightness_are_equal() -> None:
    for case in CASES:
        omega = case.sample
        assert fp.FitzpatrickLoss(omega, tightness=0) == fp.FenchelYoungLoss(omega)
        assert hash(fp.FitzpatrickLoss(omega, tightness=0)) == hash(fp.FenchelYoungLoss(omega))
        assert fp.FitzpatrickLoss(omega, tightness=1) == fp.FitzpatrickLoss(omega)
        assert fp.FitzpatrickLoss(omega, tightness=0.5) != fp.FitzpatrickLoss(omega)


@pytest.mark.parametrize("tightness", [-0.1, np.inf, np.nan])
def test_a_tightness_is_finite_and_not_negative(tightness: float) -> None:
    with pytest.raises(ValueError, match="tightness"):
        fp.FitzpatrickLoss(Negentropy(), tightness=tightness)


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
