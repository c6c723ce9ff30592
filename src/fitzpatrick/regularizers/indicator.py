r"""The indicator of a set, :math:`\Omega = \iota_C`: perceptron and Fitzpatrick loss in one."""

from dataclasses import dataclass

from .._array import Array, inner, namespace, row_max
from ..sets import ConvexSet, Simplex
from ._base import LabelSolution, Regularizer, Solution, at_labels, mark_labels


@dataclass(frozen=True, eq=False)
class OracleSolution(Solution):
    """A maximiser of ⟨·, θ⟩ over C; where it is locally constant in θ the Hessian is zero."""

    y: Array
    theta: Array
    domain: ConvexSet

    @property
    def y_star(self) -> Array:
        return self.domain.maximize(self.theta)

    def value(self) -> Array:
        return self.domain.normal_gap(self.y, self.y_star, self.theta)

    def hessian_product(self, v: Array) -> Array:
        return self.domain.maximize_derivative(self.theta, v)


@dataclass(frozen=True, eq=False)
class OracleLabelSolution(LabelSolution):
    """The same on the simplex at a hard label j: max θ − θ_j."""

    labels: Array
    theta: Array

    @property
    def y_star(self) -> Array:
        return Simplex().maximize(self.theta)

    def value(self) -> Array:
        return (row_max(self.theta) - at_labels(self.theta, self.labels))[..., 0]

    def gradient(self) -> Array:
        p = self.y_star
        return namespace(p).where(mark_labels(self.labels, self.theta), p - 1, p)

    def hessian_product(self, v: Array) -> Array:
        return namespace(v).zeros_like(v)


@dataclass(frozen=True)
class Indicator(Regularizer):
    r"""Indicator of a convex set, :math:`\Omega = \iota_C`: 0 on C, +∞ elsewhere.

    - Link: a maximiser of :math:`\langle y', \theta\rangle` over C (set-valued at ties, where the
      oracle of the set chooses).
    - Both losses are the perceptron loss :math:`\max_{y' \in C} \langle y' - y, \theta\rangle`
      (paper: the Fitzpatrick loss of an indicator is its Fenchel-Young loss).

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

    def solve_fenchel_young(self, y: Array, theta: Array) -> Solution:
        return OracleSolution(y, theta, self.domain)

    def solve_fitzpatrick(self, y: Array, theta: Array) -> Solution:
        return OracleSolution(y, theta, self.domain)

    def solve_fenchel_young_labels(self, labels: Array, theta: Array) -> LabelSolution:
        return OracleLabelSolution(labels, theta)

    def solve_fitzpatrick_labels(self, labels: Array, theta: Array) -> LabelSolution:
        return OracleLabelSolution(labels, theta)
