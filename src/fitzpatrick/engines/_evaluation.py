"""A loss at one pair (y, θ) of a user: checked here, computed by an engine or by the core."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from .._array import Array, is_numpy, namespace
from .._validation import Restore, as_scores, as_targets_and_scores
from ..regularizers import Solution
from ._bind import serve
from ._bound import BoundLoss

if TYPE_CHECKING:
    from ..losses import Loss


class Evaluation(ABC):
    """What a loss can be asked at one pair."""

    @abstractmethod
    def value(self) -> Array:
        """The loss of each row."""

    @abstractmethod
    def gradient(self) -> Array:
        """Its gradient in θ."""

    @abstractmethod
    def value_and_gradient(self, out: tuple[Array, Array] | None) -> tuple[Array, Array]:
        """Both, into ``out`` if given."""

    @abstractmethod
    def hessian_product(self, v: Array, out: Array | None) -> Array:
        """The Hessian in θ times v, into ``out`` if given."""

    @abstractmethod
    def y_star(self) -> Array:
        """The maximiser."""


def evaluate(loss: "Loss", y: Any, theta: Any, n_threads: int | None) -> Evaluation:
    """Check a pair and say who computes it."""
    bound = serve(loss, y, theta, n_threads)
    if bound is not None:
        return EngineEvaluation(bound, theta, y)
    y, theta, restore = as_targets_and_scores(y, theta, loss.regularizer.domain)
    if y.ndim < theta.ndim:
        return CoreEvaluation(loss.solve_labels(y, theta), theta, restore)
    return CoreEvaluation(loss.solve(y, theta), theta, restore)


@dataclass(frozen=True, eq=False)
class EngineEvaluation(Evaluation):
    """NumPy scores, in blocks."""

    bound: BoundLoss
    theta: Array
    y: Any

    def value(self) -> Array:
        return self.bound.value(self.theta)

    def gradient(self) -> Array:
        return self.bound.value_and_gradient(self.theta)[1]

    def value_and_gradient(self, out: tuple[Array, Array] | None) -> tuple[Array, Array]:
        if out is not None:
            _check_pair(out, self.theta)
            _check_apart(out, self.y)
        return self.bound.value_and_gradient(self.theta, out)

    def hessian_product(self, v: Array, out: Array | None) -> Array:
        v = _as_direction(v, self.theta)
        if out is not None:
            _check_buffer(out, "out", tuple(self.theta.shape), self.theta)
            _check_apart((out,), self.y)
            if np.may_share_memory(out, v) and not _is_same(out, v):
                raise ValueError("out overlaps v, which is still needed; give v or another array")
        return self.bound.hessian_product(self.theta, v, out)

    def y_star(self) -> Array:
        return self.bound.y_star(self.theta)


@dataclass(frozen=True, eq=False)
class CoreEvaluation(Evaluation):
    """Arrays of any library, shape and precision."""

    solution: Solution
    theta: Array
    restore: Restore

    def value(self) -> Array:
        return self.restore(self.solution.value())

    def gradient(self) -> Array:
        return self.restore(self.solution.gradient())

    def value_and_gradient(self, out: tuple[Array, Array] | None) -> tuple[Array, Array]:
        value, gradient = self.value(), self.gradient()
        if out is None:
            return value, gradient
        _check_pair(out, gradient)
        out[0][...], out[1][...] = value, gradient
        return out

    def hessian_product(self, v: Array, out: Array | None) -> Array:
        product = self.restore(self.solution.hessian_product(_as_direction(v, self.theta)))
        if out is None:
            return product
        _check_buffer(out, "out", tuple(product.shape), product)
        out[...] = product
        return out

    def y_star(self) -> Array:
        return self.restore(self.solution.y_star)


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
