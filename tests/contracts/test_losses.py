"""The paper's properties of every loss, on every array library, in both precisions."""

import numpy as np
import pytest

import fitzpatrick as fp
from fitzpatrick.regularizers import Indicator
from fitzpatrick.sets import Simplex
from tests.contracts.cases import CASES, Case
from tests.contracts.draws import Batch, check_all
from tests.helpers import (
    Library,
    assert_at_most,
    assert_close,
    assert_same_kind,
    eps,
    to_numpy,
)

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
# scores at which differences of the loss are not lost in its rounding
MODERATE = (0.1, 1.0, 10.0)


def inner(x, theta) -> np.ndarray:
    return np.sum(to_numpy(x) * to_numpy(theta), axis=-1)


def largest(x) -> np.ndarray:
    return np.max(np.abs(to_numpy(x)), axis=-1)


@every_case
def test_values_are_ordered_and_vanish_at_the_link(case: Case, xp: Library, dtype: str) -> None:
    """0 <= L_F <= L_FY, both 0 where y is the link of θ and only there."""

    def check(batch: Batch) -> None:
        fenchel_young, fitzpatrick = batch.losses
        y, theta = batch.array(batch.draw_targets()), batch.array(batch.draw_scores())
        upper, lower = fenchel_young.value(y, theta), fitzpatrick.value(y, theta)
        for value in (upper, lower):
            assert_same_kind(value, theta)
            assert value.shape == theta.shape[:1]
            assert_at_most(0.0, value, slack=0.0)
        assert_at_most(lower, upper, batch.slack(upper))

        link = fenchel_young.link(theta)
        assert_same_kind(link, theta)
        on_link = batch.array(to_numpy(link))
        for loss in batch.losses:
            rounding = batch.slack(largest(link)) * (1 + largest(theta))
            assert_at_most(loss.value(on_link, theta), 0.0, rounding)
            if isinstance(loss.regularizer, Indicator):
                continue  # every maximiser is a link, see the perceptron below
            gap = np.abs(to_numpy(y) - to_numpy(link)) > 1e-2 * (1 + np.abs(to_numpy(link)))
            away = np.any(gap, axis=-1)
            assert_at_most(1e-6, to_numpy(loss.value(y, theta))[away], slack=0.0)

    check_all(case, xp, dtype, check)


@every_case
def test_maximiser_is_in_the_domain_and_gives_the_gradient(
    case: Case, xp: Library, dtype: str
) -> None:
    """∇L = y* − y with y* in C; on the simplex Σ y* = 1 within k eps."""

    def check(batch: Batch) -> None:
        y, theta = batch.array(batch.draw_targets()), batch.array(batch.draw_scores())
        for loss in batch.losses:
            y_star, gradient = loss.y_star(y, theta), loss.gradient(y, theta)
            assert_same_kind(y_star, theta)
            assert np.all(to_numpy(batch.domain.contains(y_star)))
            difference = to_numpy(y_star) - to_numpy(y)
            unit = batch.slack(largest(y_star))[:, None]
            assert_close(gradient, difference, rtol=0, atol=unit)
            value, same_gradient = loss.value_and_gradient(y, theta)
            assert_close(loss(y, theta), value, rtol=0, atol=batch.slack(value))
            assert_close(same_gradient, gradient, rtol=0, atol=unit)
            if isinstance(batch.domain, Simplex):
                total = np.sum(to_numpy(y_star), axis=-1)
                limit = case.slack * max(batch.k, 2) * eps(dtype)
                assert_close(total, 1.0, rtol=0, atol=limit)
        link = batch.losses[0].link(theta)
        unit = batch.slack(largest(link))[:, None]
        assert_close(batch.losses[0].y_star(y, theta), link, rtol=0, atol=unit)

    check_all(case, xp, dtype, check)


@every_case
def test_fitzpatrick_function_lies_in_its_sandwich(case: Case, xp: Library, dtype: str) -> None:
    """⟨y, θ⟩ <= F(y, θ) <= Ω(y) + Ω*(θ), whose difference is the Fenchel-Young loss."""

    def check(batch: Batch) -> None:
        fenchel_young, fitzpatrick = batch.losses
        omega = fenchel_young.regularizer
        y, theta = batch.array(batch.draw_targets()), batch.array(batch.draw_scores())
        middle = fp.fitzpatrick_function(omega, y, theta)
        value, conjugate = to_numpy(omega.value(y)), to_numpy(omega.conjugate(theta))
        product = inner(y, theta)
        sizes = np.sum(np.abs(to_numpy(y) * to_numpy(theta)), axis=-1)
        slack = batch.slack(value, conjugate, sizes, largest(theta))
        assert_at_most(product, middle, slack)
        assert_at_most(middle, value + conjugate, slack)
        assert_close(fenchel_young.value(y, theta), value + conjugate - product, rtol=0, atol=slack)
        assert_close(fitzpatrick.value(y, theta), to_numpy(middle) - product, rtol=0, atol=slack)

    check_all(case, xp, dtype, check)


@every_case
def test_convex_in_each_argument(case: Case, xp: Library, dtype: str) -> None:
    """L at a midpoint, of targets or of scores, is at most the mean of L."""

    def check(batch: Batch) -> None:
        y, z = batch.draw_targets(), batch.draw_targets()
        theta, eta = batch.draw_scores(), batch.draw_scores()
        array = batch.array
        for loss in batch.losses:
            first = to_numpy(loss.value(array(y), array(theta)))
            for last, middle in (
                (
                    loss.value(array(z), array(theta)),
                    loss.value(array(y / 2 + z / 2), array(theta)),
                ),
                (
                    loss.value(array(y), array(eta)),
                    loss.value(array(y), array(theta / 2 + eta / 2)),
                ),
            ):
                # a midpoint is rounded, and L has slopes of the size of its arguments
                mean = first / 2 + to_numpy(last) / 2
                slack = batch.slack(mean, largest(theta), largest(eta), largest(y), largest(z))
                assert_at_most(middle, mean, slack)

    check_all(case, xp, dtype, check)


@every_case
def test_gradient_agrees_with_differences(case: Case, xp: Library, dtype: str) -> None:
    """A difference of a convex function lies between its slopes at the two ends, kinks included."""

    def check(batch: Batch) -> None:
        step = eps(dtype) ** (1 / 3)
        y, theta = batch.array(batch.draw_targets()), batch.draw_scores()
        v = batch.draw_direction()
        left, right = batch.array(theta - step * v), batch.array(theta + step * v)
        moved = to_numpy(right) - to_numpy(left)
        for loss in batch.losses:
            value_left, slope_left = loss.value_and_gradient(y, left)
            value_right, slope_right = loss.value_and_gradient(y, right)
            rise = to_numpy(value_right) - to_numpy(value_left)
            # exact up to the rounding of two values and of two gradients
            rounding = batch.slack(value_left, step * largest(slope_left) * largest(v))
            assert_at_most(inner(slope_left, moved), rise, rounding)
            assert_at_most(rise, inner(slope_right, moved), rounding)

    check_all(case, xp, dtype, check, scales=MODERATE)


@every_case
def test_hessian_product_agrees_with_differences(case: Case, xp: Library, dtype: str) -> None:
    """H v against the change of the gradient, allowing for the change of H v on the way.

    At a kink, where H jumps, that allowance is as large as the jump; elsewhere it is small.
    """

    def check(batch: Batch) -> None:
        step = eps(dtype) ** (1 / 3)
        y, theta = batch.array(batch.draw_targets()), batch.draw_scores()
        v = batch.draw_direction()
        left, right = batch.array(theta - step * v), batch.array(theta + step * v)
        moved = batch.array(to_numpy(right) - to_numpy(left))
        for loss in batch.losses:
            change = to_numpy(loss.gradient(y, right)) - to_numpy(loss.gradient(y, left))
            product = loss.hessian_product(y, batch.array(theta), moved)
            assert_same_kind(product, moved)
            middle = to_numpy(product)
            ends = [to_numpy(loss.hessian_product(y, end, moved)) for end in (left, right)]
            allowance = sum(np.abs(end - middle) for end in ends)
            rounding = batch.slack(largest(loss.y_star(y, right)))[:, None]
            # over a polytope the oracle jumps from vertex to vertex, with H = 0 on both sides
            jump = isinstance(loss.regularizer, Indicator) & np.any(np.abs(change) > 0.1, axis=-1)
            assert_close(middle[~jump], change[~jump], rtol=0, atol=(allowance + rounding)[~jump])

    check_all(case, xp, dtype, check, scales=MODERATE)


@every_case
def test_hessian_is_symmetric_and_positive(case: Case, xp: Library, dtype: str) -> None:
    """⟨u, H v⟩ = ⟨v, H u⟩ and ⟨v, H v⟩ >= 0; on the simplex H 1 = 0."""

    def check(batch: Batch) -> None:
        y, theta = batch.array(batch.draw_targets()), batch.array(batch.draw_scores())
        u, v = batch.array(batch.draw_direction()), batch.array(batch.draw_direction())
        for loss in batch.losses:
            hu, hv = loss.hessian_product(y, theta, u), loss.hessian_product(y, theta, v)
            size = largest(hu) * largest(v) + largest(hv) * largest(u)
            slack = batch.slack(batch.k * size)
            if not case.differenced:  # a difference across a kink belongs to no matrix
                assert_close(inner(u, hv), inner(v, hu), rtol=0, atol=slack)
            assert_at_most(0.0, inner(v, hv), slack)
            if isinstance(batch.domain, Simplex):
                ones = batch.array(np.ones_like(to_numpy(u)))
                kernel = loss.hessian_product(y, theta, ones)
                assert_close(kernel, 0.0, rtol=0, atol=8 * eps(dtype))
                assert_close(np.sum(to_numpy(hv), axis=-1), 0.0, rtol=0, atol=slack)

    check_all(case, xp, dtype, check)


@every_case
def test_order_is_preserved_and_classes_may_be_permuted(
    case: Case, xp: Library, dtype: str
) -> None:
    """A larger score (and a target that is no smaller) never gets a smaller probability."""
    if not case.symmetric:
        pytest.skip("a quadratic form with a matrix of its own treats the classes differently")

    def check(batch: Batch) -> None:
        y = batch.array(np.sort(batch.draw_targets(), axis=-1))
        theta = batch.array(np.sort(batch.draw_scores(), axis=-1))
        permutation = batch.rng.permutation(batch.k)
        permuted = [batch.array(to_numpy(x)[:, permutation]) for x in (y, theta)]
        for loss in batch.losses:
            y_star = to_numpy(loss.y_star(y, theta))
            slack = batch.slack(largest(y_star))[:, None]
            # among ties an oracle chooses the first
            tied = isinstance(loss.regularizer, Indicator) & (np.diff(to_numpy(theta)) == 0)
            assert_at_most(np.where(tied, 0, -np.diff(y_star)), 0.0, slack)
            value = to_numpy(loss.value(y, theta))
            assert_close(loss.value(*permuted), value, rtol=0, atol=batch.slack(value))
            if not isinstance(loss.regularizer, Indicator):  # an oracle chooses among ties
                assert_close(loss.y_star(*permuted), y_star[:, permutation], rtol=0, atol=slack)

    check_all(case, xp, dtype, check)


SIMPLEX_CASES = [
    case for case in CASES if isinstance(case.build(Library("numpy"), 2).domain, Simplex)
]


@pytest.mark.parametrize("case", SIMPLEX_CASES, ids=lambda case: case.name)
def test_a_common_shift_changes_nothing_on_the_simplex(case: Case, xp: Library, dtype: str) -> None:
    """Scores on a grid are shifted without rounding, and so nothing else may change either.

    Up to the last bits: vectorised functions depend on where an array lies in memory.
    """

    def check(batch: Batch) -> None:
        y = batch.array(batch.draw_targets())
        theta = np.round(batch.rng.normal(size=(35, batch.k)) * 2**8) / 2**6
        shifted = theta + batch.rng.integers(-(2**12), 2**12, (35, 1))
        v = batch.array(batch.draw_direction())
        for loss in batch.losses:
            for method, extra in (("value", ()), ("y_star", ()), ("hessian_product", (v,))):
                here, there = (
                    to_numpy(getattr(loss, method)(y, batch.array(t), *extra))
                    for t in (theta, shifted)
                )
                assert_close(
                    there, here, rtol=0, atol=8 * eps(dtype) * case.slack * (1 + np.abs(here))
                )

    check_all(case, xp, dtype, check, scales=(1.0,))


@pytest.mark.parametrize("case", SIMPLEX_CASES, ids=lambda case: case.name)
def test_hard_labels_are_one_hot_targets(case: Case, xp: Library, dtype: str) -> None:
    """Integer labels give what their one-hot rows give, at the edge and behind it."""

    def check(batch: Batch) -> None:
        labels = batch.rng.integers(batch.k, size=35)
        y, theta = batch.array(np.eye(batch.k)[labels]), batch.array(batch.draw_scores())
        v, labels = batch.array(batch.draw_direction()), xp.asarray(labels)
        for loss in batch.losses:
            by_label = loss.solve_labels(labels, theta)
            value, gradient = loss.value_and_gradient(y, theta)
            slack = batch.slack(value)
            assert_close(loss.value(labels, theta), value, rtol=0, atol=slack)
            assert_close(by_label.value(), value, rtol=0, atol=slack)
            unit = 4 * batch.slack(np.zeros((35, 1)))  # two ways to the same number
            assert_close(by_label.gradient(), gradient, rtol=0, atol=unit)
            assert_close(by_label.y_star, loss.y_star(y, theta), rtol=0, atol=unit)
            product = loss.hessian_product(y, theta, v)
            # products cancel: the accuracy of y* holds for each of their terms
            slack = 4 * batch.slack(largest(v))[:, None]
            assert_close(by_label.hessian_product(v), product, rtol=0, atol=slack)
            assert_same_kind(by_label.value(), theta)
            assert_same_kind(by_label.gradient(), theta)

    with np.errstate(all="ignore"):  # behind the edge nobody else turns NumPy's warnings off
        check_all(case, xp, dtype, check)
