"""Classes that are left out, by ``where`` or by a score of −∞."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fitzpatrick as fp
import fitzpatrick.jax as fj
from tests.helpers import assert_close

from .cases import NAMES, SIMPLEX, TEST_ALL, K, N, draw, function, on_labels

KEPT = np.asarray([True, False, True, True])
# where and −∞ meet in the checks of the arguments, which all losses share
FEW = SIMPLEX if TEST_ALL else ["logistic", "fitzpatrick_sparsemax"]


def masked(loss):
    """Losses and the gradient of their sum, with scores, targets and ``where`` as arguments."""

    @jax.jit
    def both(theta, y, where):
        losses, pull = jax.vjp(lambda theta: loss(theta, y, where=where), theta)
        return losses, pull(jnp.ones_like(losses))[0]

    return both


@pytest.mark.parametrize("name", FEW)
def test_removed_classes_do_not_count(name):
    """A score of −∞ and where=False are the same, and the same as dropping the class."""
    y, theta = draw(name, scale=2.0)
    y = np.where(KEPT, y + 0.1, 0.0)
    y = y / y.sum(axis=-1, keepdims=True)
    both, core = masked(function(name)), fp.get_loss(name)
    everything = np.ones(K, dtype=bool)
    for losses, gradient in (
        both(theta, y, KEPT),
        both(np.where(KEPT, theta, -np.inf), y, everything),
    ):
        expected = core.value_and_gradient(y[:, KEPT], theta[:, KEPT])
        assert_close(losses, expected[0], rtol=1e-12, atol=1e-14)
        assert_close(np.asarray(gradient)[:, KEPT], expected[1], rtol=1e-12, atol=1e-13)
        assert np.all(np.asarray(gradient)[:, ~KEPT] == 0)


@pytest.mark.parametrize("name", FEW)
def test_where_takes_a_label_out(name):
    theta, labels = draw(name)[1], np.arange(N) % K
    where = np.asarray([True, True, False, True])
    losses, _ = masked(on_labels(name))(theta, labels, where)
    is_out = labels == 2
    assert np.all(np.isposinf(np.asarray(losses)[is_out]))
    position = np.cumsum(where)[labels] - 1  # of the label among the classes that are left
    expected = fp.get_loss(name).value(position[~is_out], theta[~is_out][:, where])
    assert_close(np.asarray(losses)[~is_out], expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(SIMPLEX)))
def test_masked_entries_of_a_product_are_left_out(name):
    y, theta = draw(name, scale=2.0)
    # what an entry that is left out has for a target is ignored
    losses, gradient = masked(function(name))(theta, np.where(KEPT, y, 0.7), KEPT)
    expected = fp.get_loss(name).value_and_gradient(y[:, KEPT], theta[:, KEPT])
    assert_close(losses, expected[0], rtol=1e-12, atol=1e-13)
    assert_close(np.asarray(gradient)[:, KEPT], expected[1], rtol=1e-12, atol=1e-13)
    assert np.all(np.asarray(gradient)[:, ~KEPT] == 0)


@pytest.mark.parametrize("name", FEW)
def test_an_example_without_classes_is_worth_nothing(name):
    y, theta = draw(name, scale=2.0)
    where = np.ones((N, K), dtype=bool)
    where[2] = False
    losses, gradient = map(np.asarray, masked(function(name))(theta, y, where))
    assert losses[2] == 0
    assert np.all(gradient[2] == 0)
    rest = np.arange(N) != 2
    expected = fp.get_loss(name).value(y[rest], theta[rest])
    assert_close(losses[rest], expected, rtol=1e-12, atol=1e-14)


def test_entries_of_your_own_regularizer_are_masked_at_the_score_whose_link_is_zero():
    """Half the squared distance to 1: there that score is −1."""
    from .user_regularizer import ScaledDistance

    loss = fj.make_fitzpatrick_loss(ScaledDistance(2.0, 1.0, fp.sets.Reals()), tightness=0.5)
    theta, y = np.asarray([[0.3, 5.0, -2.0]]), np.asarray([[0.5, 3.0, -1.0]])
    kept = np.asarray([True, False, True])
    losses, gradient = masked(loss)(theta, y, kept)
    core = fp.FitzpatrickLoss(ScaledDistance(2.0, 1.0, fp.sets.Reals()), 0.5)
    expected = core.value_and_gradient(y[:, kept], theta[:, kept])
    assert_close(losses, expected[0], rtol=1e-13, atol=0)
    assert_close(np.asarray(gradient)[:, kept], expected[1], rtol=1e-13, atol=0)
    assert np.all(np.asarray(gradient)[:, ~kept] == 0)


@pytest.mark.parametrize(
    "omega",
    [
        fp.regularizers.SquaredNorm(fp.sets.L2Ball()),
        fp.regularizers.SquaredNorm(fp.sets.Box(1.0, 2.0)),
        fp.regularizers.Quadratic(np.eye(3)),
        fp.regularizers.TwiceDifferentiable(None, None, None, domain=fp.sets.Box()),
    ],
    ids=["a ball", "a box without 0", "a matrix", "callables"],
)
def test_where_is_refused_if_a_class_cannot_be_absent(omega):
    loss = fj.make_fitzpatrick_loss(omega)
    with pytest.raises(ValueError, match=r"(?s)where is not defined for .*drop it from scores"):
        loss(jnp.ones((2, 3)), jnp.ones((2, 3)), where=KEPT[:3])
