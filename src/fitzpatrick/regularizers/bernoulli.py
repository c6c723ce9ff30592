r"""The negative entropy of independent coins, :math:`\sum_i y_i\log y_i + (1-y_i)\log(1-y_i)`.

With the tightness c, a = c (1 − y), b = c y and p = σ(u), the maximizer solves

.. math:: c\,\frac{p - y}{p(1 - p)} + u = u + a e^u - b e^{-u} + (a - b) = \theta,

increasing in u. The loss is the entropy's at y and p, and at 1 − y and 1 − p:
the quadratic form :math:`(p - y)^2 / (p(1 - p))` for c = 1. For a hard label one exponential is
absent, and the root is a Wright omega function.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from .._array import Array, inner, namespace, precision_bits, row_max, row_sum
from .._root import shift_to_total
from ..sets import Box, CappedSimplex, ConvexSet
from ..special import sigmoid, softplus
from ._base import (
    Elementwise,
    PointSolution,
    SeparableRegularizer,
    SeparableSolution,
    Solution,
    check_domain,
)
from ._probabilities import coin_probabilities
from .chain import EntropyChain, solve_chain
from .negentropy import Negentropy, entropy_terms, kl_terms

# Steps of Halley's method, by bits of precision: as many as any score, target and tightness needed
# in a search.
_STEPS = {53: 5, 24: 3}


def _odds_product(p: Array, q: Array, y: Array, tightness: float) -> tuple[Array, Array]:
    """(a p/q, b q/p), where an absent side counts as 0."""
    xp = namespace(p)
    if tightness == 0:
        return xp.zeros_like(p), xp.zeros_like(p)
    rise = xp.where(y < 1, tightness * (1 - y) * p / q, 0.0)
    return rise, xp.where(y > 0, tightness * y * q / p, 0.0)


@dataclass(frozen=True, eq=False)
class CoinFormulas(Elementwise):
    """p = σ(u), with the root u above, which is s itself for c = 0."""

    y: Array
    tightness: float

    def _logit(self, s: Array) -> Array:
        """The root u, by Halley's method from the least of three upper bounds.

        With δ = ½ log(a/b) the left-hand side is v + 2 √(ab) sinh v at v = u + δ, up to a constant:
        an odd function, which is reflected to where it is positive. There sinh v ≥ v, leaving out
        v, and leaving out u, unless it is negative, bound u from above.
        """
        if self.tightness == 0:
            return s
        xp, c, y = namespace(s), self.tightness, self.y
        tiny = float(xp.finfo(s.dtype).smallest_normal)
        has_heads, has_tails = y > 0, y < 1
        log_heads = xp.log(xp.where(has_heads, y, tiny))
        log_tails = xp.log(xp.where(has_tails, 1 - y, tiny))
        level = s - c * (1 - 2 * y)
        shift = (log_tails - log_heads) / 2
        reflect = level + shift < 0
        a, b = c * xp.where(reflect, y, 1 - y), c * xp.where(reflect, 1 - y, y)
        # a and b may underflow where their logarithms do not
        has_a = xp.where(reflect, has_heads, has_tails)
        has_b = xp.where(reflect, has_tails, has_heads)
        level, shift = xp.where(reflect, -level, level), xp.where(reflect, -shift, shift)
        log_a = math.log(c) + xp.where(reflect, log_heads, log_tails)
        log_b = math.log(c) + xp.where(reflect, log_tails, log_heads)
        height, root = level + shift, 2 * xp.sqrt(a * b)
        without_v = xp.log(xp.clip((height + xp.hypot(height, root)) / 2, tiny)) - log_a
        without_u = xp.clip(xp.log(xp.clip(level + b, tiny)) - log_a, 0.0)
        u = xp.minimum(xp.minimum(height / (1 + root) - shift, without_v), without_u)
        for _ in range(_STEPS[precision_bits(s)]):
            rise = xp.where(has_a, xp.exp(u + log_a), 0.0)
            fall = xp.where(has_b, xp.exp(log_b - u), 0.0)
            excess, slope = u + rise - fall - level, 1 + rise + fall
            step = excess / slope
            step = step / xp.clip(1 - step * (rise - fall) / (2 * slope), 0.25)
            u = u - xp.where(xp.isfinite(step), step, 0.0)  # ±∞ stays what it is
        return xp.where(reflect, -u, u)

    def _odds(self, s: Array, u: Array) -> tuple[Array, Array, Array, Array]:
        """p, 1 − p, a p/(1 − p) and b (1 − p)/p."""
        xp, c, y = namespace(s), self.tightness, self.y
        p, q = sigmoid(u), sigmoid(-u)
        rise, fall = _odds_product(p, q, y, c)
        if c == 0:
            return p, q, rise, fall
        # where p or 1 − p underflows, by the equation of u
        tiny = float(xp.finfo(s.dtype).smallest_normal)
        gap = s - u - c * (1 - 2 * y)
        is_finite = xp.isfinite(s)
        fall = xp.where((p < tiny) & (y > 0) & is_finite, xp.clip(rise - gap, 0.0), fall)
        rise = xp.where((q < tiny) & (y < 1) & is_finite, xp.clip(fall + gap, 0.0), rise)
        return p, q, rise, fall

    def point(self, s: Array) -> tuple[Array, Array]:
        p, q, rise, fall = self._odds(s, self._logit(s))
        return p, p * q / (1 + rise + fall)

    def terms(self, s: Array) -> Array:
        y, u = self.y, self._logit(s)
        p, q, rise, fall = self._odds(s, u)
        if self.tightness == 0:
            return kl_terms(y, -softplus(-u), p) + kl_terms(1 - y, -softplus(u), q)
        if self.tightness == 1:
            # (p − y)²/(p q) as a product of two numbers of one sign: p − y = a p − b q
            return ((1 - y) * p - y * q) * ((1 - y) - y + rise - fall)
        heads, tails = self._log_ratios(s, u)
        c = self.tightness
        return entropy_terms(y, heads, p, c) + entropy_terms(1 - y, tails, q, c)

    def _log_ratios(self, s: Array, u: Array) -> tuple[Array, Array]:
        """log(p/y) and log((1 − p)/(1 − y)), where y and 1 − y are not zero.

        A large c draws p to y. Then a step for η = u − logit y, which solves
        η + c (1 − e^(−η))(1 + y (e^η − 1)) = s − logit y, finds the digits of the ratios.
        """
        xp, y, c = namespace(s), self.y, self.tightness
        log_y, log_z = (xp.log(xp.where(side > 0, side, 1.0)) for side in (y, 1 - y))
        heads, tails = -softplus(-u) - log_y, -softplus(u) - log_z
        if c <= 1:
            return heads, tails
        eta = u - (log_y - log_z)
        is_near = (y > 0) & (y < 1) & (xp.abs(eta) < 0.5)
        eta = xp.where(is_near, eta, 0.0)
        rise, fall = xp.expm1(eta), xp.expm1(-eta)
        excess = eta - c * fall * (1 + y * rise) - (s - (log_y - log_z))
        eta = eta - excess / (1 + c * ((1 - y) * (1 + fall) + y * (1 + rise)))
        return (
            xp.where(is_near, -xp.log1p((1 - y) * xp.expm1(-eta)), heads),
            xp.where(is_near, -xp.log1p(y * xp.expm1(eta)), tails),
        )


def _not_all_zero(d: Array) -> Array:
    """Slopes d, at least the smallest number: coupled entries divide by their sum."""
    return namespace(d).clip(d, float(namespace(d).finfo(d.dtype).smallest_normal), 1.0)


@dataclass(frozen=True, eq=False)
class CoupledCoinFormulas(CoinFormulas):
    """Coins of one row whose probabilities have a given sum."""

    def point(self, s: Array) -> tuple[Array, Array]:
        p, d = super().point(s)
        return p, _not_all_zero(d)


def solve_coin_chain(y: Array, theta: Array, order: int) -> Solution:
    """The solution of order n: a coin is a row of two classes, with the scores θ and 0."""
    xp, zero = namespace(theta), namespace(theta).zeros_like(theta)

    def pair(heads: Array, tails: Array) -> Array:
        return xp.stack([heads, tails], axis=-1)

    scores = pair(xp.minimum(theta, zero), xp.minimum(-theta, zero))
    two = solve_chain(EntropyChain, Negentropy(), pair(y, 1 - y), scores, order)
    p = two.y_star

    def of_heads(changes: Array) -> Array:
        """The change of p, read off the less likely side, which has more digits."""
        return xp.where(p[..., 0] < p[..., 1], changes[..., 0], -changes[..., 1])

    return PointSolution(
        y,
        p[..., 0],
        lambda: xp.sum(two.value(), axis=-1),
        lambda v: of_heads(two.hessian_product(pair(v, zero))),
        own_gradient=of_heads(two.gradient()),
    )


@dataclass(frozen=True)
class Bernoulli(SeparableRegularizer):
    r"""Negative entropy of one coin per label, on the unit cube.

    :math:`\Omega(y) = \sum_i y_i\log y_i + (1-y_i)\log(1-y_i)`, with the sigmoid as link and the
    binary cross-entropy, less the entropy of y, as Fenchel-Young loss. The Fitzpatrick loss of a
    hard label is :math:`\omega(\mp\theta - 1)`, the two-class case of the Fitzpatrick logistic
    loss.

    On ``CappedSimplex(k)`` the probabilities of the labels sum to k: the same formulas at
    :math:`\theta - \tau`, with one τ for each row.

    Args:
        domain: ``Box(0, 1)`` (the default) or ``CappedSimplex(k)``, with k below the number of
            entries.

    Example:
        >>> import numpy as np
        >>> import fitzpatrick as fp
        >>> omega = Bernoulli()
        >>> omega.link(np.asarray([0.0, 800.0]))
        array([0.5, 1. ])
        >>> loss = fp.FitzpatrickLoss(omega)
        >>> loss.value(np.asarray([1.0, 0.0]), np.asarray([-1.0, 1.0]))  # 2 ω(0)
        np.float64(1.1342865808195677)
        >>> Bernoulli(fp.sets.CappedSimplex(1)).link(np.asarray([2.0, 0.0, -1.0])).round(3)
        array([0.68 , 0.224, 0.096])
    """

    domain: ConvexSet = Box(0.0, 1.0)
    has_kinks = False
    is_row_wise = True

    def __post_init__(self) -> None:
        if self.domain != Box(0.0, 1.0):
            check_domain("Bernoulli", self.domain, (CappedSimplex,))

    def __repr__(self) -> str:
        return "Bernoulli()" if self.is_entrywise else f"Bernoulli(domain={self.domain!r})"

    def potential(self, y: Array) -> Array:
        xp = namespace(y)
        heads = y * xp.log(xp.where(y > 0, y, 1.0))
        tails = (1 - y) * xp.log(xp.where(y < 1, 1 - y, 1.0))
        return xp.sum(heads + tails, axis=-1)

    def potential_gradient(self, z: Array) -> Array:
        xp = namespace(z)
        return xp.log(z) - xp.log1p(-z)

    def potential_curvature(self, z: Array, v: Array) -> Array:
        return inner(v, v / (z * (1 - z)))

    def solve(self, y: Array, theta: Array, tightness: float) -> Solution:
        if not isinstance(self.domain, CappedSimplex):
            return super().solve(y, theta, tightness)
        k, n_entries = float(self.domain.k), theta.shape[-1]
        if not k < n_entries:
            raise ValueError(
                f"Bernoulli({self.domain!r}) needs more than k = {k:g} entries in a row, got "
                f"{n_entries}: else all probabilities are 1, at infinite scores"
            )
        kernel, xp = self.kernel(y, tightness), namespace(theta)
        is_left = theta != -xp.inf  # NaN is
        n = row_sum(xp.astype(is_left, theta.dtype))
        n = xp.where(n > k, n, xp.nan)  # without an answer
        # no probability is below their mean q = k/n at one end, none above it at the other
        logit = xp.log(k / (n - k))
        least = xp.min(xp.where(is_left, theta, xp.inf), axis=-1, keepdims=True)
        low = least - (logit + tightness * n / (n - k))
        high = row_max(theta) - (logit - tightness * n / k)
        s = shift_to_total(kernel.point, theta, (low, high), k)
        return SeparableSolution(kernel, y, s, is_coupled=True)

    def solve_link(self, theta: Array) -> Array:
        return sigmoid(theta) if self.is_entrywise else super().solve_link(theta)

    @property
    def has_probabilities(self) -> bool:
        return self.is_entrywise

    def solve_probabilities(self, theta: Array, tightness: float) -> Array:
        if not self.is_entrywise:
            return super().solve_probabilities(theta, tightness)
        return sigmoid(theta) if tightness == 0 else coin_probabilities(theta, tightness)

    @property
    def chain(self) -> Callable[[Array, Array, int], Solution]:
        return solve_coin_chain if self.is_entrywise else super().chain

    def solve_conjugate(self, theta: Array) -> Array:
        if not self.is_entrywise:
            return super().solve_conjugate(theta)
        return namespace(theta).sum(softplus(theta), axis=-1)

    def kernel(self, y: Array, tightness: float) -> Elementwise:
        return (CoinFormulas if self.is_entrywise else CoupledCoinFormulas)(y, tightness)

    def slope(self, p: Array, y: Array, tightness: float) -> Array:
        rise, fall = _odds_product(p, 1 - p, y, tightness)
        d = p * (1 - p) / (1 + rise + fall)
        d = namespace(p).where((p > 0) & (p < 1), d, 0.0)
        return d if self.is_entrywise else _not_all_zero(d)
