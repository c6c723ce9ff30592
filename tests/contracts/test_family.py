"""The losses of one regularizer as a family: what the tightness c does to them.

L_c is the Fenchel-Young loss of Ω + c D_Ω(y, ·). It decreases in c and is convex in c, with the
slope −D_Ψ(y, y*_c); for c <= 1 it lies between (1 − c) L_FY and (1 − c) L_FY + c L_F.
"""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import xlogy

import fitzpatrick as fp
from fitzpatrick.regularizers import Tsallis
from fitzpatrick.sets import Simplex
from tests.contracts.cases import CASES, TIGHTNESSES
from tests.contracts.draws import Batch, every_batch
from tests.helpers import assert_at_most, assert_close, eps, seeded, targets, to_numpy


@every_batch()
def test_decreasing_and_convex_in_the_tightness(batch: Batch) -> None:
    """So between two tightnesses a loss lies below the chord, and outside of them above it."""
    y, theta = batch.array(batch.draw_targets()), batch.array(batch.draw_scores())
    losses = {c.tightness: to_numpy(c.value(y, theta)) for c in batch.losses}
    for looser, tighter in pairwise(losses):
        assert_at_most(losses[tighter], losses[looser], batch.slack(losses[looser]))
    ordered = list(losses)
    for left, middle, right in zip(ordered, ordered[1:], ordered[2:], strict=False):
        share = (middle - left) / (right - left)
        chord = (1 - share) * losses[left] + share * losses[right]
        # three numbers of at most the size of the first are rounded
        assert_at_most(losses[middle], chord, batch.slack(losses[left]))


@every_batch(scales=(0.1, 1.0))
def test_slope_in_the_tightness_is_minus_the_divergence(batch: Batch) -> None:
    """A difference of a convex function lies between its slopes at the two ends.

    Scores are small enough for y* to keep clear of the places where D_Ψ(y, ·) is steep: there
    the last bit of y* would decide.
    """
    step = eps(batch.dtype) ** (1 / 3)
    y, theta = batch.array(batch.draw_targets()), batch.array(batch.draw_scores())
    for c in TIGHTNESSES:
        if c + step > batch.omega.max_tightness:
            continue
        ends = []
        for tightness in (c, c + step):
            loss = fp.FitzpatrickLoss(batch.omega, tightness)
            divergence = fp.divergences.bregman(batch.omega, y, loss.y_star(y, theta))
            ends.append((to_numpy(loss.value(y, theta)), to_numpy(divergence)))
        (value_left, fall_left), (value_right, fall_right) = ends
        fall = value_left - value_right
        # exact up to the rounding of two values and of two divergences
        rounding = batch.slack(value_left, step * fall_left)
        assert_at_most(step * fall_right, fall, rounding)
        assert_at_most(fall, step * fall_left, rounding)


@every_batch([case for case in CASES if case.sample.has_curvature], scales=(0.1, 1.0))
@pytest.mark.parametrize("tightness", [1e-12, 1e-4])
def test_continuous_at_tightness_0(batch: Batch, tightness: float) -> None:
    """Convexity: 0 <= L_0 − L_c <= c D_Ψ(y, ŷ), however small c is."""
    y, theta = batch.array(batch.draw_targets()), batch.array(batch.draw_scores())
    whole = to_numpy(batch.losses[0].value(y, theta))
    near = to_numpy(fp.FitzpatrickLoss(batch.omega, tightness).value(y, theta))
    fall = to_numpy(fp.divergences.bregman(batch.omega, y, batch.losses[0].link(theta)))
    slack = batch.slack(whole)
    assert_at_most(near, whole, slack)
    assert_at_most(whole - near, tightness * fall, slack)


@pytest.mark.parametrize("alpha", [1.0, 1.2, 1.5, 1.7, 2.0])
def test_tsallis_values(alpha: float) -> None:
    """The constant of Ω, too, which the losses do not depend on."""
    y = targets(Simplex(), seeded(0), 40, 3, "float64")
    if alpha == 1:
        expected = np.sum(xlogy(y, y), axis=-1)
    else:
        expected = (np.sum(y**alpha, axis=-1) - 1) / (alpha * (alpha - 1))
    assert_close(Tsallis(alpha).value(y), expected, rtol=1e-12, atol=1e-14)
