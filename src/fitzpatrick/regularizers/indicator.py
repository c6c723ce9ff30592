r"""The indicator of a set, :math:`\Omega = \iota_C`: the perceptron loss at every tightness."""

from dataclasses import dataclass

from .._array import Array, inner, namespace, row_max, row_sum
from ..sets import ConvexSet, Simplex
from ..sets._base import elementwise_gap
from ._base import Regularizer, Shard, Solution, at_labels, check_vectors, mark_labels


@dataclass(frozen=True, eq=False)
class OracleSolution(Solution):
    """A maximizer of ⟨·, θ⟩ over C; where it is locally constant in θ the Hessian is zero."""

    y: Array
    theta: Array
    domain: ConvexSet
    p: Array

    @property
    def y_star(self) -> Array:
        return self.p

    def value(self) -> Array:
        return self.domain.normal_gap(self.y, self.y_star, self.theta)

    def slope(self) -> Array | None:
        return namespace(self.theta).zeros_like(self.theta) if self.domain.coordinates else None

    def hessian_product(self, v: Array) -> Array:
        return self.domain.maximize_derivative(self.theta, v)


@dataclass(frozen=True, eq=False)
class OracleLabelSolution(OracleSolution):
    """The perceptron loss at a hard label j, max θ − θ_j; ``y`` is the mask of the labels."""

    labels: Array

    def value(self) -> Array:
        return (row_max(self.theta) - at_labels(self.theta, self.labels))[..., 0]


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

    @property
    def is_row_wise(self) -> bool:
        return self.domain.coordinates is not None

    @property
    def has_curvature(self) -> bool:
        return False

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
        return OracleSolution(y, theta, self.domain, self.domain.maximize(theta))

    def solve_labels(self, labels: Array, theta: Array, tightness: float) -> Solution:
        p = self.domain.maximize(theta)
        return OracleLabelSolution(mark_labels(labels, theta), theta, self.domain, p, labels)

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
        y_star = xp.where(first == place, best, xp.zeros_like(best))
        return value[..., 0], xp.where(xp.isnan(value), value, y_star - y)
