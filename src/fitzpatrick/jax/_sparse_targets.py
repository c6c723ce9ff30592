"""Targets that list the classes of an example: a teacher's top k, crowd votes, several labels."""

import math
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import logsumexp

from ..losses import Loss
from ..sets._base import membership_tolerance
from . import _derivatives
from ._arguments import Scores, as_classes

__all__ = ["SparseTargets"]

_RESTS = (None, "renormalize", "bucket")


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("indices", "values"),
    meta_fields=("rest", "log_values"),
)
@dataclass(frozen=True, eq=False)
class SparseTargets:
    r"""Targets of examples that have few classes each; a pytree of two arrays.

    They go wherever a loss on the simplex takes targets. Values are not checked: a class out of
    range makes its example NaN.

    Args:
        indices: integers of shape (…, m), where … is the shape of scores without their classes.
            Negative ones are padding, and their values are ignored. An example of padding alone has
            the loss 0. No class may be listed twice.
        values: floating-point numbers of the same shape, which sum to one, unless ``rest`` says
            what is missing.
        rest: what becomes of the part r = 1 − Σ values that the list leaves out.
            ``"renormalize"`` divides the values by their sum. ``"bucket"``, for the logistic
            losses, takes all other classes for one whose target is r and whose score is their
            log-sum-exp. None allows no rest.
        log_values: True if ``values`` holds logarithms, such as a teacher's log-probabilities.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import SparseTargets, fitzpatrick_logistic_loss
        >>> top = SparseTargets(jnp.asarray([[2, 0], [1, -1]]), jnp.asarray([[0.7, 0.3], [1, 0]]))
        >>> print(fitzpatrick_logistic_loss(jnp.zeros((2, 3)), top).round(4))
        [0.2008 0.4631]
    """

    indices: Array
    values: Array
    rest: str | None = None
    log_values: bool = False

    def __post_init__(self) -> None:
        if self.rest not in _RESTS:
            raise ValueError(f"rest must be 'renormalize', 'bucket' or None, got {self.rest!r}")

    def proportions(self, dtype: jnp.dtype) -> Array:
        """The values as they enter a loss, 0 in padding, in a dtype."""
        is_padding = jnp.asarray(self.indices) < 0
        values = jnp.asarray(self.values).astype(dtype)
        values = jnp.where(is_padding, 0, jnp.exp(values) if self.log_values else values)
        if self.rest != "renormalize":
            return values
        total = jnp.sum(values, axis=-1, keepdims=True)
        return values / jnp.where(jnp.all(is_padding, axis=-1, keepdims=True), 1, total)


def _check(targets: SparseTargets, scores: Scores, loss: Loss) -> None:
    shape, expected = jnp.shape(targets.indices), scores.theta.shape[:-1]
    if jnp.shape(targets.values) != shape or shape[:-1] != expected or not shape:
        raise ValueError(
            "indices and values of SparseTargets must have the shape of scores without the axis of "
            f"the classes, {expected}, and one axis more, got {shape} and "
            f"{jnp.shape(targets.values)}"
        )
    kinds = jnp.asarray(targets.indices).dtype, jnp.asarray(targets.values).dtype
    if not jnp.issubdtype(kinds[0], jnp.integer) or not jnp.issubdtype(kinds[1], jnp.floating):
        raise TypeError(
            f"SparseTargets has integer indices and floating-point values, got {kinds[0]} and "
            f"{kinds[1]}"
        )
    if not loss.regularizer.domain.has_labels:
        raise ValueError(
            "SparseTargets are for losses on the simplex, this one has the domain "
            f"{loss.regularizer.domain!r}; pass targets of the shape of the scores"
        )
    if targets.rest == "bucket" and loss.regularizer.entmax_alpha != 1:
        raise ValueError(
            "rest='bucket' is for the logistic losses, whose entries without a target are one sum; "
            "use rest='renormalize'"
        )


def loss_at_lists(loss: Loss, scores: Scores, targets: SparseTargets) -> Array:
    """The loss of each example.

    Entries of the negentropy without a target are one class, whose score is their log-sum-exp. The
    other losses see a row of proportions.
    """
    _check(targets, scores, loss)
    k, batch = scores.theta.shape[-1], scores.theta.shape[:-1]
    n = math.prod(batch)
    theta = scores.theta.reshape(n, k)
    indices = jnp.asarray(targets.indices).reshape(n, jnp.shape(targets.indices)[-1])
    values = targets.proportions(theta.dtype).reshape(indices.shape)
    classes, is_class = as_classes(indices, k)
    is_empty = jnp.all(indices < 0, axis=-1)
    is_outside = jnp.any(~is_class & (indices >= 0), axis=-1)
    rows = jnp.arange(n)[:, None]
    # what is not a class has its place in one more column
    place = jnp.where(is_class, classes, k)
    if loss.regularizer.entmax_alpha == 1:
        left = jnp.zeros((n, 1), theta.dtype)
        if targets.rest == "bucket":
            left = jnp.maximum(1 - jnp.sum(values, axis=-1, keepdims=True), 0)
            # where no class is left, a rounding error would have a loss of ∞
            is_whole = jnp.sum(is_class, axis=-1, keepdims=True) == k
            slack = membership_tolerance(targets.values) * math.sqrt(max(classes.shape[1], 1))
            left = jnp.where(is_whole & (left <= slack), 0, left)
        y = jnp.concatenate([values, jnp.where(is_empty[:, None], 1, left)], axis=-1)
        wide = jnp.pad(theta, ((0, 0), (0, 1)), constant_values=-jnp.inf)
        others = wide.at[rows, place].set(-jnp.inf)
        is_none = jnp.all(others == -jnp.inf, axis=-1, keepdims=True)
        lse = logsumexp(jnp.where(is_none, 0, others), axis=-1, keepdims=True)
        lse = jnp.where(is_none, -jnp.inf, lse)
        theta = jnp.concatenate([jnp.take_along_axis(wide, place, axis=-1), lse], axis=-1)
    else:
        y = jnp.zeros((n, k + 1), theta.dtype).at[rows, place].add(values)[:, :k]
        y = y.at[:, 0].add(is_empty)
    value = _derivatives.value(loss, y, theta)
    value = jnp.where(is_outside, jnp.nan, jnp.where(is_empty, 0, value))
    return value.reshape(batch)
