"""Derivatives in both arguments and both modes, to the second order and, where smooth, beyond."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import fitzpatrick as fp
import fitzpatrick.jax as fj
from tests.helpers import assert_close

from .cases import NAMES, SOME, K, N, draw, evaluate, function, inside, on_labels

# Two rows, off the kinks of the piecewise quadratic losses.
SCORES = np.asarray([[0.3, -0.45, 0.2, -0.1], [1.3, 0.55, -2.0, 0.4]])
LOGITS = np.asarray([[0.1, 0.4, -0.3, -0.9], [-0.6, 0.2, 0.7, -0.2]])


@pytest.mark.parametrize("name", NAMES)
def test_both_modes_to_second_order_in_scores_and_targets(name):
    def loss(theta, z):
        return function(name)(theta, inside(name, z))

    check_grads(loss, (SCORES, LOGITS), order=2, modes=("fwd", "rev"), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["logistic", "fitzpatrick_logistic", "fitzpatrick_entmax15"])
def test_labels_to_second_order(name):
    labels = jnp.asarray([1, 2])

    def loss(theta):
        return on_labels(name)(theta, labels)

    check_grads(loss, (SCORES,), order=2, modes=("fwd", "rev"), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["fitzpatrick_logistic", "entmax15", "fitzpatrick_sigmoid"])
def test_third_order(name):
    y = np.asarray([[0.5, 0.5, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])

    def loss(theta):
        return function(name)(theta, y)

    check_grads(loss, (SCORES,), order=3, modes=("fwd",), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_gradient_is_that_of_the_core(name):
    y, theta = draw(name)
    assert_close(
        evaluate(name)(theta, y)[1],
        fp.get_loss(name).gradient(y, theta),
        rtol=1e-12,
        atol=1e-12 * np.maximum(1, np.abs(y)),
    )


@pytest.mark.parametrize("name", SOME)
def test_hessian_is_that_of_the_core(name):
    loss = fp.get_loss(name)
    y = np.asarray(inside(name, LOGITS))[1]
    theta = SCORES[1]
    expected = np.stack([loss.hessian_product(y, theta, v) for v in np.eye(K)])
    assert_close(jax.hessian(function(name))(theta, y), expected, rtol=1e-12, atol=1e-13)


def test_the_transforms_agree():
    f, (y, theta) = fj.fitzpatrick_logistic_loss, draw("fitzpatrick_logistic", scale=2.0)
    theta = jnp.asarray(theta)
    v = jnp.asarray(np.random.default_rng(1).normal(size=(N, K)))

    def loss(theta):
        return f(theta, y)

    value, forward = jax.jvp(loss, (theta,), (v,))
    again, linear = jax.linearize(loss, theta)
    same, pull = jax.vjp(loss, theta)
    expected = fp.get_loss("fitzpatrick_logistic").gradient(y, np.asarray(theta))
    assert_close(forward, np.sum(expected * np.asarray(v), axis=-1), rtol=1e-12, atol=1e-14)
    assert_close(linear(v), forward, rtol=1e-13, atol=1e-15)
    (pulled,) = pull(jnp.ones(N))
    assert_close(pulled, expected, rtol=1e-12, atol=1e-14)
    assert_close(again, value, rtol=0, atol=0)
    assert_close(same, value, rtol=0, atol=0)


@pytest.mark.parametrize("name", NAMES)
def test_derivative_in_targets_by_differences(name):
    """Along a direction in the domain, with the NumPy core as the function."""
    y, w = (np.asarray(inside(name, z))[0] for z in (LOGITS, LOGITS[::-1]))
    theta, step = SCORES[0], 1e-5
    loss = fp.get_loss(name)
    ahead, back = (loss.value(y + sign * step * (w - y), theta) for sign in (1, -1))
    slope = jax.grad(function(name), argnums=1)(theta, y) @ (w - y)
    assert_close(slope, (ahead - back) / (2 * step), rtol=1e-7, atol=1e-9)


def test_a_removed_class_has_zero_derivatives():
    theta = jnp.asarray([0.3, -jnp.inf, -0.2, 0.4])
    kept = jnp.asarray([0, 2, 3])
    y = jnp.asarray([0.2, 0.0, 0.5, 0.3])
    f = fj.fitzpatrick_logistic_loss

    def without(derivative):
        small = np.asarray(derivative(theta[kept], y[kept]))
        full = np.zeros((K,) * small.ndim)
        full[np.ix_(*[kept] * small.ndim)] = small
        return full

    for derivative in (
        jax.grad(f),
        jax.jacfwd(f),
        jax.grad(f, argnums=1),
        jax.hessian(f),
        jax.jacfwd(jax.grad(f), argnums=1),
    ):
        assert_close(derivative(theta, y), without(derivative), rtol=1e-12, atol=1e-14)


def test_links_have_the_jacobian_of_the_core():
    theta = SCORES[1]
    for name in ("softmax", "sparsemax", "entmax15", "sigmoid"):
        link = getattr(fj, name)
        omega = fp.get_loss("logistic" if name == "softmax" else name)
        y = np.asarray(link(theta))
        expected = np.stack([omega.hessian_product(y, theta, v) for v in np.eye(K)])
        assert_close(jax.jacfwd(link)(theta), expected, rtol=1e-12, atol=1e-14)
        assert_close(jax.jacrev(link)(theta), expected, rtol=1e-12, atol=1e-14)


def test_a_matrix_of_the_regulariser_is_not_differentiated_in_silence():
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

    gradient = jax.grad(fj.make_fitzpatrick_loss(fp.regularizers.SquaredNorm(AtLeastOne())))
    theta, y = jnp.asarray([3.0, -2.0, 0.5, 4.0]), jnp.asarray([1.0, 1.0, 2.0, 3.0])
    expected = np.diag([0.5, 0.0, 0.5, 0.5])
    assert_close(jax.jacfwd(gradient)(theta, y), expected, rtol=1e-12, atol=0)
    assert_close(jax.jacrev(gradient)(theta, y), expected, rtol=1e-12, atol=0)
