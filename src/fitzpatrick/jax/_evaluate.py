"""Losses and links at the arguments that users pass: what every function of this package calls."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from ..losses import Loss
from . import _derivatives
from ._arguments import Scores, as_labels, as_scores, as_targets
from ._sparse_targets import SparseTargets, loss_at_lists

Where = ArrayLike | None


def _finish(value: Array, scores: Scores) -> Array:
    """The losses in the scores' dtype; 0 for an example that has no class left, as in optax."""
    if scores.mask is not None:
        value = jnp.where(jnp.any(scores.mask, axis=-1), value, 0)
    return scores.restore(value)


def _on_vectors(
    loss: Loss, axis: int, where: Where, *matrices: ArrayLike
) -> tuple[Loss, list[Array]]:
    """A loss of matrices, which are the last two axes, as one of vectors."""
    if axis != -1 or where is not None:
        raise ValueError(
            f"axis and where are for vectors; the domain {loss.regularizer.domain!r} has matrices, "
            "the last two axes of scores"
        )
    vectors = []
    for matrix in map(jnp.asarray, matrices):
        omega, vector, _ = loss.regularizer.on_vectors(matrix, lambda out: out)
        vectors.append(vector)
    return Loss(omega, loss.tightness), vectors


def loss_at_targets(
    loss: Loss,
    scores: ArrayLike,
    targets: ArrayLike | SparseTargets,
    axis: int = -1,
    where: Where = None,
) -> Array:
    """The loss of each example, for targets of the shape of the scores, or lists of classes."""
    if loss.regularizer.domain.n_axes > 1 and not isinstance(targets, SparseTargets):
        if jnp.shape(scores) != jnp.shape(targets):
            raise ValueError(
                f"targets must have the shape of scores, {jnp.shape(scores)}, got "
                f"{jnp.shape(targets)}"
            )
        loss, (scores, targets) = _on_vectors(loss, axis, where, scores, targets)
    if isinstance(scores, SparseTargets):
        raise TypeError("SparseTargets came as scores; scores come first, and then targets")
    dense = None if isinstance(targets, SparseTargets) else targets
    checked = as_scores(scores, axis, where, loss.regularizer, dense)
    if isinstance(targets, SparseTargets):
        return _finish(loss_at_lists(loss, checked, targets), checked)
    y = as_targets(targets, checked, loss.regularizer)
    return _finish(_derivatives.value(loss, y, checked.theta), checked)


def loss_at_labels(
    loss: Loss, scores: ArrayLike, labels: ArrayLike, axis: int = -1, where: Where = None
) -> Array:
    """The loss of each example at its class label; NaN where there is no such class."""
    checked = as_scores(scores, axis, where, loss.regularizer, labels)
    index, in_range = as_labels(labels, checked)
    value = _derivatives.value(loss, index, checked.theta)
    return _finish(jnp.where(in_range, value, jnp.nan), checked)


def link_at(loss: Loss, scores: ArrayLike, axis: int = -1, where: Where = None) -> Array:
    """The predictions of a loss of tightness 0, whose maximizer does not depend on the targets."""
    if loss.regularizer.domain.n_axes > 1:
        loss, (vectors,) = _on_vectors(loss, axis, where, scores)
        return link_at(loss, vectors).reshape(jnp.shape(scores))
    checked = as_scores(scores, axis, where, loss.regularizer)
    y = jnp.zeros_like(checked.theta)
    _, p = _derivatives.value_and_maximizer(loss, y, checked.theta)
    return checked.restore_rows(p)


def probabilities_at(loss: Loss, scores: ArrayLike, axis: int = -1, where: Where = None) -> Array:
    """The class probabilities that belong to the scores, or those of each entry by itself."""
    checked = as_scores(scores, axis, where, loss.regularizer)
    q = loss.regularizer.solve_probabilities(checked.theta, loss.tightness)
    return checked.restore_rows(q)
