r"""The indicator of a set, :math:`\Omega = \iota_C`: the perceptron loss at every tightness."""

from dataclasses import dataclass

from .._array import Array, inner, namespace, row_max
from ..sets import ConvexSet, Simplex
from ._base import Regularizer, Solution, at_labels, mark_labels, minus_target


@dataclass(frozen=True, eq=False)
class OracleSolution(Solution):
    """A maximizer of ⟨·, θ⟩ over C; where it is locally constant in θ the Hessian is zero."""

    y: Array
    theta: Array
    domain: ConvexSet

    @property
    def y_star(self) -> Array:
        return self.domain.maximize(self.theta)

    def value(self) -> Array:
        return self.domain.normal_gap(self.y, self.y_star, self.theta)

    def gradient(self) -> Array:
        return self.y_star - self.y

    def slope(self) -> Array | None:
        return namespace(self.theta).zeros_like(self.theta) if self.domain.coordinates else None

    def hessian_product(self, v: Array) -> Array:
        return self.domain.maximize_derivative(self.theta, v)


@dataclass(frozen=True, eq=False)
class OracleLabelSolution(OracleSolution):
    """The same at a hard label j, max θ − θ_j; ``y`` is the mask of the labels."""

    labels: Array

    def value(self) -> Array:
        return (row_max(self.theta) - at_labels(self.theta, self.labels))[..., 0]

    def gradient(self) -> Array:
        return minus_target(self.y_star, self.y)


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
        return OracleSolution(y, theta, self.domain)

    def solve_labels(self, labels: Array, theta: Array, tightness: float) -> Solution:
        return OracleLabelSolution(mark_labels(labels, theta), theta, self.domain, labels)
