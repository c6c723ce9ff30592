"""Links with a parameter that is traced: values, derivatives in scores and parameter, errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import fitzpatrick as fp
import fitzpatrick.jax as fj
from fitzpatrick.regularizers.norm import Norm, normmax_link
from fitzpatrick.regularizers.tsallis import entmax_link
from fitzpatrick.sets.budget import project_to_budget
from tests.helpers import assert_close, assert_promised, seeded

ORDERS = np.asarray([[1.0], [1.2], [1.5], [2.0]])
SCORES = seeded(0).normal(size=(4, 5))
KEPT = np.asarray([True, True, False, True, True])
# The classes of a row near one another all have a share, and the one far below has none: no step of
# a difference takes a class across a kink.
APART = seeded(1).uniform(-0.05, 0.05, size=(4, 5)) - [0, 0, 3, 0, 0]
# each with numbers inside of their range, and at its ends
LINKS = {
    "entmax": (entmax_link, np.clip(ORDERS, 1.1, 1.9), ORDERS),
    "normmax": (normmax_link, np.asarray([[1.2], [1.5], [2.0], [7.0]]), ORDERS + 0.01),
    "budget": (project_to_budget, ORDERS + 1, np.asarray([[1.0], [3.5], [4.0], [2.0]])),
}


@pytest.mark.parametrize("name", LINKS)
def test_links(name):
    """Values against the core; a class that is left out; derivatives in both arguments."""
    core, inside, numbers = LINKS[name]
    link = getattr(fj, name)

    @jax.jit
    def results(scores, numbers):
        masked = link(scores.T, numbers.T, axis=0, where=KEPT[:, None]).T
        return link(scores, numbers), masked, jax.vmap(link)(scores, numbers[:, 0])

    for parameter in (inside, numbers):
        straight, masked, mapped = map(np.asarray, results(SCORES, parameter))
        assert_close(straight, core(SCORES, parameter), rtol=1e-13, atol=1e-14)
        assert_close(mapped, straight, rtol=1e-14, atol=1e-15)
        assert_close(masked[:, KEPT], core(SCORES[:, KEPT], parameter), rtol=1e-13, atol=1e-14)
        assert np.all(masked[:, 2] == 0)
    # beside a class far above, which has all that a budget gives to one, and others nothing
    apart = APART + np.eye(5)[1] * (3 if name == "budget" else 0)
    # by differences that are exact to step² times the next derivative, some hundred
    check_grads(jax.jit(link), (apart, inside), order=2, modes=["rev"], rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="must be between"):
        link(SCORES, -1.0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_two_thousand_orders_keep_the_promise(dtype):
    orders = (1 + np.logspace(-15, 0, 2000)[:, None]).astype(dtype)
    scores = np.resize(10 ** np.linspace(-2, 1.5, 7), (2000, 1)) * seeded(2).normal(size=(2000, 5))
    scores = scores.astype(dtype)
    exact = entmax_link(scores.astype(np.float64), orders.astype(np.float64))
    assert_promised(jax.jit(fj.entmax)(scores, orders), exact, exact, dtype)


def test_the_derivative_in_an_order_of_one():
    total = jax.jit(lambda alpha: jnp.sum(fj.entmax(SCORES, alpha) * np.arange(5.0)))
    ones, step = np.ones((4, 1)), 1e-5
    one_sided = (total(ones + step) - total(ones)) / step
    assert_close(np.sum(jax.jit(jax.grad(total))(ones)), one_sided, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", LINKS)
def test_rows_without_a_class_have_no_derivatives(name):
    """And leave the derivative in a number that all rows share to the others."""
    where = np.asarray([[True], [False], [True], [True]])

    def total(scores, number, where=None):
        return jnp.sum(getattr(fj, name)(scores, number, where=where) * np.arange(5.0))

    slopes = jax.jit(jax.grad(total, (0, 1)))
    found, kept = slopes(SCORES, 1.5, where), np.asarray([0, 2, 3])
    expected = slopes(SCORES[kept], 1.5)
    assert_close(found[0][kept], expected[0], rtol=1e-12, atol=1e-14)
    assert np.all(np.asarray(found[0])[1] == 0)
    assert_close(found[1], expected[1], rtol=1e-12, atol=1e-14)


def test_orders_out_of_range():
    for bad in (0.5, np.nan, 2.5, np.asarray([[1.0], [1.5], [0.9], [2.0]])):
        with pytest.raises(ValueError, match="alpha must be between 1 and 2"):
            fj.entmax(SCORES, bad)
    traced = np.asarray(jax.jit(fj.entmax)(SCORES, np.asarray([[1.0], [0.9], [1.5], [2.0]])))
    assert np.isnan(traced).any(axis=1).tolist() == [False, True, False, False]


def test_losses():
    """Of a static order, at their two ends, at targets and at labels, as those of the core."""
    targets, labels = np.full((4, 5), 0.2), np.asarray([0, 4, 2, 2])
    entmax, norm, order = fp.regularizers.Tsallis(1.5), Norm(1.5), jnp.asarray(1.5)

    @jax.jit
    def results(s):
        normmax = fj.normmax_loss_with_integer_labels
        slope = jax.grad(lambda s: normmax(s, labels, 1.5).sum())(s)
        return slope - (fj.normmax(s, 1.5) - np.eye(5)[labels]), (
            fj.entmax_loss(s, targets, 1.5),
            fj.entmax_loss_with_integer_labels(s, labels, tightness=0.5),
            fj.fitzpatrick_entmax_loss(s, targets, order),
            fj.fitzpatrick_entmax_loss_with_integer_labels(s, labels),
            fj.normmax_loss(s, targets, 1.5),
            normmax(s, labels, 1.5),
        )

    difference, values = results(SCORES)
    assert_close(difference, 0.0, rtol=0, atol=1e-15)
    ends = ((entmax, 0.0), (entmax, 0.5), (entmax, 1.0), (entmax, 1.0), (norm, 0.0), (norm, 0.0))
    for i, (found, (omega, c)) in enumerate(zip(values, ends, strict=True)):
        y = targets if i % 2 == 0 else labels
        assert_close(found, fp.Loss(omega, c).value(y, SCORES), rtol=1e-12, atol=1e-14)
