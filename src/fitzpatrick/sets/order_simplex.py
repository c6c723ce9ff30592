"""The order simplex, for ordinal labels."""

from dataclasses import dataclass

from .._array import Array, as_real, class_indices, namespace, quiet, row_max
from ._base import ConvexSet, membership_tolerance
from .isotonic import block_means, decreasing, decreasing_blocks


@dataclass(frozen=True)
class OrderSimplex(ConvexSet):
    r"""Vectors that decrease from 1 to 0, :math:`1 \ge p_1 \ge \dots \ge p_d \ge 0`.

    Its vertices are the d + 1 levels of an ordinal label in thermometer code, (1, …, 1, 0, …, 0):
    entry i says how far the label is above level i. The projection is an isotonic regression,
    clipped.

    Example:
        >>> import numpy as np
        >>> OrderSimplex().project(np.asarray([1.5, 0.2, 0.4, -1.0])).round(3)
        array([1. , 0.3, 0.3, 0. ])
        >>> OrderSimplex().maximize(np.asarray([-1.0, 2.0, -0.5]))
        array([1., 1., 0.])
    """

    @quiet
    def project(self, x: Array) -> Array:
        x = as_real(x, "x")
        return namespace(x).clip(decreasing(x), 0, 1)

    def maximize(self, theta: Array) -> Array:
        theta = as_real(theta, "theta")
        xp = namespace(theta)
        sums = xp.cumulative_sum(theta, axis=-1)
        sums = xp.concat([xp.zeros_like(sums[..., :1]), sums], axis=-1)
        level = xp.argmax(sums, axis=-1, keepdims=True)
        p = xp.astype(class_indices(theta) < level, theta.dtype)
        return xp.where(xp.isnan(row_max(sums)), xp.nan, p)

    def contains(self, x: Array) -> Array:
        x = as_real(x, "x")
        xp = namespace(x)
        steps = xp.concat([1 - x[..., :1], x[..., :-1] - x[..., 1:], x[..., -1:]], axis=-1)
        return xp.all(steps >= -membership_tolerance(x), axis=-1)

    @quiet
    def project_derivative(self, x: Array, v: Array) -> Array:
        xp, starts = namespace(x), decreasing_blocks(x)
        levels = block_means(x, starts)
        return xp.where((levels > 0) & (levels < 1), block_means(v, starts), 0.0)

    def same_face(self, y: Array, z: Array) -> Array:
        # the face of z fixes the steps of z that are zero
        xp = namespace(y)
        one, zero = xp.ones_like(y[..., :1]), xp.zeros_like(y[..., :1])
        y_steps, z_steps = (
            xp.concat([one, x], axis=-1) - xp.concat([x, zero], axis=-1) for x in (y, z)
        )
        return xp.all((z_steps > 0) | (y_steps == 0), axis=-1)

    def violation(self, row: Array) -> str:
        for i in range(row.shape[0]):
            previous = 1.0 if i == 0 else float(row[i - 1])
            if not 0 <= float(row[i]) <= previous:
                return (
                    f"entry {i} is {float(row[i]):.10g}, and should be between 0 and "
                    f"{previous:.10g}, the entry before it; a level j of an ordinal label is j "
                    "ones, followed by zeros"
                )
        return "it is valid"
