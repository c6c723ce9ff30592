"""Losses of regularizers that are not in the registry, a user's own among them."""

import jax
import jax.numpy as jnp
import numpy as np

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
    assert_close(losses, core.value(ys, thetas), rtol=1e-12, atol=1e-14)
    assert_close(in_scores, core.gradient(ys, thetas), rtol=1e-12, atol=1e-14)
    assert_close(labeled, core.value(labels, thetas), rtol=1e-12, atol=1e-14)
    assert_close(labeled_gradient, core.gradient(labels, thetas), rtol=1e-12, atol=1e-14)
    assert_close(link, core.link(thetas), rtol=1e-12, atol=1e-14)
    slope = np.sum(here(in_scores) * STEPS, axis=-1) + np.sum(here(in_targets) * y_dot, axis=-1)
    assert_is_slope(slope, losses)


def test_a_function_of_your_own_is_solved_in_a_loop():
    """One step is traced, however many there may be; the root has every derivative."""
    steps = 0

    def gradient(y):
        nonlocal steps
        steps += 1
        return jnp.sinh(y) + y

    omega = fp.regularizers.TwiceDifferentiable(
        lambda y: jnp.sum(jnp.cosh(y) + y * y / 2, axis=-1),
        gradient,
        lambda y: (jnp.cosh(y) + 1)[..., None] * jnp.eye(y.shape[-1]),
    )
    numpy_omega = fp.regularizers.TwiceDifferentiable(
        lambda y: np.sum(np.cosh(y) + y * y / 2, axis=-1),
        lambda y: np.sinh(y) + y,
        lambda y: (np.cosh(y) + 1)[..., None] * np.eye(y.shape[-1]),
    )
    core, loss = fp.FitzpatrickLoss(numpy_omega, 0.5), fj.make_fitzpatrick_loss(omega, 0.5)
    y, theta = np.cos(np.arange(3.0)), 3 * np.sin(np.arange(3.0))
    direction = np.asarray([0.5, -1.0, 0.25])

    def second(theta):
        slope = jax.grad(lambda scores: loss(scores, y))
        return jax.jvp(slope, (theta,), (direction,))[1] @ direction

    jax.eval_shape(loss, theta, y)
    assert 0 < steps < 20  # the start, one step and what follows, not fifty steps
    curvature, third = jax.jit(jax.value_and_grad(second))(theta)
    assert_close(jax.jit(loss)(theta, y), core.value(y, theta), rtol=1e-12, atol=0)
    # the Jacobian is by central differences, to two thirds of the digits, in both
    expected = core.hessian_product(y, theta, direction) @ direction
    assert_close(curvature, expected, rtol=1e-9, atol=0)
    step = 1e-3
    left, right = (
        core.hessian_product(y, theta + sign * step * direction, direction) @ direction
        for sign in (-1, 1)
    )
    # exact to step², times derivatives of size one
    assert_close(third @ direction, (right - left) / (2 * step), rtol=1e-4, atol=1e-6)
