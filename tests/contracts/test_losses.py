"""The paper's properties of every loss, at every tightness, on every array library."""

import numpy as np

import fitzpatrick as fp
from tests.contracts.cases import CASES, LABEL_CASES, ORDER_CASES
from tests.contracts.draws import ROWS, Batch, every_batch
from tests.helpers import (
    FLOOR_IN_EPS,
    assert_at_most,
    assert_close,
    assert_same_kind,
    eps,
    to_numpy,
)

ALL = [*CASES, *ORDER_CASES]
# scores at which differences of the loss are not lost in its rounding
MODERATE = (0.1, 1.0, 10.0)


def inner(x, theta) -> np.ndarray:
    return np.sum(to_numpy(x) * to_numpy(theta), axis=-1)


def largest(x) -> np.ndarray:
    return np.max(np.abs(to_numpy(x)), axis=-1)


@every_batch(ALL)
def test_values_vanish_at_the_link_and_only_there(batch: Batch) -> None:
    """0 <= L_c, and 0 where y is the link of θ, which is one link for every tightness."""
    y, theta = batch.array(batch.draw_targets()), batch.array(batch.draw_scores())
    link = batch.losses[0].link(theta)
    assert_same_kind(link, theta)
    on_link = batch.array(to_numpy(link))
    gap = np.abs(to_numpy(y) - to_numpy(link)) > 1e-2 * (1 + np.abs(to_numpy(link)))
    away = np.any(gap, axis=-1) & batch.omega.has_curvature
    rounding = batch.slack(largest(link)) * (1 + largest(theta))
    for loss in batch.losses:
        value = loss.value(y, theta)
        assert_same_kind(value, theta)
        assert value.shape == theta.shape[:1]
        assert_at_most(0.0, value, slack=0.0)
        # without curvature every maximizer is a link, see the perceptron's closed form;
        # with it the loss is about gap² / (1 + c), and c <= 2
        assert_at_most(1e-6, to_numpy(value)[away], slack=0.0)
        np.testing.assert_array_equal(to_numpy(loss.link(theta)), to_numpy(link))
        assert_at_most(loss.value(on_link, theta), 0.0, rounding)


@every_batch(ALL)
def test_maximizer_is_in_the_domain_and_gives_the_gradient(batch: Batch) -> None:
    """∇L = y* − y with y* in C; on the simplex Σ y* = 1. All public methods agree on it."""
    y, theta = batch.array(batch.draw_targets()), batch.array(batch.draw_scores())
    for loss in batch.losses:
        value, gradient = loss.value_and_gradient(y, theta)
        y_star = loss.y_star(y, theta)
        assert_same_kind(y_star, theta)
        assert_same_kind(gradient, theta)
        assert np.all(to_numpy(batch.domain.contains(y_star)))
        unit = batch.slack(largest(y_star))[:, None]
        for found in (gradient, loss.gradient(y, theta)):
            assert_close(found, to_numpy(y_star) - to_numpy(y), rtol=0, atol=unit)
        assert_close(loss(y, theta), value, rtol=0, atol=batch.slack(value))
        if batch.domain.has_labels:
            # every entry is right to a few spacings of 1
            limit = FLOOR_IN_EPS * batch.case.slack * batch.k * eps(batch.dtype)
            assert_close(np.sum(to_numpy(y_star), axis=-1), 1.0, rtol=0, atol=limit)
    link = batch.losses[0].link(theta)
    unit = batch.slack(largest(link))[:, None]
    assert_close(batch.losses[0].y_star(y, theta), link, rtol=0, atol=unit)


@every_batch(ALL)
def test_fitzpatrick_function_lies_in_its_sandwich(batch: Batch) -> None:
    """⟨y, θ⟩ <= F(y, θ) <= Ω(y) + Ω*(θ), whose difference is the Fenchel-Young loss."""
    omega = batch.omega
    y, theta = batch.array(batch.draw_targets()), batch.array(batch.draw_scores())
    middle = fp.fitzpatrick_function(omega, y, theta)
    value, conjugate = to_numpy(omega.value(y)), to_numpy(omega.conjugate(theta))
    product = inner(y, theta)
    sizes = np.sum(np.abs(to_numpy(y) * to_numpy(theta)), axis=-1)
    slack = batch.slack(value, conjugate, sizes, largest(theta))
    assert_at_most(product, middle, slack)
    assert_at_most(middle, value + conjugate, slack)
    fenchel_young, fitzpatrick = (
        kind(omega).value(y, theta) for kind in (fp.FenchelYoungLoss, fp.FitzpatrickLoss)
    )
    assert_close(fenchel_young, value + conjugate - product, rtol=0, atol=slack)
    assert_close(fitzpatrick, to_numpy(middle) - product, rtol=0, atol=slack)


@every_batch(ALL)
def test_convex_in_each_argument(batch: Batch) -> None:
    """L at a midpoint of scores is at most the mean of L; for c <= 1 also of targets."""
    y, z = batch.draw_targets(), batch.draw_targets()
    theta, eta = batch.draw_scores(), batch.draw_scores()
    sizes = [largest(x) for x in (theta, eta, y, z)]

    for loss in batch.losses:

        def value(target, score, loss=loss) -> np.ndarray:
            return to_numpy(loss.value(batch.array(target), batch.array(score)))

        ends = [(value(y, eta), value(y, theta / 2 + eta / 2))]
        if loss.tightness <= 1:
            ends.append((value(z, theta), value(y / 2 + z / 2, theta)))
        first = value(y, theta)
        for last, middle in ends:
            # a midpoint is rounded, and L has slopes of the size of its arguments
            mean = first / 2 + last / 2
            assert_at_most(middle, mean, batch.slack(mean, *sizes))


@every_batch(ALL, scales=MODERATE)
def test_gradient_agrees_with_differences(batch: Batch) -> None:
    """A difference of a convex function lies between its slopes at the two ends, kinks included."""
    step = eps(batch.dtype) ** (1 / 3)
    y, theta = batch.array(batch.draw_targets()), batch.draw_scores()
    v = batch.draw_direction()
    left, right = batch.array(theta - step * v), batch.array(theta + step * v)
    moved = to_numpy(right) - to_numpy(left)
    for loss in batch.losses:
        value_left, value_right = (to_numpy(loss.value(y, end)) for end in (left, right))
        slope_left, slope_right = (loss.gradient(y, end) for end in (left, right))
        rise = value_right - value_left
        # exact up to the rounding of two values and of two gradients
        rounding = batch.slack(value_left, step * largest(slope_left) * largest(v))
        assert_at_most(inner(slope_left, moved), rise, rounding)
        assert_at_most(rise, inner(slope_right, moved), rounding)


@every_batch(ALL, scales=MODERATE)
def test_hessian_product_agrees_with_differences(batch: Batch) -> None:
    """H v against the change of the gradient, allowing for the change of H v on the way.

    At a kink, where H jumps, that allowance is as large as the jump; elsewhere it is small.
    """
    step = eps(batch.dtype) ** (1 / 3)
    y, theta = batch.array(batch.draw_targets()), batch.draw_scores()
    v = batch.draw_direction()
    left, right = batch.array(theta - step * v), batch.array(theta + step * v)
    moved = batch.array(to_numpy(right) - to_numpy(left))
    for loss in batch.losses:
        ends = left, right
        gradient_left, gradient_right = (to_numpy(loss.gradient(y, end)) for end in ends)
        change = gradient_right - gradient_left
        product = loss.hessian_product(y, batch.array(theta), moved)
        assert_same_kind(product, moved)
        middle = to_numpy(product)
        if batch.case.differenced:
            # the kink that counts is one within reach of the difference that H v is: in units
            # of the scores (1 + c) ε^⅓ times the size of the point, along v
            size = 1 + largest(theta) + largest(y)
            far = 6 * step * (size / np.linalg.norm(v, axis=-1))[:, None] * v
            ends = batch.array(theta - far), batch.array(theta + far)
        products = (to_numpy(loss.hessian_product(y, end, moved)) for end in ends)
        allowance = sum(np.abs(product - middle) for product in products)
        rounding = batch.slack(largest(gradient_right) + largest(y))[:, None]
        # over a polytope the oracle jumps from vertex to vertex, with H = 0 on both sides
        jump = np.any(np.abs(change) > 0.1, axis=-1) & (not batch.omega.has_curvature)
        if batch.omega.has_kinks:
            # between two kinks H may be what it is at neither end
            at_zero = [to_numpy(loss.y_star(y, end)) == 0 for end in ends]
            jump |= np.sum(at_zero[0] != at_zero[1], axis=-1) > 1
        assert_close(middle[~jump], change[~jump], rtol=0, atol=(allowance + rounding)[~jump])


@every_batch(ALL)
def test_hessian_is_symmetric_and_positive(batch: Batch) -> None:
    """⟨u, H v⟩ = ⟨v, H u⟩ and ⟨v, H v⟩ >= 0; on the simplex H 1 = 0."""
    y, theta = batch.array(batch.draw_targets()), batch.array(batch.draw_scores())
    u, v = batch.array(batch.draw_direction()), batch.array(batch.draw_direction())
    ones = batch.array(np.ones((ROWS, batch.k)))
    for loss in batch.losses:
        hu, hv = (to_numpy(loss.hessian_product(y, theta, w)) for w in (u, v))
        size = largest(hu) * largest(v) + largest(hv) * largest(u)
        slack = batch.slack(batch.k * size)
        if batch.domain.has_labels:
            # d ⊙ (v − ⟨d, v⟩/⟨d, 1⟩) cancels where one d is all there is, and d <= 1
            span = np.maximum(largest(u), largest(v))
            slack = slack + FLOOR_IN_EPS * eps(batch.dtype) * batch.k * span**2
        if not batch.case.differenced:  # a difference across a kink belongs to no matrix
            assert_close(inner(u, hv), inner(v, hu), rtol=0, atol=slack)
        assert_at_most(0.0, inner(v, hv), slack)
        if batch.domain.has_labels:
            # ⟨d, 1⟩ / ⟨d, 1⟩ is 1 up to the rounding of two sums of k terms, and d <= 1
            rounding = (batch.k + 4) * eps(batch.dtype)
            assert_close(loss.hessian_product(y, theta, ones), 0.0, rtol=0, atol=rounding)
            assert_close(np.sum(hv, axis=-1), 0.0, rtol=0, atol=slack)


@every_batch([case for case in CASES if case.sample.is_coupled or case.sample.is_entrywise])
@np.errstate(all="ignore")  # as the public edge does
def test_slope_makes_the_hessian(batch: Batch) -> None:
    """H = diag(d), less ddᵀ/⟨d, 1⟩ where the entries of a row are coupled; d >= 0."""
    y, theta = batch.array(batch.draw_targets()), batch.array(batch.draw_scores())
    v = batch.draw_direction()
    for loss in batch.losses:
        solution = loss.solve(y, theta)
        slope = solution.slope()
        d, y_star = to_numpy(slope), solution.y_star
        stated = to_numpy(batch.omega.slope(y_star, y, loss.tightness))
        assert_same_kind(slope, theta)
        assert_at_most(0.0, d, slack=0.0)
        # each factor of a formula for d is right to the promise, and there are a few
        assert_close(stated, d, rtol=0, atol=8 * batch.slack(largest(d))[:, None])
        product = d * v
        if batch.omega.is_coupled:
            total = np.sum(d, axis=-1, keepdims=True)
            mean = np.sum(product, axis=-1, keepdims=True) / np.where(total > 0, total, 1)
            product = d * (v - mean)
        terms = batch.slack(batch.k * largest(d) * largest(v))[:, None]
        found = solution.hessian_product(batch.array(v))
        assert_close(found, product, rtol=0, atol=terms)


@every_batch([case for case in ALL if case.symmetric])
def test_order_is_preserved_and_classes_may_be_permuted(batch: Batch) -> None:
    """A larger score (and a target that is no smaller) never gets a smaller probability."""
    y = batch.array(np.sort(batch.draw_targets(), axis=-1))
    theta = batch.array(np.sort(batch.draw_scores(), axis=-1))
    permutation = batch.rng.permutation(batch.k)
    permuted = [batch.array(to_numpy(x)[:, permutation]) for x in (y, theta)]
    # an oracle chooses the first among ties
    chooses = not batch.omega.has_curvature
    tied = (np.diff(to_numpy(theta)) == 0) & chooses
    for loss in batch.losses:
        y_star, value = to_numpy(loss.y_star(y, theta)), to_numpy(loss.value(y, theta))
        slack = batch.slack(largest(y_star))[:, None]
        assert_at_most(np.where(tied, 0, -np.diff(y_star)), 0.0, slack)
        rounding = batch.slack(value)
        # ⟨y' − y, θ⟩ as it is: most sets know no other way, and y is rounded
        if not batch.case.has_faces or (chooses and not batch.domain.has_labels):
            rounding = rounding + batch.k * eps(batch.dtype) * largest(theta)
        assert_close(loss.value(*permuted), value, rtol=0, atol=rounding)
        if not chooses:
            assert_close(loss.y_star(*permuted), y_star[:, permutation], rtol=0, atol=slack)


@every_batch(LABEL_CASES, scales=(1.0,))
def test_a_common_shift_changes_nothing_on_the_simplex(batch: Batch) -> None:
    """Scores on a grid are shifted without rounding, and so nothing else may change either.

    Up to the promise: vectorized functions depend on where an array lies in memory. A formula
    that does not take the shift off at once would lose 16 bits to it, far more than that.
    """
    y = batch.array(batch.draw_targets())
    # 2^4 with 6 bits behind the point, shifted by up to 2^16: 22 bits, fewer than float32 has
    theta = np.round(batch.rng.normal(size=(ROWS, batch.k)) * 2**8) / 2**6
    shifted = batch.array(theta + batch.rng.integers(-(2**16), 2**16, (ROWS, 1)))
    theta = batch.array(theta)
    v = batch.array(batch.draw_direction())
    for loss in batch.losses:
        value, y_star = to_numpy(loss.value(y, theta)), to_numpy(loss.y_star(y, theta))
        assert_close(loss.value(y, shifted), value, rtol=0, atol=batch.slack(value))
        unit = batch.slack(largest(y_star))[:, None]
        assert_close(loss.y_star(y, shifted), y_star, rtol=0, atol=unit)
        terms = unit * batch.k * largest(v)[:, None]
        product = loss.hessian_product(y, theta, v)
        assert_close(loss.hessian_product(y, shifted, v), product, rtol=0, atol=terms)
