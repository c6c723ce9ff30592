"""optax has three of these losses in another form."""

import jax
import numpy as np
import pytest
from scipy.special import xlogy

import fitzpatrick.jax as fj
from tests.helpers import assert_close

from .cases import K, N, draw

optax = pytest.importorskip("optax")


def test_logistic_is_cross_entropy_less_the_entropy_of_the_targets():
    y, theta = draw("logistic")
    cross_entropy = np.asarray(jax.jit(optax.softmax_cross_entropy)(theta, y))
    expected = cross_entropy + xlogy(y, y).sum(axis=-1)
    # the difference of two numbers of the size of the cross-entropy
    assert_close(
        jax.jit(fj.logistic_loss)(theta, y), expected, rtol=1e-12, atol=1e-13 * cross_entropy.max()
    )


def test_logistic_with_labels_is_integer_cross_entropy():
    _, theta = draw("logistic")
    labels = np.arange(N) % K
    ours, peer = (
        jax.jit(jax.vmap(jax.value_and_grad(loss)))(theta, labels)
        for loss in (
            fj.logistic_loss_with_integer_labels,
            optax.softmax_cross_entropy_with_integer_labels,
        )
    )
    for out, expected in zip(ours, peer, strict=True):
        assert_close(out, expected, rtol=1e-10, atol=1e-13)


def test_sparsemax_with_labels_is_the_multiclass_sparsemax_loss():
    _, theta = draw("sparsemax")
    labels = np.arange(N) % K
    expected = np.asarray(jax.jit(optax.losses.multiclass_sparsemax_loss)(theta, labels))
    scale = np.square(theta).max()  # of the squares that cancel there
    ours = jax.jit(fj.sparsemax_loss_with_integer_labels)(theta, labels)
    assert_close(ours, expected, rtol=1e-12, atol=1e-14 * scale)


def test_sigmoid_is_binary_cross_entropy_at_hard_targets():
    _, theta = draw("sigmoid")
    y = (np.arange(N * K).reshape(N, K) % 3 == 0).astype(float)
    expected = np.asarray(jax.jit(optax.sigmoid_binary_cross_entropy)(theta, y)).sum(axis=-1)
    assert_close(jax.jit(fj.sigmoid_loss)(theta, y), expected, rtol=1e-12, atol=1e-13)
