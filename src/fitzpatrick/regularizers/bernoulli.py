r"""The negative entropy of independent coins, :math:`\sum_i y_i\log y_i + (1-y_i)\log(1-y_i)`.

With a = 1 − y, b = y and p = σ(u), the Fitzpatrick maximiser solves

.. math:: \frac{p - y}{p(1 - p)} + u = u + a e^u - b e^{-u} + (a - b) = \theta,

increasing in u, and the loss is :math:`(p - y)^2 / (p(1 - p))`. For a hard label one exponential is
absent and the root is a Wright omega function.
"""

from dataclasses import dataclass

from .._array import Array, namespace, precision_bits
from ..sets import Box, ConvexSet
from ..special import sigmoid, softplus, wright_omega
from ._base import Elementwise, SeparableRegularizer
from .negentropy import kl_terms

# Newton steps for u, by bits of precision.
_STEPS = {53: 6, 24: 4}


class _CubeKernel(Elementwise):
    """The unit cube has no row constraint, and so no τ."""

    power = 0.0

    def start(self, theta: Array) -> Array:
        raise TypeError("the unit cube does not couple the entries of a row")


@dataclass(frozen=True, eq=False)
class SigmoidKernel(_CubeKernel):
    """p = σ(s)."""

    y: Array

    def point(self, s: Array) -> tuple[Array, Array]:
        p = sigmoid(s)
        return p, p * sigmoid(-s)

    def terms(self, s: Array) -> Array:
        y = self.y
        heads = kl_terms(y, -softplus(-s), sigmoid(s))
        return heads + kl_terms(1 - y, -softplus(s), sigmoid(-s))


@dataclass(frozen=True, eq=False)
class FitzpatrickSigmoidKernel(_CubeKernel):
    """p = σ(u) with u the root of u + a e^u − b e^−u = s − (a − b)."""

    y: Array

    def _logit(self, s: Array) -> Array:
        """The root u, by Newton's method from the side where it is monotone.

        With δ = ½ log(a/b) the left-hand side is an odd function of u + δ, up to a constant.
        Reflecting y and s where its value is negative leaves u + δ ≥ 0, where it is convex, and
        Newton's method decreases to the root from any upper bound.
        """
        xp = namespace(s)
        y, zero = self.y, xp.zeros_like(s)
        shift = (xp.log1p(-y) - xp.log(y)) / 2
        reflect = (y == 1) | (s - (1 - 2 * y) + shift < 0)  # y = 1 has δ = −∞, even at s = +∞
        a = xp.where(reflect, y, 1 - y)
        b = xp.where(reflect, 1 - y, y)
        c = xp.where(reflect, -s, s) - (a - b)
        shift = xp.where(reflect, -shift, shift)
        m = xp.sqrt(a * b)
        # b e^−u <= m gives one bound, u = log(ω/a), and sinh v >= v the other
        z = c + m + xp.log(a)
        omega = wright_omega(z)
        u = xp.where(z < 0, c + m - omega, xp.log(omega) - xp.log(a))
        linear = (c + shift) / (1 + 2 * m) - shift
        u = xp.where((b > 0) & (linear < u), linear, u)
        for _ in range(_STEPS[precision_bits(s)]):
            rise = a * xp.exp(u)
            fall = xp.where(b > 0, b * xp.exp(-u), zero)
            step = (u + rise - fall - c) / (1 + rise + fall)
            u = u - xp.where(xp.isfinite(step), step, zero)  # an infinite score stays infinite
        return xp.where(reflect, -u, u)

    def _odds(self, p: Array, q: Array) -> tuple[Array, Array]:
        """(a p/q, b q/p), where an absent side counts as 0."""
        xp = namespace(p)
        zero = xp.zeros_like(p)
        rise = xp.where(self.y < 1, (1 - self.y) * p / q, zero)
        return rise, xp.where(self.y > 0, self.y * q / p, zero)

    def point(self, s: Array) -> tuple[Array, Array]:
        u = self._logit(s)
        p, q = sigmoid(u), sigmoid(-u)
        rise, fall = self._odds(p, q)
        return p, p * q / (1 + rise + fall)

    def terms(self, s: Array) -> Array:
        # (p − y)²/(p q) as a product of two numbers of one sign: p − y = a p − b q
        u = self._logit(s)
        p, q = sigmoid(u), sigmoid(-u)
        rise, fall = self._odds(p, q)
        return ((1 - self.y) * p - self.y * q) * ((1 - self.y) - self.y + rise - fall)


@dataclass(frozen=True)
class Bernoulli(SeparableRegularizer):
    r"""Negative entropy of one coin per label, on the unit cube.

    :math:`\Omega(y) = \sum_i y_i\log y_i + (1-y_i)\log(1-y_i)`, with the sigmoid as link and the
    binary cross-entropy, less the entropy of y, as Fenchel-Young loss. The Fitzpatrick loss of a
    hard label is :math:`\omega(\mp\theta - 1)`, the two-class case of the Fitzpatrick logistic
    loss.

    Example:
        >>> import numpy as np
        >>> import fitzpatrick as fp
        >>> omega = Bernoulli()
        >>> omega.link(np.asarray([0.0, 800.0]))
        array([0.5, 1. ])
        >>> loss = fp.FitzpatrickLoss(omega)
        >>> loss.value(np.asarray([1.0, 0.0]), np.asarray([-1.0, 1.0]))  # 2 ω(0)
        np.float64(1.1342865808195677)
    """

    @property
    def domain(self) -> ConvexSet:
        return Box(0.0, 1.0)

    def potential(self, y: Array) -> Array:
        xp = namespace(y)
        one = xp.ones_like(y)
        heads = y * xp.log(xp.where(y > 0, y, one))
        tails = (1 - y) * xp.log(xp.where(y < 1, 1 - y, one))
        return xp.sum(heads + tails, axis=-1)

    def potential_gradient(self, z: Array) -> Array:
        xp = namespace(z)
        return xp.log(z) - xp.log1p(-z)

    def potential_curvature(self, z: Array, v: Array) -> Array:
        xp = namespace(z)
        return xp.sum(xp.where(v == 0, xp.zeros_like(v), v * v / (z * (1 - z))), axis=-1)

    def solve_conjugate(self, theta: Array) -> Array:
        return namespace(theta).sum(softplus(theta), axis=-1)

    def fenchel_young_kernel(self, y: Array) -> Elementwise:
        return SigmoidKernel(y)

    def fitzpatrick_kernel(self, y: Array) -> Elementwise:
        return FitzpatrickSigmoidKernel(y)
