r"""Half the squared norm on a convex set: the squared, sparsemax and sparseMAP losses.

With the tightness c the maximizer is a projection, :math:`p = P_C(m)` of the mixture
:math:`m = (\theta + c\,y)/(1 + c)`, and the loss is

.. math:: L_c = (1 + c) \Bigl( \tfrac12\|y - p\|^2 + \langle p - y, m - p\rangle \Bigr),

two non-negative terms: m − p is normal to C at p.
"""

from dataclasses import dataclass

from .._array import Array, inner, namespace, row_max
from .._root import piecewise_linear_steps
from ..sets import Box, ConvexSet, ProductSet, Reals, Simplex
from ..sets._base import elementwise_gap
from ._base import Elementwise, PointSolution, SeparableRegularizer, Solution, check_vectors


def _mixture(y: Array, s: Array, tightness: float) -> Array:
    """(s + c y)/(1 + c), without overflow."""
    if tightness == 0:
        return s
    return tightness / (1 + tightness) * y + s / (1 + tightness)


@dataclass(frozen=True, eq=False)
class SquaredFormulas(Elementwise):
    """The formulas above on a product set, or with τ on the simplex."""

    y: Array
    domain: ProductSet
    tightness: float
    power = 1.0

    def start(self, theta: Array) -> Array:
        # there the largest entry of the projection alone is one
        top = row_max(_mixture(self.y, theta, self.tightness))
        return (top - 1) * (1 + self.tightness)

    def end(self, theta: Array) -> Array:
        # there p is at most y c/(1 + c), which sums to less than one
        return row_max(theta)

    def steps(self, theta: Array) -> int:
        return piecewise_linear_steps(theta)

    def point(self, s: Array) -> tuple[Array, Array]:
        m = _mixture(self.y, s, self.tightness)
        inside = namespace(s).astype(self.domain.is_interior(m), s.dtype)
        return self.domain.project(m), inside / (1 + self.tightness)

    def level(self, p: Array) -> Array:
        """s where the maximizer is p, a point inside."""
        return (1 + self.tightness) * p - self.tightness * self.y

    def terms(self, s: Array) -> Array:
        xp = namespace(s)
        scale = 1 + self.tightness
        m = _mixture(self.y, s, self.tightness)
        p = self.domain.project(m)
        # in the interior y − p is a multiple of y − s, without the rounding of their mixture
        distance = xp.where(m == p, (self.y - s) / scale, self.y - p)
        normal = xp.where(m == p, 0.0, m - p)  # even where both are infinite
        return scale * (distance * distance / 2 + elementwise_gap(p, self.y, normal))


@dataclass(frozen=True)
class SquaredNorm(SeparableRegularizer):
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
    order_is_tightness = True

    @property
    def entmax_alpha(self) -> float | None:
        is_sparsemax = type(self) is SquaredNorm and type(self.domain) is Simplex
        return 2.0 if is_sparsemax else None

    @property
    def has_kinks(self) -> bool:
        return self.domain != Reals()

    def potential(self, y: Array) -> Array:
        return inner(y, y) / 2

    def potential_gradient(self, z: Array) -> Array:
        return z

    def potential_curvature(self, z: Array, v: Array) -> Array:
        return inner(v, v)

    def potential_divergence(self, y: Array, z: Array) -> Array:
        return inner(y - z, y - z) / 2

    def kernel(self, y: Array, tightness: float) -> Elementwise:
        return SquaredFormulas(y, self._coordinates, tightness)

    def slope(self, p: Array, y: Array, tightness: float) -> Array:
        inside = self._coordinates.is_interior(p)
        return namespace(p).astype(inside, p.dtype) / (1 + tightness)

    @property
    def has_mean_slope(self) -> bool:
        return self.has_kinks and self.is_row_wise

    def mean_slope(self, p: Array, y: Array, tightness: float, theta: Array, reach: Array) -> Array:
        xp = namespace(p)
        coordinates, slope = self._coordinates, self.slope(p, y, tightness)
        m = _mixture(y, theta, tightness)
        is_known = (reach > 0) & xp.isfinite(reach)
        if self.is_coupled:  # entries inside have p = m − τ/(1 + c)
            inside = coordinates.is_interior(p)
            shift = xp.max(xp.where(inside, m - p, -xp.inf), axis=-1, keepdims=True)
            is_known = is_known & (shift > -xp.inf)
            m = m - xp.where(is_known, shift, 0.0)
        reach = xp.where(is_known, reach, 1.0)
        low, high = m - reach / (1 + tightness), m + reach / (1 + tightness)
        rise = coordinates.project(high) - coordinates.project(low)
        mean = xp.clip(rise / (2 * reach), 0.0, 1 / (1 + tightness))  # up to rounding errors
        has_kink = ~(coordinates.is_interior(low) & coordinates.is_interior(high))
        return xp.where(is_known & has_kink, mean, slope)

    @property
    def has_probabilities(self) -> bool:
        return self.domain.has_labels or self.domain == Box(0.0, 1.0)

    def solve_probabilities(self, theta: Array, tightness: float) -> Array:
        if not self.has_probabilities:
            return super().solve_probabilities(theta, tightness)
        # the link is the mean of y at every tightness: y* = (p + c y)/(1 + c) on the face of p
        return self.solve_link(theta)

    def solve(self, y: Array, theta: Array, tightness: float) -> Solution:
        if self.is_row_wise:
            return super().solve(y, theta, tightness)
        check_vectors(self.domain)
        m, scale = _mixture(y, theta, tightness), 1 + tightness
        p = self.domain.project(m)

        def value() -> Array:
            return scale * (inner(y - p, y - p) / 2 + self.domain.normal_gap(y, p, m - p))

        return PointSolution(y, p, value, lambda v: self.domain.project_derivative(m, v) / scale)

    @property
    def _coordinates(self) -> ProductSet:
        coordinates = self.domain.coordinates
        if coordinates is None:
            raise TypeError(f"the entries of a row in {self.domain!r} depend on each other")
        return coordinates
