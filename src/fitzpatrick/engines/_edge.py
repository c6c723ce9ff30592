"""The public edge: a pair (y, θ) of a user, checked, and the buffers that results go into."""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from .._array import Array, is_numpy, namespace
from .._validation import Restore, as_scores, as_targets_and_scores
from ._bind import try_bind
from ._bound import BoundLoss, CoreLoss, Out

if TYPE_CHECKING:
    from ..losses import Loss


def bind_pair(
    loss: "Loss", y: Any, theta: Any, n_threads: int | None
) -> tuple[BoundLoss, Array, Restore]:
    """The loss at y, the scores in working precision, and what casts results back.

    Where an engine serves the pair, the scores are θ itself.
    """
    bound = try_bind(loss, y, theta, n_threads)
    if bound is not None:
        return bound, theta, lambda result: result
    y, theta, restore = as_targets_and_scores(y, theta, loss.regularizer.domain)
    return CoreLoss(loss, y), theta, restore


def value_and_gradient(
    loss: "Loss", y: Any, theta: Any, out: Out, n_threads: int | None
) -> tuple[Array, Array]:
    """The loss of each row and its gradient, into ``out`` if given."""
    bound, scores, restore = bind_pair(loss, y, theta, n_threads)
    if out is not None and not isinstance(bound, CoreLoss):
        _check_pair(out, scores)
        _check_apart(out, y)
        return bound.value_and_gradient(scores, out)
    value, gradient = map(restore, bound.value_and_gradient(scores))
    if out is None:
        return value, gradient
    _check_pair(out, gradient)
    out[0][...], out[1][...] = value, gradient
    return out


def hessian_product(
    loss: "Loss", y: Any, theta: Any, v: Any, out: Array | None, n_threads: int | None
) -> Array:
    """The Hessian in θ times v, into ``out`` if given."""
    bound, scores, restore = bind_pair(loss, y, theta, n_threads)
    v = _as_direction(v, scores)
    if out is not None and not isinstance(bound, CoreLoss):
        _check_buffer(out, "out", tuple(scores.shape), scores)
        _check_apart((out,), y)
        if np.may_share_memory(out, v) and not _is_same(out, v):
            raise ValueError("out overlaps v, which is still needed; give v or another array")
        return bound.hessian_product(scores, v, out)
    product = restore(bound.hessian_product(scores, v))
    if out is None:
        return product
    _check_buffer(out, "out", tuple(product.shape), product)
    out[...] = product
    return out


def _as_direction(v: Any, theta: Array) -> Array:
    v, _ = as_scores(v, "v")
    if tuple(v.shape) != tuple(theta.shape):
        raise ValueError(
            f"v must have the shape of theta, got {tuple(v.shape)} and {tuple(theta.shape)}"
        )
    if namespace(v) is not namespace(theta):
        raise TypeError(
            "v and theta must come from one array library, "
            f"got {type(v).__name__} and {type(theta).__name__}"
        )
    return v


def _check_pair(out: Any, theta: Array) -> None:
    if not isinstance(out, tuple) or len(out) != 2:
        raise TypeError(
            "out must be a tuple of two arrays, one for the value and one for the gradient"
        )
    _check_buffer(out[0], "out[0]", tuple(theta.shape[:-1]), theta)
    _check_buffer(out[1], "out[1]", tuple(theta.shape), theta)


def _check_apart(out: tuple[Array, ...], y: Any) -> None:
    """Raise where a buffer overlaps the targets, which are read block by block, or the other."""
    targets = getattr(y, "data", None) if sparse.issparse(y) else y  # DOK has none
    for buffer in out:
        if isinstance(targets, np.ndarray) and np.may_share_memory(buffer, targets):
            raise ValueError("out overlaps y, which is still needed; give a separate array")
    if len(out) == 2 and np.may_share_memory(*out):
        raise ValueError("out[0] overlaps out[1]; give two separate arrays")


def _is_same(a: Array, b: Array) -> bool:
    """Whether two arrays of one shape are the same memory, entry by entry."""
    return bool(a.ctypes.data == b.ctypes.data and a.strides == b.strides)


def _check_buffer(out: Any, name: str, shape: tuple[int, ...], theta: Array) -> None:
    """Raise unless the results for θ can be written into ``out``."""
    if not (is_numpy(theta) and isinstance(out, np.ndarray)):
        raise TypeError(
            f"{name} must be a NumPy array, to go with NumPy scores, "
            f"got {type(out).__name__} and {type(theta).__name__}"
        )
    if out.shape != shape or out.dtype != theta.dtype:
        raise ValueError(
            f"{name} must have shape {shape} and dtype {theta.dtype}, "
            f"got {out.shape} and {out.dtype}"
        )
    if not out.flags.writeable:
        raise ValueError(f"{name} is read-only; give an array that can be written to")
    if np.may_share_memory(out, theta):
        raise ValueError(f"{name} overlaps theta, which is still needed; give a separate array")
