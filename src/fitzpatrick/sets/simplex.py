"""The probability simplex."""

from dataclasses import dataclass
from typing import ClassVar

from .._array import Array, as_real, class_indices, namespace, positive_part, quiet, row_max
from .._root import piecewise_linear_steps, shift_to_root
from ._base import ConvexSet, elementwise_gap, membership_tolerance
from .product import Orthant


def _positive_part_and_slope(s: Array) -> tuple[Array, Array]:
    return positive_part(s), namespace(s).astype(s > 0, s.dtype)


@dataclass(frozen=True)
class Simplex(ConvexSet):
    r"""Probability vectors, :math:`\triangle^k = \{p \ge 0, \sum_i p_i = 1\}`.

    The projection is :math:`(x - \tau)_+`. It is found without a sort: scores are shifted by their
    maximum, only those above −1 can be active, and Newton's method on the piecewise linear
    equation for τ ends after finitely many steps.

    Example:
        >>> import numpy as np
        >>> Simplex().project(np.asarray([1.0, 0.5, -3.0]))
        array([0.75, 0.25, 0.  ])
        >>> Simplex().maximize(np.asarray([1.0, 0.5, -3.0]))
        array([1., 0., 0.])
        >>> Simplex().contains(np.asarray([[0.75, 0.25, 0.0], [1.0, 1.0, 1.0]]))
        array([ True, False])
    """

    has_labels: ClassVar[bool] = True
    has_interior: ClassVar[bool] = False
    coordinates = Orthant()

    @quiet
    def project(self, x: Array) -> Array:
        x = as_real(x, "x")
        shifted = x - row_max(x)
        start = -namespace(x).ones_like(shifted[..., :1])  # the largest entry alone would be one
        steps = piecewise_linear_steps(shifted)
        return positive_part(shift_to_root(_positive_part_and_slope, shifted, start, 1.0, steps))

    def maximize(self, theta: Array) -> Array:
        theta = as_real(theta, "theta")
        xp = namespace(theta)
        best = xp.argmax(theta, axis=-1, keepdims=True)
        p = xp.astype(class_indices(theta) == best, theta.dtype)
        return xp.where(xp.isnan(row_max(theta)), xp.nan, p)

    def contains(self, x: Array) -> Array:
        x = as_real(x, "x")
        xp = namespace(x)
        slack = membership_tolerance(x)
        return xp.all(x >= 0, axis=-1) & (xp.abs(xp.sum(x, axis=-1) - 1) <= slack)

    def normal_gap(self, y: Array, p: Array, normal: Array) -> Array:
        xp = namespace(y)
        # Σ y_i (max n − n_i), without p
        return xp.sum(elementwise_gap(xp.zeros_like(y), y, normal - row_max(normal)), axis=-1)

    def project_derivative(self, x: Array, v: Array) -> Array:
        xp = namespace(x)
        active = xp.astype(self.project(x) > 0, v.dtype)
        mean = xp.sum(active * v, axis=-1, keepdims=True) / xp.sum(active, axis=-1, keepdims=True)
        return active * (v - mean)

    def same_face(self, y: Array, z: Array) -> Array:
        return namespace(y).all((z > 0) | (y == 0), axis=-1)

    def violation(self, row: Array) -> str:
        xp = namespace(row)
        for i in range(row.shape[0]):
            if bool(xp.isnan(row[i])):
                return f"entry {i} is NaN"
            if not bool(row[i] >= 0):
                return f"entry {i} is {float(row[i]):g}, but proportions are non-negative"
        total = float(xp.sum(row))
        if total == 0:
            return "it sums to 0, so that it has no proportions; drop it or give it a target"
        return (
            f"it sums to {total:.10g}, not 1; divide each row by its sum, "
            "y / y.sum(axis=-1, keepdims=True)"
        )
