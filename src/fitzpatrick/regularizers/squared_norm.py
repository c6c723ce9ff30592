r"""Half the squared Euclidean norm, :math:`\Omega = \tfrac12\|\cdot\|^2 + \iota_C`, on any set.

Fenchel-Young: the squared loss (C = ℝᵏ), sparsemax (the simplex), sparseMAP (any C).
Fitzpatrick: :math:`y^\star = P_C((y + \theta)/2)` and :math:`L = \langle y^\star - y,
\theta - y^\star\rangle`.

Both are projections of a mixture m = c y + (1 − c) θ, with c = 0 for Fenchel-Young and c = ½ for
Fitzpatrick. With p = P_C(m) both losses are

.. math:: \frac{1}{1 - c} \Bigl( \tfrac12\|y - p\|^2 + \langle p - y, m - p\rangle \Bigr),

two non-negative terms: m − p is normal to C at p.
"""

from dataclasses import dataclass
from functools import partial

from .._array import Array, inner, namespace, row_max
from .._root import piecewise_linear_steps
from ..sets import ConvexSet, Orthant, ProductSet, Reals, Simplex
from ..sets._base import elementwise_gap
from ._base import (
    Elementwise,
    LabelSolution,
    Regularizer,
    Solution,
    solve_separable,
    solve_separable_labels,
)

_FENCHEL_YOUNG, _FITZPATRICK = 0.0, 0.5


@dataclass(frozen=True, eq=False)
class SquaredKernel(Elementwise):
    """The formulas above on a product set, or with τ on the simplex."""

    y: Array
    domain: ProductSet
    mix: float

    power = 1.0

    def _mixture(self, s: Array) -> Array:
        return s if self.mix == 0 else self.mix * self.y + (1 - self.mix) * s

    def start(self, theta: Array) -> Array:
        # there the largest entry of the projection alone is one
        return (row_max(self._mixture(theta)) - 1) / (1 - self.mix)

    def steps(self, theta: Array) -> int:
        return piecewise_linear_steps(theta)

    def point(self, s: Array) -> tuple[Array, Array]:
        m = self._mixture(s)
        inside = namespace(s).astype(self.domain.is_interior(m), s.dtype)
        return self.domain.project(m), (1 - self.mix) * inside

    def terms(self, s: Array) -> Array:
        xp = namespace(s)
        m = self._mixture(s)
        p = self.domain.project(m)
        # in the interior y − p is a multiple of y − s, without the rounding of their mixture
        distance = xp.where(m == p, (1 - self.mix) * (self.y - s), self.y - p)
        normal = xp.where(m == p, xp.zeros_like(m), m - p)  # even where both are infinite
        return (distance * distance / 2 + elementwise_gap(p, self.y, normal)) / (1 - self.mix)


@dataclass(frozen=True, eq=False)
class ProjectionSolution(Solution):
    """The same on a set that is known by its projection."""

    y: Array
    m: Array
    domain: ConvexSet
    mix: float

    @property
    def y_star(self) -> Array:
        return self.domain.project(self.m)

    def value(self) -> Array:
        p = self.y_star
        distance = self.y - p
        gap = self.domain.normal_gap(self.y, p, self.m - p)
        return (inner(distance, distance) / 2 + gap) / (1 - self.mix)

    def hessian_product(self, v: Array) -> Array:
        return (1 - self.mix) * self.domain.project_derivative(self.m, v)


@dataclass(frozen=True)
class SquaredNorm(Regularizer):
    r"""Half the squared norm on a convex set, :math:`\Omega(y) = \tfrac12\|y\|^2 + \iota_C(y)`.

    - Link: the projection :math:`P_C(\theta)`.
    - Fenchel-Young loss: :math:`\tfrac12\|y - \theta\|^2 - \tfrac12\|P_C(\theta) - \theta\|^2`
      (squared, sparsemax, sparseMAP).
    - Fitzpatrick loss (paper, Fitzpatrick sparseMAP):
      :math:`\langle y^\star - y, \theta - y^\star\rangle` with
      :math:`y^\star = P_C((y + \theta)/2)`.

    Args:
        domain: the set C; all of ℝᵏ by default.

    Example:
        >>> import numpy as np
        >>> import fitzpatrick as fp
        >>> omega = SquaredNorm(domain=fp.sets.Simplex())
        >>> omega.link(np.asarray([1.0, 0.5, -3.0]))
        array([0.75, 0.25, 0.  ])
        >>> fp.FitzpatrickLoss(SquaredNorm()).value(np.asarray([1.0, 0.0]), np.asarray([3.0, 0.0]))
        np.float64(1.0)
    """

    domain: ConvexSet = Reals()

    def potential(self, y: Array) -> Array:
        return inner(y, y) / 2

    def potential_gradient(self, z: Array) -> Array:
        return z

    def potential_curvature(self, z: Array, v: Array) -> Array:
        return inner(v, v)

    def potential_divergence(self, y: Array, z: Array) -> Array:
        return inner(y - z, y - z) / 2

    def _solve(self, y: Array, theta: Array, mix: float) -> Solution:
        if isinstance(self.domain, ProductSet):
            return solve_separable(SquaredKernel(y, self.domain, mix), theta, self.domain)
        if isinstance(self.domain, Simplex):
            return solve_separable(SquaredKernel(y, Orthant(), mix), theta, self.domain)
        return ProjectionSolution(y, mix * y + (1 - mix) * theta, self.domain, mix)

    def solve_fenchel_young(self, y: Array, theta: Array) -> Solution:
        return self._solve(y, theta, _FENCHEL_YOUNG)

    def solve_fitzpatrick(self, y: Array, theta: Array) -> Solution:
        return self._solve(y, theta, _FITZPATRICK)

    def solve_fenchel_young_labels(self, labels: Array, theta: Array) -> LabelSolution:
        kernel = partial(SquaredKernel, domain=Orthant(), mix=_FENCHEL_YOUNG)
        return solve_separable_labels(kernel, labels, theta)

    def solve_fitzpatrick_labels(self, labels: Array, theta: Array) -> LabelSolution:
        kernel = partial(SquaredKernel, domain=Orthant(), mix=_FITZPATRICK)
        return solve_separable_labels(kernel, labels, theta)
