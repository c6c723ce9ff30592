"""The permutahedron, whose vertices are all orders of given weights."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._array import Array, as_library, as_real, is_numpy, is_torch, namespace, quiet
from ._base import ConvexSet, membership_tolerance
from .isotonic import block_means, decreasing_blocks, nearest_in_order


def _unsort(x: Array, order: Array) -> Array:
    """Undo ``x = take_along_axis(…, order)``."""
    if is_numpy(x):
        out = np.empty_like(x)
        np.put_along_axis(out, order, x, axis=-1)
        return out
    if is_torch(x):
        return x.scatter(-1, order, x)
    xp = namespace(x)
    return xp.take_along_axis(x, xp.argsort(order, axis=-1, stable=True), axis=-1)


@dataclass(frozen=True, init=False)
class Permutahedron(ConvexSet):
    r"""The convex hull of all permutations of the weights w: rankings and their mixtures.

    The highest score gets the largest weight. The projection sorts the scores and subtracts the
    isotonic regression of :math:`x_{\downarrow} - w_{\downarrow}`: O(d log d) for each row.

    Args:
        weights: one number for each of the d items, in any order, or d itself for the ranks
            d, …, 1.

    Example:
        >>> import numpy as np
        >>> Permutahedron(3).project(np.asarray([0.1, 9.0, 0.3]))
        array([1.4, 3. , 1.6])
        >>> Permutahedron((1.0, 0.5, 0.0)).maximize(np.asarray([0.1, 9.0, 0.3]))
        array([0. , 1. , 0.5])
    """

    weights: tuple[float, ...]

    has_interior: ClassVar[bool] = False

    def __init__(self, weights: Iterable[float] | int) -> None:
        given = weights
        if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
            given = range(1, int(given) + 1)
        try:
            ordered = tuple(sorted((float(w) for w in given), reverse=True))  # type: ignore[union-attr]
        except TypeError as error:
            raise TypeError(
                f"Permutahedron needs a sequence of weights, or their number, got {given!r}"
            ) from error
        if not ordered or not all(map(math.isfinite, ordered)):
            raise ValueError(f"Permutahedron needs at least one weight, all finite, got {given!r}")
        object.__setattr__(self, "weights", ordered)

    def _weights_like(self, x: Array) -> Array:
        if x.shape[-1] != len(self.weights):
            raise ValueError(
                f"a permutahedron of {len(self.weights)} weights has points with as many entries, "
                f"got rows of {x.shape[-1]}"
            )
        return namespace(x).astype(as_library(self.weights, x), x.dtype)

    def _sort(self, x: Array) -> tuple[Array, Array, Array]:
        """The scores from the highest on, their order, and the weights that they get."""
        xp, weights = namespace(x), self._weights_like(x)
        order = xp.argsort(-x, axis=-1, stable=True)
        return xp.take_along_axis(x, order, axis=-1), order, xp.broadcast_to(weights, x.shape)

    @quiet
    def project(self, x: Array) -> Array:
        ordered, order, weights = self._sort(as_real(x, "x"))
        return _unsort(nearest_in_order(ordered, weights), order)

    def maximize(self, theta: Array) -> Array:
        theta = as_real(theta, "theta")
        xp = namespace(theta)
        _, order, weights = self._sort(theta)
        is_nan = xp.any(xp.isnan(theta), axis=-1, keepdims=True)
        return xp.where(is_nan, xp.nan, _unsort(weights, order))

    def _excess(self, x: Array, order: Array) -> Array:
        """By how much the first i weights exceed the first i entries in an order, i = 1, …, d."""
        xp = namespace(x)
        difference = self._weights_like(x) - xp.take_along_axis(x, order, axis=-1)
        return xp.cumulative_sum(difference, axis=-1)

    @quiet
    def contains(self, x: Array) -> Array:
        x = as_real(x, "x")
        xp = namespace(x)
        excess = self._excess(x, xp.argsort(-x, axis=-1, stable=True))
        slack = membership_tolerance(x) * max(1.0, *(abs(w) for w in self.weights))
        return xp.all(excess >= -slack, axis=-1) & (xp.abs(excess[..., -1]) <= slack)

    @quiet
    def normal_gap(self, y: Array, p: Array, normal: Array) -> Array:
        # Σ (n_(i) − n_(i+1)) (w_1 + … + w_i − y_(1) − … − y_(i)), in the order of n
        xp = namespace(y)
        order = xp.argsort(-normal, axis=-1, stable=True)
        ordered = xp.take_along_axis(normal, order, axis=-1)
        excess = xp.clip(self._excess(y, order), 0)
        return xp.sum((ordered[..., :-1] - ordered[..., 1:]) * excess[..., :-1], axis=-1)

    @quiet
    def project_derivative(self, x: Array, v: Array) -> Array:
        ordered, order, weights = self._sort(as_real(x, "x"))
        starts = decreasing_blocks(ordered - weights)
        v = namespace(x).take_along_axis(v, order, axis=-1)
        return _unsort(v - block_means(v, starts), order)

    def violation(self, row: Array) -> str:
        total, expected = float(namespace(row).sum(row)), math.fsum(self.weights)
        if not abs(total - expected) <= membership_tolerance(row) * max(1.0, abs(expected)):
            return f"it sums to {total:.10g}, and the weights sum to {expected:.10g}"
        return "some of its largest entries sum to more than as many of the largest weights"
