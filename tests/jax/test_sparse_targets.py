"""Targets that list the classes of an example, as a pytree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fitzpatrick.jax as fj
from fitzpatrick.jax import SparseTargets

INDICES = np.asarray([[3, 0, -1], [2, -5, -1], [4, 1, 2], [-1, -1, -1]])
VALUES = np.asarray([[0.25, 0.75, 9.0], [1.0, 0.0, 0.0], [0.5, 0.2, 0.3], [0.0, 0.0, 0.0]])
SCORES = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32) * 3
# float32, with sums of six terms
TOLERANCE = {"rtol": 2e-5, "atol": 2e-6}


def lists(values=VALUES, **options):
    return SparseTargets(jnp.asarray(INDICES), jnp.asarray(values, jnp.float32), **options)


@pytest.mark.parametrize("name", ["logistic", "sparsemax", "entmax15"])
def test_lists_are_targets(name):
    """Along any axis, mapped, and divided by their sums if asked for; padding alone costs 0."""
    loss = getattr(fj, f"fitzpatrick_{name}_loss")
    dense = np.zeros((4, 7), np.float32)
    np.put_along_axis(dense, np.where(INDICES < 0, 6, INDICES), VALUES, -1)

    @jax.jit
    def results(scores, targets, part):
        def total(scores, y):
            value = loss(scores, y, tightness=0.5)
            return value.sum(), value

        gradient, value = jax.grad(total, has_aux=True)(scores, targets)
        expected = jax.grad(total, has_aux=True)(scores[:3], dense[:3, :6])
        along = loss(scores.T, part, axis=0, tightness=0.5)
        of_part, _ = jax.grad(total, has_aux=True)(scores, part)
        mapped = jax.vmap(lambda s, t: loss(s, t, tightness=0.5))(scores, targets)
        return value, (gradient, of_part), expected, along, mapped

    value, gradients, expected, along, mapped = results(
        SCORES, lists(), lists(0.3 * VALUES, rest="renormalize")
    )
    assert value[3] == 0
    for found in (value, along, mapped):
        np.testing.assert_allclose(found[:3], expected[1], **TOLERANCE)
    for gradient in gradients:
        np.testing.assert_array_equal(gradient[3], 0)
        np.testing.assert_allclose(gradient[:3], expected[0], **TOLERANCE)


@pytest.mark.parametrize("tightness", [0.0, 1.0])
def test_bucket(tightness):
    def by_hand(scores):
        own, others = scores[jnp.asarray([3, 0])], scores[jnp.asarray([1, 2, 4, 5])]
        merged = jnp.append(own, jax.nn.logsumexp(others))
        y = jnp.asarray([0.2, 0.6, 0.2])
        return fj.fitzpatrick_logistic_loss(merged, y, tightness=tightness)

    def loss(scores, log_values=False):
        values = np.log(0.8 * VALUES[0] + 1e-30) if log_values else 0.8 * VALUES[0]
        values = jnp.asarray(values, jnp.float32)
        targets = SparseTargets(jnp.asarray(INDICES[0]), values, "bucket", log_values)
        return fj.fitzpatrick_logistic_loss(scores, targets, tightness=tightness)

    @jax.jit
    def results(scores):
        values = loss(scores), loss(scores, True), by_hand(scores)
        return values, jax.hessian(loss)(scores), jax.hessian(by_hand)(scores)

    (plain, logarithms, expected), *hessians = results(SCORES[0])
    np.testing.assert_allclose(plain, expected, **TOLERANCE)
    np.testing.assert_allclose(logarithms, expected, **TOLERANCE)
    np.testing.assert_allclose(*hessians, rtol=1e-4, atol=1e-5)


def test_a_rounding_error_is_no_rest():
    """A bucket that no class is left for is empty, though float32 values sum to less than one."""
    loss = jax.jit(fj.logistic_loss)
    scores = jnp.asarray(np.random.default_rng(0).normal(size=(50, 20)), jnp.float32)
    values = jax.nn.softmax(3 * scores[::-1])
    targets = SparseTargets(jnp.broadcast_to(jnp.arange(20), (50, 20)), values, "bucket")
    expected = loss(scores, values)
    np.testing.assert_allclose(loss(scores, targets), expected, rtol=1e-5, atol=1e-6)
    # padding is no class: it neither leaves a class nor takes the last one
    padded = jnp.pad(targets.indices, ((0, 0), (0, 1)), constant_values=-1)
    wide = SparseTargets(padded, jnp.pad(values, ((0, 0), (0, 1))), "bucket")
    np.testing.assert_allclose(loss(scores, wide), expected, rtol=1e-5, atol=1e-6)
    theta, y = jnp.asarray([0.3, -0.2, -12.0], jnp.float32), jnp.asarray([0.4, 0.5999])
    full = loss(theta, SparseTargets(jnp.arange(2), y, "bucket"))
    with_padding = SparseTargets(jnp.asarray([0, 1, -1]), jnp.append(y, 0), "bucket")
    np.testing.assert_allclose(loss(theta, with_padding), full, rtol=1e-6)


def test_all_classes_and_bad_ones():
    scores, every = jnp.asarray([1.0, 0.0, 2.0]), jnp.asarray([2, 0, 1])
    values = jnp.asarray([0.5, 0.2, 0.3])
    both = jax.jit(jax.value_and_grad(lambda s, at: fj.logistic_loss(s, SparseTargets(at, values))))
    expected = np.exp(scores) / np.exp(scores).sum() - np.asarray([0.2, 0.3, 0.5])
    np.testing.assert_allclose(both(scores, every)[1], expected, **TOLERANCE)
    for bad in (every + 1, every.at[1].set(2**32), every.astype("uint32").at[1].set(2**31 + 1)):
        assert np.isnan(both(scores, bad)[0])  # also where 32 bits make a class or padding of it
