"""Identities between the losses, the divergences, Ω_y and the lower bound, for every Ω."""

import numpy as np
import pytest

import fitzpatrick as fp
from fitzpatrick.divergences import TargetDependent, bregman, fitzpatrick, lower_bound
from fitzpatrick.regularizers import Bernoulli, Indicator, Negentropy, SquaredNorm, Tsallis
from fitzpatrick.sets import Birkhoff, Box, L1Ball, L2Ball, Orthant, Simplex
from tests.contracts.cases import Corner
from tests.contracts.draws import Batch, every_batch
from tests.helpers import TWO_WAYS, Library, assert_at_most, assert_close, to_numpy


@every_batch()
def test_losses_are_the_fenchel_young_losses_of_omega_y(batch: Batch) -> None:
    """L_c[Ω](y, θ) = L_FY[Ω_y](y, θ) with one maximizer; away from its target Ω_y sees more."""
    y, theta = batch.array(batch.draw_targets()), batch.array(batch.draw_scores())
    z, v = batch.array(batch.draw_targets()), batch.array(batch.draw_direction())
    size = np.max(np.abs(to_numpy(theta)), axis=-1)
    product = np.sum(to_numpy(z) * to_numpy(theta), axis=-1)
    sizes = np.sum(np.abs(to_numpy(z) * to_numpy(theta)), axis=-1)
    for loss in batch.losses:
        omega_y = TargetDependent(batch.omega, y, loss.tightness)
        same = fp.FenchelYoungLoss(omega_y)
        value, y_star = to_numpy(loss.value(y, theta)), to_numpy(loss.y_star(y, theta))
        assert_close(same.value(y, theta), value, rtol=0, atol=batch.slack(value))
        unit = batch.slack(np.max(np.abs(y_star), axis=-1))[:, None]
        assert_close(same.y_star(y, theta), y_star, rtol=0, atol=unit)
        assert_close(same.link(theta), y_star, rtol=0, atol=unit)
        change = to_numpy(loss.hessian_product(y, theta, v))
        atol = batch.slack(np.max(np.abs(change)), np.max(np.abs(to_numpy(v))))
        assert_close(same.hessian_product(y, theta, v), change, rtol=0, atol=atol)

        # the definition, at a third point: Ω_y(z) + Ω_y*(θ) − ⟨z, θ⟩ >= 0
        own, conjugate = to_numpy(omega_y.value(z)), to_numpy(omega_y.conjugate(theta))
        other = same.value(z, theta)
        slack = batch.slack(own, conjugate, sizes, value, size)
        assert_close(other, own + conjugate - product, rtol=0, atol=slack)
        assert_at_most(0.0, other, slack)


@every_batch(scales=(1e-3, 1.0, 10.0))
def test_lower_bound(batch: Batch) -> None:
    """0 <= ⟨y − y*, ∇²Ψ(y*)(y − y*)⟩ <= L_F, with equality where only Σ y = 1 is active."""
    omega = batch.omega
    y, theta = batch.array(batch.draw_targets()), batch.array(batch.draw_scores())
    loss = fp.FitzpatrickLoss(omega)
    value, y_star = to_numpy(loss.value(y, theta)), to_numpy(loss.y_star(y, theta))
    bound = to_numpy(lower_bound(omega, y, theta))
    # y* may underflow where y is positive, and the bound with it
    tiny = np.sqrt(np.finfo(batch.dtype).tiny)
    usable = ~np.any((y_star < tiny) & (to_numpy(y) > 0), axis=-1)
    slack = batch.slack(value)
    assert_at_most(0.0, bound[usable], slack=0.0)
    assert_at_most(bound[usable], value[usable], slack[usable])
    if omega.has_kinks:
        return
    # without kinks y* is inside. 1 − y* is rounded where y* is read off as one number.
    p = to_numpy(y)
    usable &= np.all((y_star < 0.99) | (p == y_star) | (not omega.is_entrywise), axis=-1)
    # an error of y* counts 2 |1 − y/y*| times in (y − y*)²/y*, and y/y* = ω is at most the
    # spread of the scores: of the order of 100 here
    assert_close(bound[usable], value[usable], rtol=0, atol=100 * slack[usable])


def test_the_lower_bound_beside_the_largest_numbers():
    """(y − y*)² overflows in single precision, and its share of y* does not."""
    y, theta = np.array([1e20, 1.0], np.float32), np.array([46.5, 0.5], np.float32)
    omega = Negentropy(Orthant())
    expected = lower_bound(omega, y.astype(float), theta.astype(float))
    # e^θ is off by half a spacing of θ, and y − y* by four times that
    assert lower_bound(omega, y, theta) == pytest.approx(expected, rel=4 * 46.5 * 2**-23)


@every_batch(scales=(1.0,))
def test_divergences_are_ordered(batch: Batch) -> None:
    """0 <= D_F <= D_Ω, 0 at z = y on the boundary as well, and the supremum above the infimum."""
    omega = batch.omega
    y, z = batch.array(batch.draw_targets()), batch.array(batch.draw_targets())
    large, small = to_numpy(bregman(omega, y, z)), to_numpy(fitzpatrick(omega, y, z))
    assert_at_most(0.0, small, slack=0.0)
    assert_at_most(0.0, large, batch.slack(np.ones_like(large)))
    assert_at_most(small, large, batch.slack(np.where(np.isfinite(large), large, 1)))
    sizes = np.max(np.abs(to_numpy(z)), axis=-1)
    for divergence in (bregman, fitzpatrick):
        assert_close(divergence(omega, z, z), 0.0, rtol=0, atol=batch.slack(sizes))
    for c in (loss.tightness for loss in batch.losses):
        other = to_numpy(fitzpatrick(omega, y, z, tightness=c))
        at_end = {0.0: large, 1.0: small}.get(c)
        if at_end is not None:
            finite = np.isfinite(at_end)
            assert_close(other[finite], at_end[finite], rtol=0, atol=batch.slack(at_end)[finite])
        assert_at_most(0.0, other, slack=0.0)
        assert_at_most(other, large, batch.slack(np.where(np.isfinite(large), large, 1)))
    if batch.case.has_faces:
        upper = to_numpy(fitzpatrick(omega, y, z, bound="sup"))
        assert_at_most(small, upper, batch.slack(small))
        finite = np.isfinite(upper)
        assert_close(upper[finite], small[finite], rtol=0, atol=batch.slack(small)[finite])
        at_z = fitzpatrick(omega, z, z, bound="sup")
        assert_close(at_z, 0.0, rtol=0, atol=batch.slack(sizes))


INF = np.inf
BOUNDARY = [
    # omega, y, z, D_Ω, D_F with inf, D_F with sup
    (Negentropy(), [0.5, 0.5], [1.0, 0.0], INF, INF, INF),
    (Negentropy(), [1.0, 0.0], [0.5, 0.5], np.log(2), None, None),
    (Negentropy(), [1.0, 0.0], [1.0, 0.0], 0.0, 0.0, 0.0),
    (Negentropy(Orthant()), [0.0, 3.0], [2.0, 3.0], 2.0, None, None),
    (Negentropy(Orthant()), [2.0, 3.0], [0.0, 3.0], INF, INF, INF),
    (Negentropy(Orthant()), [0.0, 3.0], [0.0, 3.0], 0.0, 0.0, 0.0),
    (Bernoulli(), [0.5], [1.0], INF, INF, INF),
    (Bernoulli(), [0.5], [0.0], INF, INF, INF),
    (Bernoulli(), [0.0], [1.0], INF, INF, INF),
    (Bernoulli(), [1.0], [1.0], 0.0, 0.0, 0.0),
    (Bernoulli(), [0.0], [0.0], 0.0, 0.0, 0.0),
    (SquaredNorm(Simplex()), [0.5, 0.5], [1.0, 0.0], 0.25, 0.125, INF),
    (SquaredNorm(Box()), [0.5, 0.5], [0.5, 1.0], 0.125, 0.0625, INF),
    (SquaredNorm(Box()), [0.25, 1.0], [0.5, 1.0], 1 / 32, 1 / 64, 1 / 64),
    (Tsallis(1.5), [0.5, 0.5], [1.0, 0.0], None, None, INF),
    (Tsallis(1.5), [0.0, 1.0], [0.0, 1.0], 0.0, 0.0, 0.0),
    (Indicator(Simplex()), [0.0, 1.0], [1.0, 0.0], 0.0, 0.0, INF),
    (Indicator(L2Ball()), [0.0, 0.0], [1.0, 0.0], 0.0, 0.0, INF),
    (Indicator(L1Ball()), [0.0, 1.0], [0.5, 0.5], 0.0, 0.0, 0.0),
    (Indicator(L1Ball()), [0.0, -1.0], [0.5, 0.5], 0.0, 0.0, INF),
]


@pytest.mark.parametrize(("omega", "y", "z", "whole", "least", "most"), BOUNDARY, ids=repr)
def test_divergences_on_the_boundary(omega, y, z, whole, least, most, xp: Library) -> None:
    """Infinite where Ψ is infinitely steep and y leaves the face of z; finite within the face."""
    y, z = xp.asarray([y], "float64"), xp.asarray([z], "float64")
    results = (
        bregman(omega, y, z),
        fitzpatrick(omega, y, z),
        fitzpatrick(omega, y, z, bound="sup"),
    )
    for result, expected in zip(results, (whole, least, most), strict=True):
        if expected is None:
            assert 0 < float(result[0]) < INF
        else:
            assert_close(result, [expected], **TWO_WAYS)


def test_a_masked_class_without_a_target_counts_nothing() -> None:
    """⟨y, θ⟩ of the Fitzpatrick function, where 0 · ∞ is 0."""
    omega = fp.regularizers.Negentropy()
    y, theta = np.asarray([[0.0, 0.25, 0.75]]), np.asarray([[-np.inf, 0.0, 1.0]])
    function = fp.divergences.fitzpatrick_function
    np.testing.assert_allclose(
        function(omega, y, theta), function(omega, y[:, 1:], theta[:, 1:]), **TWO_WAYS
    )


HALF, PAIR = np.asarray([0.5, 0.5]), np.asarray([[0.5, 0.5], [1.0, 0.0]])
OMEGA_Y = TargetDependent(Negentropy(), HALF)
SIMPLEX = r"is not in the domain Simplex\(\): in row"
ERRORS = [
    (lambda: bregman(Negentropy(), PAIR, [[0.5, 0.5], [1.0, 1.0]]), f"^z {SIMPLEX} 1 "),
    (lambda: fitzpatrick(Negentropy(), 2 * PAIR, PAIR), f"^y {SIMPLEX} 0 "),
    (lambda: fitzpatrick(Negentropy(), PAIR, PAIR, bound="max"), "'inf' or 'sup', got 'max'"),
    (
        lambda: fitzpatrick(SquaredNorm(Corner()), HALF, HALF, bound="sup"),
        "Corner does not say whi",
    ),
    (lambda: fp.FitzpatrickLoss(OMEGA_Y).value(HALF, HALF), "loss of another tightness is not kn"),
    (lambda: fitzpatrick(OMEGA_Y, HALF, HALF), "gradient is not known"),
    (lambda: OMEGA_Y.potential_curvature(HALF, HALF), "Hessian is not known"),
    (lambda: bregman(OMEGA_Y, HALF, HALF), "Bregman divergence is not known"),
    (lambda: TargetDependent(Negentropy(), 2 * HALF), "y is not in the domain"),
    (lambda: TargetDependent(SquaredNorm(Birkhoff()), np.eye(2)), "matrices, and this takes vect"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_what_is_not_defined_is_refused(call, message: str) -> None:
    with pytest.raises((ValueError, TypeError, NotImplementedError), match=message):
        call()
