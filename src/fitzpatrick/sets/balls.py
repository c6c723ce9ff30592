"""Balls around the origin in the Euclidean and the absolute-value norm."""

from dataclasses import dataclass

from .._array import Array, as_real, inner, namespace, positive_part, quiet, row_max, row_sum
from ._base import ConvexSet, membership_tolerance
from .simplex import Simplex


@dataclass(frozen=True)
class _Ball(ConvexSet):
    """A ball of any norm."""

    radius: float = 1.0

    def __post_init__(self) -> None:
        if not self.radius > 0:
            raise ValueError(f"a ball needs a positive radius, got {self.radius}")


@dataclass(frozen=True)
class L2Ball(_Ball):
    r"""Euclidean ball, :math:`\{p : \|p\|_2 \le r\}`.

    Example:
        >>> import numpy as np
        >>> L2Ball().project(np.asarray([3.0, 4.0]))
        array([0.6, 0.8])
    """

    def _norm(self, x: Array) -> Array:
        """‖x‖, scaled so that no square overflows or underflows."""
        xp = namespace(x)
        top = row_max(xp.abs(x))
        top = xp.where((top == 0) | (top == xp.inf), 1.0, top)
        return top * xp.linalg.vector_norm(x / top, axis=-1, keepdims=True)

    @quiet
    def project(self, x: Array) -> Array:
        x = as_real(x, "x")
        xp = namespace(x)
        norm = self._norm(x)
        outside = norm > self.radius
        return xp.where(outside, x / xp.where(outside, norm, 1.0) * self.radius, x)

    @quiet
    def maximize(self, theta: Array) -> Array:
        theta = as_real(theta, "theta")
        norm = self._norm(theta)
        return theta / namespace(theta).where(norm == 0, 1.0, norm) * self.radius

    def contains(self, x: Array) -> Array:
        x = as_real(x, "x")
        slack = 1 + membership_tolerance(x)
        return self._norm(x)[..., 0] <= self.radius * slack

    def normal_gap(self, y: Array, p: Array, normal: Array) -> Array:
        # r‖n‖ − ⟨y, n⟩ = ‖n‖/(2r) (‖p − y‖² + r² − ‖y‖²) where ‖p‖ = r
        distance = p - y
        slack = positive_part(self.radius**2 - inner(y, y))  # y may sit on the sphere
        return self._norm(normal)[..., 0] / (2 * self.radius) * (inner(distance, distance) + slack)

    def project_derivative(self, x: Array, v: Array) -> Array:
        xp = namespace(x)
        norm = self._norm(x)
        outside = norm > self.radius
        length = xp.where(outside, norm, 1.0)
        return xp.where(outside, self._along_sphere(x / length, length, v), v)

    def maximize_derivative(self, theta: Array, v: Array) -> Array:
        xp = namespace(theta)
        norm = self._norm(theta)
        length = xp.where(norm == 0, 1.0, norm)
        tangent = self._along_sphere(theta / length, length, v)
        return xp.where(norm == 0, 0.0, tangent)  # a kink: every point is a maximizer

    def _along_sphere(self, unit: Array, length: Array, v: Array) -> Array:
        """The derivative of r x/‖x‖ along v, from x/‖x‖ and ‖x‖."""
        return (v - unit * row_sum(unit * v)) * (self.radius / length)

    def same_face(self, y: Array, z: Array) -> Array:
        inside = self._norm(z)[..., 0] < self.radius * (1 - membership_tolerance(z))
        return inside | namespace(y).all(y == z, axis=-1)


@dataclass(frozen=True)
class L1Ball(_Ball):
    r"""Cross-polytope, :math:`\{p : \|p\|_1 \le r\}`.

    Example:
        >>> import numpy as np
        >>> L1Ball().project(np.asarray([-2.0, 1.5]))
        array([-0.75,  0.25])
    """

    def _is_outside(self, x: Array) -> Array:
        return row_sum(namespace(x).abs(x)) > self.radius

    @quiet
    def project(self, x: Array) -> Array:
        x = as_real(x, "x")
        xp = namespace(x)
        size = xp.abs(x)
        # less the largest first, which a compiler may divide in another way elsewhere
        magnitude = self.radius * Simplex().project((size - row_max(size)) / self.radius)
        return xp.where(self._is_outside(x), xp.sign(x) * magnitude, x)

    @quiet
    def maximize(self, theta: Array) -> Array:
        theta = as_real(theta, "theta")
        xp = namespace(theta)
        return self.radius * xp.sign(theta) * Simplex().maximize(xp.abs(theta))

    def contains(self, x: Array) -> Array:
        x = as_real(x, "x")
        xp = namespace(x)
        return xp.sum(xp.abs(x), axis=-1) <= self.radius * (1 + membership_tolerance(x))

    def normal_gap(self, y: Array, p: Array, normal: Array) -> Array:
        # r max|n| − ⟨y, n⟩ = max|n| (r − ‖y‖₁) + Σ (max|n| |y_i| − n_i y_i)
        xp = namespace(y)
        top = xp.max(xp.abs(normal), axis=-1, keepdims=True)
        slack = positive_part(self.radius - row_sum(xp.abs(y)))
        gaps = xp.abs(y) * (top - xp.sign(y) * normal)
        return (top * slack)[..., 0] + xp.sum(xp.where(y == 0, 0.0, gaps), axis=-1)

    def project_derivative(self, x: Array, v: Array) -> Array:
        xp = namespace(x)
        outside = self._is_outside(x)
        sign = xp.sign(self.project(x))
        active = row_sum(xp.abs(sign))
        mean = row_sum(sign * v) / xp.where(active == 0, 1.0, active)
        return xp.where(outside, xp.abs(sign) * v - sign * mean, v)

    def same_face(self, y: Array, z: Array) -> Array:
        xp = namespace(y)
        slack = membership_tolerance(z)
        inside = xp.sum(xp.abs(z), axis=-1) < self.radius * (1 - slack)
        on_face = xp.abs(xp.sum(y * xp.sign(z), axis=-1) - self.radius) <= self.radius * slack
        return inside | on_face
