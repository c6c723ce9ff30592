r"""Parts of the unit cube with a given sum, :math:`\{p \in [0, 1]^d, \sum_i p_i = b\}`.

Projections, sparsemax with a budget b, are :math:`p = \min(1, (x - \tau)_+)`. With m = ⌈b⌉ and
:math:`x_{(m)}` the m-th largest score, τ is between :math:`x_{(m)} - 1` and :math:`x_{(m)}`: scores
are shifted by that one, and those further away than 1 are cut off, so that their size costs no
digits.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._array import (
    Array,
    as_real,
    is_jax,
    namespace,
    quiet,
    row_sum,
    with_derivative,
    without_derivatives,
)
from .._root import solve_total
from ._base import ConvexSet, elementwise_gap, membership_tolerance
from .product import Box


def _is_free(p: Array) -> Array:
    """1 where an entry moves with its score, else 0; NaN where it is NaN."""
    xp = namespace(p)
    return xp.ceil(p) - xp.floor(p)


def _at_place(x: Array, place: Array) -> Array:
    """The largest score of each row, the second largest, …, for places (…, 1) from 1."""
    xp, k = namespace(x), x.shape[-1]
    place = k - xp.where(xp.isnan(place), 1.0, place)
    places = xp.astype(place, xp.int32 if is_jax(x) else xp.int64)
    if isinstance(x, np.ndarray):
        ordered: Array = np.partition(x, np.unique(places))  # takes a fraction of a sort
    else:
        ordered = xp.sort(x, axis=-1)
    return xp.take_along_axis(ordered, places, axis=-1)


def _clipped(x: Array) -> Array:
    """x within [0, 1]; NumPy writes over it, since a new array costs more than what is computed."""
    return np.clip(x, 0, 1, out=x) if isinstance(x, np.ndarray) else namespace(x).clip(x, 0, 1)


@quiet
def project_to_budget(x: Array, budget: Array) -> Array:
    """The nearest point of each row, for budgets that broadcast to (…, 1).

    A score of −∞ is 0. Where fewer scores than the budget are finite, each of them is 1.

    Example:
        >>> import numpy as np
        >>> project_to_budget(np.asarray([2.0, 0.9, 0.6, -1.0]), np.asarray([2.0])).round(2)
        array([1.  , 0.65, 0.35, 0.  ])
    """
    xp = namespace(x)
    budget = budget + xp.zeros_like(x[..., :1])
    pivot = _at_place(x, xp.clip(xp.ceil(budget), 1, x.shape[-1]))
    # an infinite pivot is cut off, and all finite scores with it
    largest = float(xp.finfo(x.dtype).max)
    z = xp.clip(x - xp.clip(pivot, -largest, largest), -1, 1)

    def point(tau: Array) -> tuple[Array, Array]:
        p = _clipped(z - tau)
        return p, xp.astype((p > 0) & (p < 1), p.dtype)

    low = 0 * row_sum(z) - 1  # a NaN stays in its row
    tau = solve_total(point, low, (low, low + 1), budget)
    return _clipped(z - tau)


@quiet
def budget_product(p: Array, v: Array) -> Array:
    """The Jacobian in the scores, times v, from the projections p."""
    free = _is_free(p)
    count = row_sum(free)
    return free * (v - row_sum(free * v) / namespace(p).where(count == 0, 1.0, count))


@quiet
def budget_slope(p: Array) -> Array:
    """∂p/∂b: free entries share what is added."""
    free = _is_free(p)
    count = row_sum(free)
    return free / namespace(p).where(count == 0, 1.0, count)


def _threshold(normal: Array, total: float) -> Array:
    """The least of the scores at which the best vertex with that sum is positive, (…, 1)."""
    place = float(max(1, math.ceil(total)))
    return _at_place(normal, namespace(normal).full_like(normal[..., :1], place))


def _check_total(total: float, x: Array, name: str) -> None:
    if total > x.shape[-1]:
        raise ValueError(
            f"{name} asks for a sum of {total:g}, but {x.shape[-1]} entries of at most 1 each "
            f"cannot sum to it; a row needs at least {math.ceil(total)} entries"
        )


@dataclass(frozen=True)
class Budget(ConvexSet):
    r"""Vectors in the unit cube whose sum is bounded, :math:`\ell \le \sum_i p_i \le h`.

    For integers its vertices are the subsets of between ℓ and h items, such as the labels of a
    sample that has at least one and at most five.

    Args:
        low: the least sum of a row, at least 0.
        high: the largest sum, at least ``low``.

    Example:
        >>> import numpy as np
        >>> Budget(1, 2).project(np.asarray([[2.0, 0.9, 0.6], [0.1, -0.3, -0.5]])).round(2)
        array([[1.  , 0.65, 0.35],
               [0.67, 0.27, 0.07]])
        >>> Budget(1, 2).maximize(np.asarray([-2.0, -0.9, -0.6]))
        array([0., 0., 1.])
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high:
            raise ValueError(f"Budget needs 0 <= low <= high, got [{self.low}, {self.high}]")

    def _bounded(self, total: Array) -> Array:
        return namespace(total).clip(total, float(self.low), float(self.high))

    def project(self, x: Array) -> Array:
        x = as_real(x, "x")
        _check_total(self.low, x, repr(self))
        point = without_derivatives(x)
        clipped = Box().project(point)
        total = row_sum(clipped)
        budget = self._bounded(total)
        p = namespace(x).where(total == budget, clipped, project_to_budget(point, budget))
        return with_derivative(p, x, lambda v: self._product(point, p, v))

    def maximize(self, theta: Array) -> Array:
        theta = as_real(theta, "theta")
        _check_total(self.low, theta, repr(self))
        xp = namespace(theta)
        total = self._bounded(row_sum(xp.astype(theta > 0, theta.dtype)))
        # ones at the highest scores, of equals at the first, and what is left after them
        order = xp.argsort(-theta, axis=-1, stable=True)
        rank = xp.astype(xp.argsort(order, axis=-1, stable=True), theta.dtype)
        is_nan = xp.any(xp.isnan(theta), axis=-1, keepdims=True)
        return xp.where(is_nan, xp.nan, xp.clip(total - rank, 0, 1))

    def contains(self, x: Array) -> Array:
        x = as_real(x, "x")
        total = namespace(x).sum(x, axis=-1)
        slack = membership_tolerance(x) * max(1.0, float(self.high))
        return Box().contains(x) & (total >= self.low - slack) & (total <= self.high + slack)

    @quiet
    def normal_gap(self, y: Array, p: Array, normal: Array) -> Array:
        # with a threshold of 0 unless p has the largest sum, then above, or the least, then below
        xp, n = namespace(y), normal.shape[-1]
        threshold = xp.zeros_like(normal[..., :1])
        if self.high < n:
            threshold = threshold + xp.clip(_threshold(normal, self.high), 0, xp.inf)
        if self.low > 0:
            threshold = threshold + xp.clip(_threshold(normal, self.low), -xp.inf, 0)
        shift = xp.clip(threshold * row_sum(p - y), 0, xp.inf)[..., 0]
        # Σ (p_i − y_i)(n_i − threshold); entries inside are at it, up to rounding errors
        above = xp.where((p > 0) & (p < 1), 0.0, normal - threshold)
        return xp.sum(xp.clip(elementwise_gap(p, y, above), 0, xp.inf), axis=-1) + shift

    def _product(self, x: Array, p: Array, v: Array) -> Array:
        total = row_sum(Box().project(x))
        is_inside = (total > self.low) & (total < self.high)
        free, tied = Box().project_derivative(x, v), budget_product(p, v)
        return namespace(x).where(is_inside, free, tied)

    def project_derivative(self, x: Array, v: Array) -> Array:
        return self._product(x, self.project(x), v)

    def same_face(self, y: Array, z: Array) -> Array:
        xp, slack = namespace(y), membership_tolerance(z) * max(1.0, float(self.high))
        sums, at = xp.sum(y, axis=-1), xp.sum(z, axis=-1)
        same = Box().same_face(y, z)
        for end in (self.low, self.high):
            same = same & ((xp.abs(at - end) > slack) | (xp.abs(sums - end) <= slack))
        return same

    def violation(self, row: Array) -> str:
        if not bool(Box().contains(row)):
            return Box().violation(row)
        total = float(namespace(row).sum(row))
        bounds = f"outside [{self.low:g}, {self.high:g}]"
        return f"it sums to {total:.10g}, {bounds if self.low < self.high else f'not {self.low:g}'}"


@dataclass(frozen=True, init=False, repr=False)
class CappedSimplex(Budget):
    r"""Vectors in the unit cube that sum to k, :math:`\{p \in [0, 1]^d, \sum_i p_i = k\}`.

    For an integer k its vertices are the subsets of k of d items: the set for top-k selection and
    for multi-label targets with a known number of labels. The projection is
    :math:`\min(1, (x - \tau)_+)`.

    Args:
        k: the sum of a row, a positive number of at most d.

    Example:
        >>> import numpy as np
        >>> CappedSimplex(2).project(np.asarray([2.0, 0.9, 0.6, -1.0])).round(2)
        array([1.  , 0.65, 0.35, 0.  ])
        >>> CappedSimplex(2).maximize(np.asarray([2.0, 0.9, 0.6, -1.0]))
        array([1., 1., 0., 0.])
    """

    has_interior: ClassVar[bool] = False

    def __init__(self, k: float) -> None:
        if isinstance(k, bool) or not isinstance(k, (int, float, np.number)):
            raise TypeError(f"CappedSimplex needs a number k, the sum of a row, got {k!r}")
        if not 0 < k < math.inf:
            raise ValueError(f"CappedSimplex needs a positive sum k, got {k}")
        object.__setattr__(self, "low", k)
        object.__setattr__(self, "high", k)

    @property
    def k(self) -> float:
        """The sum of a row."""
        return self.low

    def __repr__(self) -> str:
        return f"CappedSimplex(k={self.k!r})"
