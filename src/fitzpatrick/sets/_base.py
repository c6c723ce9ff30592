r"""What the losses ask of a convex set.

A set :math:`C` is known by its Euclidean projection and its linear oracle. To use a set of your own
with ``SquaredNorm(domain=...)`` (sparseMAP) and ``Indicator(...)`` (the perceptron), subclass
:class:`ConvexSet` and write ``project`` and ``maximize``; everything else has a default.
"""

import math
from abc import ABC, abstractmethod
from enum import Enum
from typing import ClassVar

from .._array import Array, as_real, eps, is_jax, namespace, positive_part


class ConvergenceError(RuntimeError):
    """A row has no answer; ``status`` says why."""

    def __init__(self, status: Enum, message: str) -> None:
        super().__init__(message)
        self.status = status


def raise_unless(converged: Array, residual: Array, status: Enum, **numbers: object) -> None:
    """Raise a status unless every row has converged; its sentence may name any of the numbers."""
    xp = namespace(converged)
    if bool(xp.all(converged)):
        return
    worst = float(xp.max(xp.where(converged, 0.0, residual)))
    failed = int(xp.sum(xp.astype(~converged, xp.int64)))
    where = f"in {failed} of {math.prod(converged.shape)} rows"
    raise ConvergenceError(status, status.value.format(residual=worst, where=where, **numbers))


class ConvexSet(ABC):
    """A closed convex set of vectors, along the last axis of an array.

    Example:
        A half-line in each coordinate, x ≥ 1, by its projection and its oracle:

        >>> import numpy as np
        >>> import fitzpatrick as fp
        >>> class AtLeastOne(fp.sets.ConvexSet):
        ...     def project(self, x):
        ...         return np.maximum(x, 1.0)
        ...     def maximize(self, theta):
        ...         return np.where(theta > 0, np.inf, 1.0)
        >>> loss = fp.FitzpatrickLoss(fp.regularizers.SquaredNorm(domain=AtLeastOne()))
        >>> loss.link(np.asarray([0.5, 3.0]))
        array([1., 3.])
        >>> loss.value(np.asarray([1.0, 2.0]), np.asarray([0.5, 3.0]))
        np.float64(0.25)

    Attributes:
        has_labels: True if the vertices are classes, so that an integer stands for a point.
        has_interior: True if all small changes of some point stay in the set; not so where sums of
            coordinates are fixed.
        is_product: True if each coordinate is constrained by itself.
        n_axes: how many trailing axes a point has: 1 for vectors, 2 for matrices.
    """

    has_labels: ClassVar[bool] = False
    has_interior: ClassVar[bool] = True
    is_product: ClassVar[bool] = False
    n_axes: ClassVar[int] = 1

    @property
    def coordinates(self) -> "ProductSet | None":
        """The product set that this set is a part of, cut out by the sum of a row alone.

        A product set is its own. None if the coordinates depend on each other in another way.
        """
        return None

    @abstractmethod
    def project(self, x: Array) -> Array:
        """Nearest point of the set, argmin over p ∈ C of ‖p − x‖."""

    @abstractmethod
    def maximize(self, theta: Array) -> Array:
        """Linear oracle: some argmax over p ∈ C of ⟨p, θ⟩."""

    def contains(self, x: Array) -> Array:
        """True for each row in the set, up to the square root of its dtype's precision."""
        x = as_real(x, "x")
        xp = namespace(x)
        scale = 1 + xp.max(xp.abs(x), axis=-1, keepdims=True)
        return xp.all(xp.abs(self.project(x) - x) <= membership_tolerance(x) * scale, axis=-1)

    def normal_gap(self, y: Array, p: Array, normal: Array) -> Array:
        r"""⟨p − y, n⟩ ≥ 0 for y ∈ C and p a maximizer of ⟨·, n⟩ over C.

        The default drops a negative rounding error. A set that can write the gap as a sum of
        non-negative terms should do so.
        """
        gaps = elementwise_gap(p, y, normal)
        return positive_part(namespace(y).sum(gaps, axis=tuple(range(-self.n_axes, 0))))

    def project_derivative(self, x: Array, v: Array) -> Array:
        """Directional derivative of the projection at x along v.

        By a central difference; for JAX arrays by JAX, since reverse mode needs it linear in v.
        """
        if is_jax(x):
            import jax

            return jax.jvp(self.project, (x,), (v,))[1]
        xp = namespace(x)
        length = xp.linalg.vector_norm(v, axis=-1, keepdims=True)
        length = xp.where(length == 0, 1.0, length)
        scale = 1 + xp.linalg.vector_norm(x, axis=-1, keepdims=True)
        step = eps(x) ** (1 / 3) * scale / length
        return (self.project(x + step * v) - self.project(x - step * v)) / (2 * step)

    def maximize_derivative(self, theta: Array, v: Array) -> Array:
        """Directional derivative of the oracle at θ along v.

        The default, zero, is right for polytopes, where the maximizer is locally constant.
        """
        return namespace(v).zeros_like(v)

    def same_face(self, y: Array, z: Array) -> Array:
        """True for each row where y lies in the smallest exposed face that contains z."""
        raise NotImplementedError(
            f"{type(self).__name__} does not say which face a point lies on; write the method "
            "same_face(y, z) to use the supremum form of the Fitzpatrick divergence"
        )

    def violation(self, row: Array) -> str:
        """A sentence that says why ``row`` is not in the set and what to do about it."""
        distance = float(namespace(row).max(namespace(row).abs(self.project(row) - row)))
        return f"it is {distance:.3g} away from the set {self!r}; project it with .project(y)"


def membership_tolerance(x: Array) -> float:
    """Slack of ``contains``: the square root of the spacing of the dtype at 1."""
    return math.sqrt(eps(x))


class ProductSet(ConvexSet):
    """A set that constrains each coordinate on its own, to [lower, upper]."""

    is_product: ClassVar[bool] = True

    @property
    def coordinates(self) -> "ProductSet":
        return self

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float]:
        """The interval of each coordinate; either end may be infinite."""

    def project(self, x: Array) -> Array:
        x = as_real(x, "x")
        xp = namespace(x)
        lower, upper = map(float, self.bounds)
        x = xp.where(x < lower, lower, x)
        return xp.where(x > upper, upper, x)

    def maximize(self, theta: Array) -> Array:
        theta = as_real(theta, "theta")
        xp = namespace(theta)
        lower, upper = map(float, self.bounds)
        p = xp.where(theta > 0, upper, xp.full_like(theta, min(max(0.0, lower), upper)))
        p = xp.where(theta < 0, lower, p)
        return xp.where(xp.isnan(theta), theta, p)

    def is_interior(self, x: Array) -> Array:
        """Which coordinates lie strictly inside their interval."""
        lower, upper = self.bounds
        return (x > lower) & (x < upper)

    def contains(self, x: Array) -> Array:
        x = as_real(x, "x")
        return namespace(x).all(self._is_inside(x), axis=-1)

    def _is_inside(self, x: Array) -> Array:
        lower, upper = self.bounds
        return namespace(x).isfinite(x) & (x >= lower) & (x <= upper)

    def project_derivative(self, x: Array, v: Array) -> Array:
        return namespace(x).where(self.is_interior(x), v, 0.0)

    def same_face(self, y: Array, z: Array) -> Array:
        return namespace(y).all(self.is_interior(z) | (y == z), axis=-1)

    def violation(self, row: Array) -> str:
        lower, upper = self.bounds
        for i in range(row.shape[0]):
            if not bool(self._is_inside(row[i])):
                value = "NaN" if math.isnan(row[i]) else f"{float(row[i]):.10g}"
                return f"entry {i} is {value}, outside [{lower:g}, {upper:g}]"
        return "it is valid"


def elementwise_gap(p: Array, y: Array, normal: Array) -> Array:
    """(p − y) · n entry by entry, where 0 · ±∞ counts as 0."""
    return namespace(p).where((p == y) | (normal == 0), 0.0, (p - y) * normal)
