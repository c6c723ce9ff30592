"""Derivatives in both arguments and both modes, to the second order and, where smooth, beyond.

Directions of targets stay in the domain: on the simplex their entries sum to 0.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import fitzpatrick as fp
import fitzpatrick.jax as fj
from tests.helpers import TEST_ALL, assert_close

from .cases import (
    FITZPATRICK,
    NAMES,
    SCORES,
    STEPS,
    along,
    assert_is_slope,
    function,
    here,
    second_order,
    target_rows,
)

# Every regularizer at one tightness beside 0 and 1, and three of the Fenchel-Young losses.
OTHERS = (0.25, 0.5, 2.0)
SECOND = [(name, OTHERS[i % len(OTHERS)]) for i, name in enumerate(FITZPATRICK)]
SECOND += [("logistic", None), ("sparsemax", None), ("sigmoid", None)]
if TEST_ALL:
    SECOND = [(name, c) for name in FITZPATRICK for c in OTHERS] + [(name, None) for name in NAMES]


@pytest.mark.parametrize(("name", "tightness"), SECOND)
def test_both_modes_to_second_order_in_scores_and_targets(name, tightness):
    y, y_dot = target_rows(name)
    directions = np.tile(STEPS, (3, 1)), np.tile(y_dot, (3, 1))
    points = along(SCORES, STEPS), along(y, y_dot)
    in_scores, in_targets, *products = second_order(name, tightness)(*points, *directions)
    forward, reverse = products[:2], products[2:]
    loss = fp.get_loss(name, tightness)
    assert_close(in_scores, loss.gradient(points[1], points[0]), rtol=1e-11, atol=1e-13)
    along_targets = loss.value(points[1], np.tile(SCORES, (3, 1)))
    assert_is_slope(np.sum(here(in_targets) * y_dot, axis=-1), along_targets)
    assert_is_slope(forward[0], in_scores)
    assert_is_slope(forward[1], in_targets)
    for product, same in zip(forward, reverse, strict=True):  # the Hessian is symmetric
        assert_close(same, product, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", ["logistic", "sigmoid", "poisson"])
def test_third_order(name):
    y = jnp.asarray([[0.5, 0.5, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]] * 3)

    @jax.jit
    def derivatives(theta):
        direction = np.tile(STEPS, (3, 1))

        def push(f):
            return lambda theta: jax.jvp(f, (theta,), (direction,))[1]

        loss = function(f"fitzpatrick_{name}", 0.5)
        second = push(push(lambda theta: loss(theta, y)))
        return jax.jvp(second, (theta,), (direction,))

    second, third = derivatives(along(SCORES, STEPS))
    assert_is_slope(third, second, atol=1e-7)


def test_a_removed_class_has_zero_derivatives():
    """A score of −∞ leaves what a call without the class has, and 0 for the class itself."""
    theta, y, y_dot = (np.insert(x, 1, 0.0, axis=-1) for x in (SCORES, *target_rows("logistic")))
    theta_dot = np.insert(STEPS, 1, 0.8, axis=-1)
    rows = [np.tile(x, (3, 1)) for x in (theta, y, theta_dot, y_dot)]
    rows[0][:, 1] = -np.inf
    products = second_order("fitzpatrick_logistic", 0.5)
    full, small = products(*rows), products(*(np.delete(x, 1, axis=-1) for x in rows))
    for with_it, without in zip(full, small, strict=True):
        expected = np.insert(np.asarray(without), 1, 0.0, axis=-1)
        assert_close(with_it, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", ["softmax", "sparsemax", "sigmoid"])
def test_links_have_the_jacobian_of_the_core(name):
    link = getattr(fj, name)
    core = fp.get_loss("logistic" if name == "softmax" else name)

    @jax.jit
    def products(theta):
        p, forward = jax.jvp(link, (theta,), (jnp.asarray(STEPS),))
        return p, forward, jax.vjp(link, theta)[1](jnp.asarray(STEPS))[0]

    p, forward, reverse = products(SCORES)
    expected = core.hessian_product(np.asarray(p), SCORES, STEPS)
    assert_close(forward, expected, rtol=1e-12, atol=1e-14)
    assert_close(reverse, expected, rtol=1e-12, atol=1e-14)


def test_the_loop_for_tau_is_compiled_once_and_has_every_derivative():
    """Third derivatives go through the formulas of the core, and the root that they find."""
    theta, y = np.asarray([0.3, -0.2, 0.1, 0.05, -0.4, 0.2, 0.0]), np.full(7, 1 / 7)

    @jax.jit
    def slope(scores):
        return jax.grad(fj.fitzpatrick_entmax15_loss)(scores, y)

    loops = str(jax.make_jaxpr(slope)(theta)).count("while[")
    assert 1 <= loops <= 2
    direction = np.cos(np.arange(7.0))
    second = jax.jit(lambda scores: jax.jvp(slope, (scores,), (direction,))[1] @ direction)
    # differences are exact to step² times the fifth derivative, of size one, and rounding
    check_grads(second, (theta,), order=1, eps=1e-4, rtol=1e-6, atol=1e-7)
