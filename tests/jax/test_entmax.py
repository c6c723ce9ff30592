"""α-entmax with an order that is traced: values, derivatives in scores and order, errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import fitzpatrick as fp
import fitzpatrick.jax as fj
from fitzpatrick.regularizers.norm import Norm, normmax_link
from fitzpatrick.sets.budget import project_to_budget
from tests.helpers import assert_close, seeded

ORDERS = np.asarray([[1.0], [1.2], [1.5], [2.0]])
SCORES = seeded(0).normal(size=(4, 5))


def test_values_are_those_of_the_core():
    expected = [
        fp.regularizers.Tsallis(a).link(row) for (a,), row in zip(ORDERS, SCORES, strict=True)
    ]
    kept = np.asarray([True, True, False, True, True])

    @jax.jit
    def both(scores, alpha):
        masked = fj.entmax(scores.T, alpha.T, axis=0, where=kept[:, None]).T
        return fj.entmax(scores, alpha), masked, jax.vmap(fj.entmax)(scores, alpha[:, 0])

    straight, masked, mapped = both(SCORES, ORDERS)
    # the regularizer's own formulas lose some digits as α approaches 1
    assert_close(straight, np.stack(expected), rtol=1e-12, atol=1e-14)
    assert_close(mapped, straight, rtol=1e-14, atol=1e-15)
    assert np.all(masked[:, 2] == 0)
    rest = [
        fp.regularizers.Tsallis(a).link(row[kept]) for (a,), row in zip(ORDERS, SCORES, strict=True)
    ]
    assert_close(masked[:, kept], np.stack(rest), rtol=1e-12, atol=1e-14)


def test_derivatives_in_scores_and_order():
    """Against differences; at second order, forward over reverse against reverse over reverse."""
    weights = np.arange(5.0)

    @jax.jit
    def total(scores, alpha):
        return jnp.sum(fj.entmax(scores, alpha) * weights)

    inside = np.clip(ORDERS, 1.1, 1.9)
    gradients = jax.jit(jax.grad(total, argnums=(0, 1)))(SCORES, inside)
    step = 1e-5
    for i, direction in enumerate((np.cos(SCORES), np.asarray([[1.0], [0.5], [-1.0], [2.0]]))):
        ahead, behind = ([SCORES, inside] for _ in range(2))
        ahead[i], behind[i] = ahead[i] + step * direction, behind[i] - step * direction
        difference = (total(*ahead) - total(*behind)) / (2 * step)
        # differences are exact to step² times the third derivative, some hundred, and rounding
        assert_close(np.sum(gradients[i] * direction), difference, rtol=1e-6, atol=1e-7)
    at_one = jax.grad(total, argnums=1)(SCORES, np.ones((4, 1)))
    one_sided = (total(SCORES, np.full((4, 1), 1 + step)) - total(SCORES, np.ones((4, 1)))) / step
    assert_close(np.sum(at_one), one_sided, rtol=1e-3, atol=1e-3)
    slope = jax.grad(total)
    forward = jax.jit(lambda s, v: jax.jvp(lambda s: slope(s, inside), (s,), (v,))[1])
    reverse = jax.jit(lambda s, v: jax.vjp(lambda s: slope(s, inside), s)[1](v)[0])
    v = np.sin(SCORES)
    assert_close(forward(SCORES, v), reverse(SCORES, v), rtol=1e-11, atol=1e-13)


def test_orders_out_of_range():
    for bad in (0.5, np.nan, 2.5, np.asarray([[1.0], [1.5], [0.9], [2.0]])):
        with pytest.raises(ValueError, match="alpha must be between 1 and 2"):
            fj.entmax(SCORES, bad)
    traced = np.asarray(jax.jit(fj.entmax)(SCORES, np.asarray([[1.0], [0.9], [1.5], [2.0]])))
    assert np.isnan(traced).any(axis=1).tolist() == [False, True, False, False]
    with pytest.raises(ValueError, match=r"alpha of shape \(3,\) does not broadcast to \(4, 1\)"):
        fj.entmax(SCORES, np.ones(3))
    with pytest.raises(TypeError, match="alpha must be a number from 1 to 2"):
        fj.entmax(SCORES, True)


def test_losses():
    """Of a static order, at their two ends, at targets and at labels, as those of the core."""
    targets, labels = np.full((4, 5), 0.2), np.asarray([0, 4, 2, 2])
    entmax, norm = fp.regularizers.Tsallis(1.5), Norm(1.5)
    for found, omega, c, y in (
        (fj.entmax_loss(SCORES, targets, 1.5), entmax, 0.0, targets),
        (fj.entmax_loss_with_integer_labels(SCORES, labels, tightness=0.5), entmax, 0.5, labels),
        (fj.fitzpatrick_entmax_loss(SCORES, targets, jnp.asarray(1.5)), entmax, 1.0, targets),
        (fj.fitzpatrick_entmax_loss_with_integer_labels(SCORES, labels), entmax, 1.0, labels),
        (fj.normmax_loss(SCORES, targets, 1.5), norm, 0.0, targets),
        (fj.normmax_loss_with_integer_labels(SCORES, labels, 1.5), norm, 0.0, labels),
    ):
        assert_close(found, fp.Loss(omega, c).value(y, SCORES), rtol=1e-12, atol=1e-14)
    slope = jax.grad(lambda s: fj.normmax_loss_with_integer_labels(s, labels, 1.5).sum())(SCORES)
    assert_close(slope, fj.normmax(SCORES, 1.5) - np.eye(5)[labels], rtol=1e-13, atol=1e-15)


def test_orders_of_losses_are_static():
    with pytest.raises(TypeError, match="alpha of a loss must be a Python number"):
        jax.jit(fj.entmax_loss)(SCORES, np.full((4, 5), 0.2), 1.5)
    with pytest.raises(ValueError, match="alpha must be between 1 and 2"):
        fj.entmax_loss(SCORES, np.full((4, 5), 0.2), 0.5)


PARAMETERS = {"normmax": np.asarray([[1.2], [1.5], [2.0], [7.0]]), "budget": ORDERS + 1}


@pytest.mark.parametrize("name", PARAMETERS)
def test_normmax_and_budget(name):
    """Values against the core; derivatives in scores and parameter; a class that is left out."""
    link, numbers = getattr(fj, name), PARAMETERS[name]
    core = {"normmax": normmax_link, "budget": project_to_budget}[name]
    kept = np.asarray([True, True, False, True, True])
    found = jax.jit(link)(SCORES, numbers)
    assert_close(found, core(SCORES, numbers), rtol=1e-13, atol=1e-14)
    masked = np.asarray(link(SCORES.T, numbers.T, axis=0, where=kept[:, None]).T)
    assert_close(masked[:, kept], core(SCORES[:, kept], numbers), rtol=1e-13, atol=1e-14)
    assert np.all(masked[:, 2] == 0)
    check_grads(link, (SCORES, numbers), order=2, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="must be between"):
        link(SCORES, -1.0)
