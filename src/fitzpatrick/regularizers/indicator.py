r"""The indicator of a set, :math:`\Omega = \iota_C`: the perceptron loss at every tightness."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from .._array import Array, inner, namespace, row_max, row_sum
from ..sets import ConvexSet, Simplex
from ..sets._base import elementwise_gap
from ._base import (
    PointSolution,
    Regularizer,
    Shard,
    Solution,
    at_labels,
    check_vectors,
    mark_labels,
)


@dataclass(frozen=True)
class Indicator(Regularizer):
    r"""Indicator of a convex set, :math:`\Omega = \iota_C`: 0 on C, +∞ elsewhere.

    - Link: a maximizer of :math:`\langle y', \theta\rangle` over C (set-valued at ties, where the
      oracle of the set chooses).
    - At every tightness the loss is the perceptron loss
      :math:`\max_{y' \in C} \langle y' - y, \theta\rangle` (paper: the Fitzpatrick loss of an
      indicator is its Fenchel-Young loss).

    Args:
        domain: the set C; the simplex by default.

    Example:
        >>> import numpy as np
        >>> import fitzpatrick as fp
        >>> loss = fp.FenchelYoungLoss(Indicator(fp.sets.Simplex()))
        >>> loss.value(np.asarray([0.0, 1.0]), np.asarray([2.0, 0.5]))
        np.float64(1.5)
    """

    domain: ConvexSet = Simplex()
    has_curvature = False

    @property
    def is_row_wise(self) -> bool:
        return self.domain.coordinates is not None

    def potential(self, y: Array) -> Array:
        return namespace(y).zeros_like(y[..., 0])

    def potential_gradient(self, z: Array) -> Array:
        return namespace(z).zeros_like(z)

    def potential_curvature(self, z: Array, v: Array) -> Array:
        return self.potential(z)

    def potential_divergence(self, y: Array, z: Array) -> Array:
        return self.potential(y)

    def solve_conjugate(self, theta: Array) -> Array:
        return inner(self.domain.maximize(theta), theta)

    def solve(self, y: Array, theta: Array, tightness: float) -> Solution:
        check_vectors(self.domain)
        p = self.domain.maximize(theta)
        return self._solution(y, theta, p, lambda: self.domain.normal_gap(y, p, theta))

    def solve_labels(self, labels: Array, theta: Array, tightness: float) -> Solution:
        def value() -> Array:
            return (row_max(theta) - at_labels(theta, labels))[..., 0]

        p = self.domain.maximize(theta)
        return self._solution(mark_labels(labels, theta), theta, p, value)

    def _solution(
        self, y: Array, theta: Array, p: Array, value: Callable[[], Array]
    ) -> PointSolution:
        def slope() -> Array | None:  # zero where p is locally constant in θ
            return namespace(theta).zeros_like(theta) if self.domain.coordinates else None

        product = partial(self.domain.maximize_derivative, theta)
        return PointSolution(y, p, value, product, slope)

    def solve_link(self, theta: Array) -> Array:
        check_vectors(self.domain)
        return self.domain.maximize(theta)

    def solve_shard(
        self, y: Array, theta: Array, tightness: float, shard: Shard
    ) -> tuple[Array, Array]:
        if not (self.domain.has_labels and self.is_row_wise):
            return super().solve_shard(y, theta, tightness, shard)
        xp = namespace(theta)
        own_top = row_max(theta)
        top = shard.max(own_top)
        # of several maxima the first one counts
        place = xp.full_like(top, -float(shard.position))
        first = shard.max(xp.where(own_top == top, place, xp.full_like(top, -xp.inf)))
        gap = row_sum(elementwise_gap(xp.zeros_like(y), y, theta - top))
        value = shard.sum(xp.where(xp.isnan(own_top), own_top, gap))
        best = self.domain.maximize(theta)
        y_star = xp.where(first == place, best, 0.0)
        return value[..., 0], xp.where(xp.isnan(value), value, y_star - y)
