r"""The α-norm on the simplex, whose link is α-normmax.

With N the norm of the maximizer p, u = p/N, s = θ − τ and q = α/(α − 1), the maximizer has
:math:`u = (s)_+^{1/(\alpha - 1)}`, where τ solves :math:`\sum_i (s_i)_+^q = 1`, and the conjugate
is τ itself. The q-norm of :math:`(s)_+` is convex in τ, which is what Newton's method needs. The
Jacobian of the link follows from p alone: with
:math:`w = N^{\alpha - 1} p^{2 - \alpha}/(\alpha - 1)`,

.. math:: J v = z - p\,\langle z, 1\rangle, \qquad z = w \circ (v - \langle p, v\rangle).
"""

import math
from dataclasses import dataclass

from .._array import Array, inner, namespace, positive_part, quiet, row_max, row_sum
from .._root import newton_steps, shift_to_root
from ..sets import Simplex
from ._base import PointSolution, Regularizer, Solution


def _power(x: Array, exponent: Array | float) -> Array:
    """x^exponent where x > 0, else 0; NaN where x is."""
    xp = namespace(x)
    is_positive = ~(x <= 0)
    return xp.where(is_positive, xp.where(is_positive, x, 1.0) ** exponent, 0.0)


def _norm(p: Array, alpha: Array | float) -> Array:
    """‖p‖ of each row, (…, 1); sums of powers below 1 neither overflow nor vanish."""
    top = row_max(p)
    top = namespace(p).where(top == 0, 1.0, top)  # all of the row is masked
    return top * row_sum(_power(p / top, alpha)) ** (1 / alpha)


def _unit(p: Array, alpha: Array | float) -> tuple[Array, Array]:
    """p/‖p‖, 0 in a row of zeros, and ‖p‖."""
    norm = _norm(p, alpha)
    return p / namespace(p).where(norm == 0, 1.0, norm), norm


def _shift(theta: Array, alpha: Array | float) -> Array:
    """s = θ − τ."""
    theta = theta - row_max(theta)
    q = alpha / (alpha - 1)

    def point(s: Array) -> tuple[Array, Array]:
        flat = _power(s, q - 1)
        return flat * namespace(s).where(s > 0, s, 0.0), q * flat

    # there the largest entry alone is one
    start = row_max(theta + 0 * q) - 1
    return shift_to_root(point, theta, start, 1 / q, newton_steps(theta))


def _link(s: Array, alpha: Array | float) -> Array:
    u = _power(s, 1 / (alpha - 1))
    return u / row_sum(u)


@quiet
def normmax_link(theta: Array, alpha: Array | float) -> Array:
    """α-normmax of each row, for one order α > 1 or an array of them that broadcasts to (…, 1)."""
    return _link(_shift(theta, alpha), alpha)


@quiet
def normmax_product(p: Array, v: Array, alpha: Array | float) -> Array:
    """J v, from predictions p; 0 in a row of zeros."""
    u, norm = _unit(p, alpha)  # powers of p itself overflow at large orders
    weight = norm / (alpha - 1) * _power(u, 2 - alpha)
    z = weight * (v - row_sum(p * v))
    return z - p * row_sum(z)


@quiet
def normmax_alpha_slope(p: Array, alpha: Array | float) -> Array:
    """∂p/∂α of predictions p, which sums to zero; 0 in a row of zeros."""
    xp, (u, _) = namespace(p), _unit(p, alpha)
    u_log_u = u * xp.log(xp.where(u > 0, u, 1.0))
    total = row_sum(u)
    rise = row_sum(_power(u, alpha - 1) * u_log_u) / (alpha * xp.where(total == 0, 1.0, total))
    slope = (_power(u, 2 - alpha) * rise - u_log_u) / (alpha - 1)
    return (slope - p * row_sum(slope)) / xp.where(total == 0, 1.0, total)


def _gap(y: Array, s: Array, alpha: float) -> Array:
    """The loss: at least 0 by Hölder's inequality, since the q-norm of (s)₊ is 1."""
    return positive_part(_norm(y, alpha)[..., 0] - inner(y, s))


@dataclass(frozen=True)
class Norm(Regularizer):
    r"""The norm :math:`\|y\|_\alpha` on the simplex; it has a Fenchel-Young loss alone.

    Args:
        alpha: the order, a finite number above 1.

    Example:
        >>> import numpy as np
        >>> Norm(2.0).link(np.asarray([0.5, 0.25, -1.0])).round(4)
        array([0.5898, 0.4102, 0.    ])
    """

    alpha: float = 2.0
    domain = Simplex()

    def __post_init__(self) -> None:
        if not 1 < self.alpha < math.inf:
            raise ValueError(f"alpha must be a finite number above 1, got {self.alpha}")

    def potential(self, y: Array) -> Array:
        return _norm(y, self.alpha)[..., 0]

    def potential_gradient(self, z: Array) -> Array:
        return _power(_unit(z, self.alpha)[0], self.alpha - 1)

    def potential_curvature(self, z: Array, v: Array) -> Array:
        u, norm = _unit(z, self.alpha)
        along = inner(_power(u, self.alpha - 1), v)
        curved = inner(v, v * u ** (self.alpha - 2))
        return (self.alpha - 1) * (curved - along * along) / norm[..., 0]

    def potential_divergence(self, y: Array, z: Array) -> Array:
        return _gap(y, self.potential_gradient(z), self.alpha)

    def solve(self, y: Array, theta: Array, tightness: float) -> Solution:
        if tightness != 0:
            raise TypeError(f"{self!r} has a Fenchel-Young loss, of tightness 0, and no other")
        s = _shift(theta, self.alpha)
        p = _link(s, self.alpha)
        return PointSolution(
            y, p, lambda: _gap(y, s, self.alpha), lambda v: normmax_product(p, v, self.alpha)
        )
