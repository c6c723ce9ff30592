"""Losses of regularizers that are not in the registry, a user's own among them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import fitzpatrick as fp
import fitzpatrick.jax as fj
from tests.helpers import assert_close
from tests.user_regularizer import ScaledDistance

from .cases import SCORES, STEPS, along, assert_is_slope, here, target_rows

OWN = ScaledDistance(0.5, 0.25, fp.sets.Simplex())


def test_a_separable_regularizer_of_your_own():
    """Targets, labels and links, compiled, with derivatives in both arguments."""
    tightness = 2.0
    core = fp.FitzpatrickLoss(OWN, tightness)
    on_targets = fj.make_fitzpatrick_loss(OWN, tightness)
    on_labels = fj.make_fitzpatrick_loss(OWN, tightness, integer_labels=True)
    labels = np.asarray([1, 2] * 3)
    y, y_dot = target_rows("sparsemax")

    @jax.jit
    def everything(theta, y):
        ones = jnp.ones(len(labels))
        losses, pull = jax.vjp(on_targets, theta, y)
        labeled, pull_of_labels = jax.vjp(lambda t: on_labels(t, labels), theta)
        link = fj.make_link(OWN)(theta)
        return losses, *pull(ones), labeled, *pull_of_labels(ones), link

    thetas, ys = along(SCORES, STEPS), along(y, y_dot)
    losses, in_scores, in_targets, labeled, labeled_gradient, link = everything(thetas, ys)
    for found, expected in (
        ((losses, in_scores), core.value_and_gradient(ys, thetas)),
        ((labeled, labeled_gradient), core.value_and_gradient(labels, thetas)),
        ((link,), (core.link(thetas),)),
    ):
        for one, other in zip(found, expected, strict=True):
            assert_close(one, other, rtol=1e-12, atol=1e-14)
    slope = np.sum(here(in_scores) * STEPS, axis=-1) + np.sum(here(in_targets) * y_dot, axis=-1)
    assert_is_slope(slope, losses)


def test_a_function_of_your_own_is_solved_in_a_loop():
    """One step is traced, however many there may be; the root has every derivative."""
    steps = 0

    def make(xp, watch=lambda: None):
        def gradient(y):
            watch()
            return xp.sinh(y) + y

        return fp.regularizers.TwiceDifferentiable(
            lambda y: xp.sum(xp.cosh(y) + y * y / 2, axis=-1),
            gradient,
            lambda y: (xp.cosh(y) + 1)[..., None] * xp.eye(y.shape[-1]),
        )

    def count():
        nonlocal steps
        steps += 1

    core, loss = fp.FitzpatrickLoss(make(np), 0.5), fj.make_fitzpatrick_loss(make(jnp, count), 0.5)
    y, theta = np.cos(np.arange(2.0)), 3 * np.sin(np.arange(2.0))
    direction = np.asarray([0.5, -1.0])

    def second(theta):
        slope = jax.grad(lambda scores: loss(scores, y))
        return jax.jvp(slope, (theta,), (direction,))[1] @ direction

    jax.eval_shape(loss, theta, y)
    assert 0 < steps < 20  # the start, one step and what follows, not fifty steps
    value, curvature = jax.jit(lambda theta: (loss(theta, y), second(theta)))(theta)
    assert_close(value, core.value(y, theta), rtol=1e-12, atol=0)
    # the Jacobian is by central differences, to two thirds of the digits, in both
    expected = core.hessian_product(y, theta, direction) @ direction
    assert_close(curvature, expected, rtol=1e-9, atol=0)
    # differences are exact to step², times derivatives of size one
    check_grads(jax.jit(second), (theta,), 1, ["fwd"], eps=1e-3, rtol=1e-4, atol=1e-6)


def test_a_matrix_of_the_regularizer_is_not_differentiated_in_silence():
    def through_matrix(matrix):
        loss = fj.make_fitzpatrick_loss(fp.regularizers.Quadratic(matrix))
        return loss(jnp.ones(2), jnp.zeros(2))

    assert_close(jax.jit(through_matrix)(2 * jnp.eye(2)), 0.25, rtol=1e-12, atol=0)
    with pytest.raises(jax.errors.UnexpectedTracerError):
        jax.grad(through_matrix)(jnp.eye(2))


def test_a_set_of_your_own_has_both_modes():
    class AtLeastOne(fp.sets.ConvexSet):
        def project(self, x):
            return jnp.maximum(x, 1.0)

        def maximize(self, theta):
            return jnp.where(theta > 0, jnp.inf, 1.0)

    omega = fp.regularizers.SquaredNorm(AtLeastOne())
    gradient = jax.grad(fj.make_fitzpatrick_loss(omega, tightness=3.0))
    theta, y = jnp.asarray([3.0, -2.0, 0.5, 4.0]), jnp.asarray([1.0, 1.0, 2.0, 3.0])
    both = jax.jit(lambda t: (jax.jacfwd(gradient)(t, y), jax.jacrev(gradient)(t, y)))
    for hessian in both(theta):
        assert_close(hessian, np.diag([0.25, 0.0, 0.25, 0.25]), rtol=1e-12, atol=0)
