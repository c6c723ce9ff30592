"""Targets that list the classes of an example, as a pytree."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

import fitzpatrick.jax as fj  # noqa: E402
from fitzpatrick.jax import SparseTargets  # noqa: E402

INDICES = np.asarray([[3, 0, -1], [2, -5, -1], [4, 1, 2], [-1, -1, -1]])
VALUES = np.asarray([[0.25, 0.75, 9.0], [1.0, 0.0, 0.0], [0.5, 0.2, 0.3], [0.0, 0.0, 0.0]])
SCORES = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32) * 3
NAMES = ("logistic", "sparsemax", "entmax15")


def dense(values=VALUES):
    y = np.zeros((4, 7))
    np.put_along_axis(y, np.where(INDICES < 0, 6, INDICES), values, -1)
    return y[:, :6].astype(np.float32)


def lists(values=VALUES, **options):
    return SparseTargets(jnp.asarray(INDICES), jnp.asarray(values, jnp.float32), **options)


# float32, with sums of six terms
TOLERANCE = {"rtol": 2e-5, "atol": 2e-6}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tightness", [0.0, 0.5])
def test_lists_are_targets(name, tightness):
    loss = getattr(fj, f"fitzpatrick_{name}_loss")

    @jax.jit
    def value_and_gradient(scores, targets):
        total = lambda scores: loss(scores, targets, tightness=tightness)[:3].sum()  # noqa: E731
        return loss(scores, targets, tightness=tightness), jax.grad(total)(scores)

    value, gradient = value_and_gradient(SCORES, lists())
    expected, rows = value_and_gradient(SCORES[:3], jnp.asarray(dense()[:3]))
    np.testing.assert_allclose(value[:3], expected, **TOLERANCE)
    np.testing.assert_allclose(gradient[:3], rows, **TOLERANCE)
    assert value[3] == 0


def test_axes_and_maps():
    mapped = jax.jit(jax.vmap(fj.logistic_loss))(SCORES, lists())
    along = jax.jit(lambda s, t: fj.logistic_loss(s, t, axis=0))(SCORES.T, lists())
    np.testing.assert_allclose(along, mapped, **TOLERANCE)


@pytest.mark.parametrize("tightness", [0.0, 1.0])
def test_bucket(tightness):
    def by_hand(scores):
        own, others = scores[jnp.asarray([3, 0])], scores[jnp.asarray([1, 2, 4, 5])]
        merged = jnp.append(own, jax.nn.logsumexp(others))
        y = jnp.asarray([0.2, 0.6, 0.2])
        return fj.fitzpatrick_logistic_loss(merged, y, tightness=tightness)

    def loss(scores, log_values=False):
        values = np.log(0.8 * VALUES[:1] + 1e-30) if log_values else 0.8 * VALUES[:1]
        values = jnp.asarray(values[0], jnp.float32)
        targets = SparseTargets(jnp.asarray(INDICES[0]), values, "bucket", log_values)
        return fj.fitzpatrick_logistic_loss(scores, targets, tightness=tightness)

    scores = jnp.asarray(SCORES[0])
    np.testing.assert_allclose(loss(scores), by_hand(scores), **TOLERANCE)
    np.testing.assert_allclose(loss(scores, True), by_hand(scores), **TOLERANCE)
    hessians = jax.jit(jax.hessian(loss))(scores), jax.jit(jax.hessian(by_hand))(scores)
    np.testing.assert_allclose(*hessians, rtol=1e-4, atol=1e-5)


def test_renormalize():
    part = fj.sparsemax_loss(SCORES, lists(0.3 * VALUES, rest="renormalize"))
    np.testing.assert_allclose(part, fj.sparsemax_loss(SCORES, lists()), **TOLERANCE)


def test_all_classes_and_bad_ones():
    scores, every = jnp.asarray([1.0, 0.0, 2.0]), jnp.asarray([2, 0, 1])
    values = jnp.asarray([0.5, 0.2, 0.3])
    gradient = jax.grad(lambda s: fj.logistic_loss(s, SparseTargets(every, values)))(scores)
    expected = jax.nn.softmax(scores) - jnp.asarray([0.2, 0.3, 0.5])
    np.testing.assert_allclose(gradient, expected, **TOLERANCE)
    assert jnp.isnan(fj.logistic_loss(scores, SparseTargets(every + 1, values)))
    with pytest.raises(ValueError, match="for the logistic losses"):
        fj.sparsemax_loss(scores, SparseTargets(every, values, "bucket"))
    with pytest.raises(ValueError, match="one axis more"):
        fj.sparsemax_loss(scores, SparseTargets(every[None], values[None]))
    with pytest.raises(TypeError, match="integer indices"):
        fj.sparsemax_loss(scores, SparseTargets(values, values))
    with pytest.raises(ValueError, match="on the simplex"):
        fj.sigmoid_loss(scores, SparseTargets(every, values))
    with pytest.raises(ValueError, match="rest must be"):
        SparseTargets(every, values, "other")
