"""What users pass in: shapes and dtypes are checked while JAX traces, in terms of the arguments.

Values are never looked at, so that a function does the same under ``jit`` and without it. Behind
this edge the classes are the last axis, in float32 or float64, and masked classes have the score
that removes them.
"""

import operator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._array import is_integer, is_supported_float, working_precision
from .._validation import as_tightness
from ..regularizers import Regularizer


@dataclass(frozen=True)
class Scores:
    """Scores as they came, and as the core takes them."""

    given: Array
    axis: int
    theta: Array  # classes last, in working precision, masked
    mask: Array | None  # the classes that count, of the shape of theta

    def restore(self, out: Array) -> Array:
        """The result in the dtype that the scores came in."""
        return out.astype(self.given.dtype)

    def restore_rows(self, p: Array) -> Array:
        """Predictions in the form of the scores; 0 for classes that are left out."""
        if self.mask is not None:
            p = jnp.where(self.mask, p, 0)
        return self.restore(jnp.moveaxis(p, -1, self.axis))


def _as_array(x: Any, name: str) -> Array:
    try:
        return jnp.asarray(x)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers, got {type(x).__name__}") from error


_SWAPPED = "; or are the arguments swapped? Scores come first"


def _as_axis(axis: int, scores: Array) -> int:
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise TypeError(f"axis must be an integer, the axis of the classes, got {axis!r}")
    axis = operator.index(axis)
    if scores.ndim == 0:
        raise ValueError("scores must have at least one axis, the classes, got a scalar")
    if not -scores.ndim <= axis < scores.ndim:
        raise ValueError(f"axis={axis} is not an axis of scores, which have shape {scores.shape}")
    axis %= scores.ndim
    if scores.shape[axis] == 0:
        raise ValueError(f"scores have no classes along axis {axis}: their shape is {scores.shape}")
    return axis


def _as_mask(where: ArrayLike, shape: tuple[int, ...]) -> Array:
    mask = _as_array(where, "where")
    if mask.dtype != jnp.bool_:
        raise TypeError(f"where must be boolean, True for the classes to keep, got {mask.dtype}")
    try:
        return jnp.broadcast_to(mask, shape)
    except ValueError as error:
        raise ValueError(
            f"where of shape {mask.shape} does not broadcast to scores of shape {shape}"
        ) from error


def as_static(number: Any, name: str, why: str) -> Any:
    """A number that formulas depend on, so that it cannot be traced; ``why`` ends the error."""
    if isinstance(number, jax.core.Tracer):
        raise TypeError(
            f"{name} of a loss must be a Python number, but JAX is tracing it: mark it static, as "
            f"in jax.jit(f, static_argnames='{name}'), or close over it, as in lambda scores, "
            f"targets: loss(scores, targets, {name}=1.5). {why}"
        )
    if isinstance(number, Array) and number.ndim != 0:
        raise TypeError(f"{name} must be one number, got an array of shape {number.shape}")
    return number.item() if isinstance(number, Array) else number


def as_static_tightness(tightness: Any) -> float:
    """The tightness as a Python float."""
    why = "It cannot be learned: the loss decreases in it, so that a gradient step would raise it "
    return as_tightness(as_static(tightness, "tightness", why + "without end"))


def _masking_score(regularizer: Regularizer, like: Array) -> Array:
    """The score that keeps a class with target 0 out of the loss.

    It is −∞ where an example is spread over classes. Where every entry is on its own it is ∇Ψ(0),
    the score whose link is 0: −∞ for entropies, 0 for squared distances.
    """
    domain = regularizer.domain
    if domain.has_labels:
        return jnp.full_like(like[..., :1], -jnp.inf)
    if regularizer.is_entrywise:
        zero = jnp.zeros_like(like[..., :1])
        if bool(domain.contains(np.zeros(1))):
            score: Array = regularizer.potential_gradient(zero)
            return score
    raise ValueError(
        f"where is not defined for {regularizer!r}: a class that is left out would change the "
        "others; drop it from scores and targets instead"
    )


def as_scores(
    scores: ArrayLike,
    axis: int,
    where: ArrayLike | None,
    regularizer: Regularizer,
    targets: ArrayLike | None = None,
) -> Scores:
    """Checked scores, without the classes that ``where`` leaves out; targets serve an error."""
    given = _as_array(scores, "scores")
    if not is_supported_float(given):
        are_swapped = targets is not None and is_supported_float(_as_array(targets, "targets"))
        raise TypeError(
            "scores must be floating-point numbers (float16, bfloat16, float32 or float64), "
            f"got {given.dtype}; convert them with scores.astype(jnp.float32)"
            f"{_SWAPPED if are_swapped else ''}"
        )
    axis = _as_axis(axis, given)
    theta = jnp.moveaxis(working_precision(given), axis, -1)
    if where is None:
        return Scores(given, axis, theta, None)
    mask = jnp.moveaxis(_as_mask(where, given.shape), axis, -1)
    theta = jnp.where(mask, theta, _masking_score(regularizer, theta))
    return Scores(given, axis, theta, mask)


def as_targets(targets: ArrayLike, scores: Scores, regularizer: Regularizer) -> Array:
    """Targets in the form of ``scores.theta``.

    Where every entry is on its own, entries are left out with their targets. On the simplex a class
    that is left out keeps its target, as with a score of −∞, unless the example has no class left.
    """
    y = _as_array(targets, "targets")
    shape = scores.given.shape
    if y.shape != shape:
        hint = ""
        if is_integer(y) and y.ndim == len(shape) - 1:
            hint = "; for class labels use the function that ends in _with_integer_labels"
        if y.ndim == len(shape) + 1:
            hint = _SWAPPED
        raise ValueError(f"targets must have the shape of scores, {shape}, got {y.shape}{hint}")
    if not (is_supported_float(y) or is_integer(y) or y.dtype == jnp.bool_):
        raise TypeError(
            f"targets must be numbers in float16 to float64, integers or booleans, got {y.dtype}"
        )
    # a sum has the sharding of the scores, also where the targets are replicated
    y = jnp.moveaxis(y.astype(scores.theta.dtype), scores.axis, -1) + jnp.zeros_like(scores.theta)
    if scores.mask is None:
        return y
    counts = scores.mask
    if not regularizer.is_entrywise:
        counts = jnp.any(counts, axis=-1, keepdims=True)
    return jnp.where(counts, y, 0)


def as_labels(labels: ArrayLike, scores: Scores) -> tuple[Array, Array]:
    """Labels brought into range, and which of them were."""
    array = _as_array(labels, "labels")
    if not is_integer(array):
        hint = "; for proportions use the function without _with_integer_labels"
        raise TypeError(
            f"labels must be integers, the index of a class, got {array.dtype}"
            f"{_SWAPPED if array.ndim == scores.given.ndim + 1 else hint}"
        )
    expected = scores.theta.shape[:-1]
    if array.shape != expected:
        raise ValueError(
            f"labels must have the shape of scores without the axis of the classes, {expected} "
            f"for scores of shape {scores.given.shape} and axis {scores.axis}, got {array.shape}"
        )
    array = array + jnp.zeros_like(scores.theta[..., 0], dtype=array.dtype)  # shards as scores do
    return as_classes(array, scores.theta.shape[-1])


def as_classes(indices: Array, k: int) -> tuple[Array, Array]:
    """Integers as indices of k classes, 0 for those out of range, and which are in range."""
    if indices.dtype.itemsize < 4:
        indices = indices.astype(jnp.int32)  # small integer types cannot hold every class
    is_class = (indices >= 0) & (indices < k)
    return jnp.where(is_class, indices, 0).astype(jnp.int32), is_class
