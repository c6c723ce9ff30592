"""Integer labels: the losses of one-hot targets, without the targets."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fitzpatrick as fp
import fitzpatrick.jax as fj
from tests.helpers import assert_close, seeded

from .cases import SIMPLEX, K, N, draw, function, on_labels


@pytest.mark.parametrize("name", ["logistic", "perceptron"])
def test_labels_along_any_axis(name):
    _, theta = draw(name, scale=3.0)
    labels = np.arange(N) % K
    compiled = jax.jit(on_labels(name), static_argnames="axis")
    moved = compiled(theta.T, labels.astype("uint8"), axis=0)
    assert_close(moved, fp.get_loss(name).value(labels, theta), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", SIMPLEX)
def test_labels_build_no_one_hot(name, monkeypatch):
    """The way through dense targets, which a regularizer may inherit, is not taken."""

    def dense(*_):
        raise AssertionError("dense targets")

    omega = type(fp.get_loss(name).regularizer)
    monkeypatch.setattr(omega, "solve", dense)
    theta, labels = np.zeros((2, K)), np.asarray([0, 1])
    with pytest.raises(AssertionError, match="dense targets"):
        function(name)(theta, np.eye(K)[labels])
    gradient = jax.eval_shape(jax.vmap(jax.grad(on_labels(name))), theta, labels)
    assert gradient.shape == theta.shape


def test_labels_out_of_range_are_nan_without_gradient():
    theta = np.zeros((N, K))
    labels = np.asarray([-1, 1, K, 2, 3, 0])
    in_range = (labels >= 0) & (labels < K)

    @functools.partial(jax.value_and_grad, has_aux=True)
    def total(theta):
        losses = fj.fitzpatrick_logistic_loss_with_integer_labels(theta, labels)
        return jnp.sum(losses, where=in_range), losses

    (_, losses), gradient = jax.jit(total)(theta)
    np.testing.assert_array_equal(np.isnan(losses), ~in_range)
    np.testing.assert_array_equal(np.asarray(gradient) != 0, np.tile(in_range[:, None], (1, K)))


def test_small_integer_labels_reach_every_class():
    theta = seeded(0).normal(size=(2, 300))
    labels = np.asarray([3, 127], dtype=np.int8)
    f = jax.jit(jax.vmap(jax.value_and_grad(fj.logistic_loss_with_integer_labels)))
    for out, expected in zip(f(theta, labels), f(theta, labels.astype(np.int32)), strict=True):
        assert_close(out, expected, rtol=0, atol=0)
    assert_close(f(theta, labels)[1].sum(axis=-1), [0.0, 0.0], rtol=0, atol=1e-12)
