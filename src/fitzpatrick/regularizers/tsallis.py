r"""Tsallis entropies, the α-entmax family between the logistic and the sparsemax loss.

With β = α − 1 and s = θ − τ, up to constants that τ absorbs:

- Fenchel-Young: :math:`p = (\beta s)_+^{1/\beta}`, loss :math:`D_\psi(y, p)` plus
  :math:`y\,(-s)_+` where p = 0.
- Fitzpatrick: p is the root of :math:`\frac{\alpha}{\beta} p^\beta - y\,p^{\beta-1} = s`, loss
  :math:`p^{\beta-1} (p - y)^2`.

For α = 1.5 the root is a quadratic's: :math:`\sqrt p = (s + \sqrt{s^2 + 12 y})/6`.
"""

import math
from dataclasses import dataclass

from .._array import Array, namespace, precision_bits, row_max
from ..sets import ConvexSet, Orthant, Simplex
from ..special import expm1_minus_x
from ._base import Elementwise, SeparableRegularizer
from .negentropy import Negentropy
from .squared_norm import SquaredKernel

# Newton steps for the entries' own roots where they have no closed form, by bits of precision.
_ENTRY_STEPS = {53: 10, 24: 8}
# Turns of two steps each that start them for s < 0.
_DEEP_TURNS = 2


def _relu(x: Array) -> Array:
    xp = namespace(x)
    return xp.where(x < 0, xp.zeros_like(x), x)


def _power(q: Array, beta: float) -> Array:
    """p = q^(1/β)."""
    return q * q if beta == 0.5 else q ** (1 / beta)


def _slope(q: Array, beta: float) -> Array:
    """p^(1−β), from q = p^β so that it is smooth where p = 0 too."""
    return q if beta == 0.5 else q ** ((1 - beta) / beta)


def _masked_gap(y: Array, s: Array) -> Array:
    """Product y (−s)₊, where 0 · ∞ counts as 0."""
    xp = namespace(y)
    return xp.where(y > 0, y * _relu(-s), xp.zeros_like(y))


@dataclass(frozen=True, eq=False)
class EntmaxKernel(Elementwise):
    """p = (β s)₊^(1/β)."""

    y: Array
    beta: float

    @property
    def power(self) -> float:
        return self.beta

    def start(self, theta: Array) -> Array:
        # there the largest entry alone is one
        return row_max(theta) - 1 / self.beta

    def _root_and_link(self, s: Array) -> tuple[Array, Array]:
        """q = p^β, which keeps its digits where p underflows, and p."""
        q = _relu(self.beta * s)
        return q, _power(q, self.beta)

    def point(self, s: Array) -> tuple[Array, Array]:
        q, p = self._root_and_link(s)
        return p, _slope(q, self.beta)

    def terms(self, s: Array) -> Array:
        return self._divergence(*self._root_and_link(s)) + _masked_gap(self.y, s)

    def _divergence(self, q: Array, p: Array) -> Array:
        """D_ψ(y, p) = (y^α + β p^α − α p^β y)/(α β)."""
        xp = namespace(p)
        y, alpha, beta = self.y, 1 + self.beta, self.beta
        if beta == 0.5:
            a = xp.sqrt(y)
            return (a - q) * (a - q) * (2 * a + q) * (2 / 3)
        both = (y > 0) & (p > 0)
        one = xp.ones_like(y)
        ratio = xp.log(xp.where(both, y, one)) - xp.log(xp.where(both, p, one))
        near = both & (xp.abs(ratio) < 0.5)
        ratio = xp.where(near, ratio, xp.zeros_like(ratio))
        close = p * q * (expm1_minus_x(alpha * ratio) - alpha * expm1_minus_x(ratio))
        apart = y**alpha + beta * p * q - alpha * q * y
        return xp.where(near, close, apart) / (alpha * beta)


@dataclass(frozen=True, eq=False)
class FitzpatrickEntmaxKernel(Elementwise):
    """p the root of (α/β) p^β − y p^(β−1) = s."""

    y: Array
    beta: float

    @property
    def power(self) -> float:
        return self.beta

    def start(self, theta: Array) -> Array:
        # an entry with s = α/β is at least one
        return row_max(theta) - (1 + self.beta) / self.beta

    def point(self, s: Array) -> tuple[Array, Array]:
        xp = namespace(s)
        q = self._root(s)
        p = _power(q, self.beta)
        w = self.y / xp.where(p == 0, xp.ones_like(p), p)
        slope = _slope(q, self.beta) / (1 + self.beta + (1 - self.beta) * w)
        return p, xp.where(p == 0, xp.zeros_like(p), slope)

    def terms(self, s: Array) -> Array:
        # (p − y)² p^(β−1) in two forms that stay exact where p underflows: q (p − y)(1 − y/p),
        # and (y − p)(q/β − s) by the equation of p, whose terms have one sign for s < 0
        xp = namespace(s)
        q = self._root(s)
        p = _power(q, self.beta)
        w = self.y / xp.where(p == 0, xp.ones_like(p), p)
        rising = xp.where(p == 0, xp.zeros_like(p), q * (p - self.y) * (1 - w))
        falling = (self.y - p) * (q / self.beta + _relu(-s))
        return xp.where(s < 0, xp.where(self.y > 0, falling, xp.zeros_like(p)), rising)

    def _root(self, s: Array) -> Array:
        """q = p^β, which keeps its digits where p underflows."""
        return self._quadratic_root(s) if self.beta == 0.5 else self._newton_root(s)

    def _quadratic_root(self, s: Array) -> Array:
        xp = namespace(s)
        size = xp.abs(s)
        # √(s² + 12 y) without overflow; s = −∞ masks the entry
        length = xp.hypot(s, xp.sqrt(12 * self.y))
        larger = (size + length) / 6
        smaller = xp.where(self.y > 0, self.y / (3 * larger), _relu(s))
        return xp.where(s > 0, larger, smaller)

    def _newton_root(self, s: Array) -> Array:
        """Newton's method on q = p^β, where the equation a q − y q^(−c) = s is concave.

        It increases to the root from any lower bound. For s ≥ 0 the roots with y = 0 and with
        s = 0 are lower bounds, within a factor of two of the root.
        """
        xp = namespace(s)
        alpha, beta = 1 + self.beta, self.beta
        a, c = alpha / beta, (1 - beta) / beta
        positive = self.y > 0
        log_y = xp.log(xp.where(positive, self.y, xp.ones_like(s)))
        alone = _relu(s) / a
        still = xp.exp(beta * (log_y - math.log(a)))
        q = xp.where(alone > still, alone, still)
        q = xp.where(s < 0, xp.exp(beta * self._deep_root(s, log_y)), q)
        q = xp.where(positive, q, alone)
        for _ in range(_ENTRY_STEPS[precision_bits(s)]):
            safe = xp.where(positive & (q > 0), q, xp.ones_like(q))
            pull = xp.exp(log_y - c * xp.log(safe))
            step = (s + pull - a * safe) / (a + c * pull / safe)
            q = xp.where(positive & (q > 0), safe + step, q)
        return q

    def _deep_root(self, s: Array, log_y: Array) -> Array:
        """t = log p within a few per cent for s < 0, however fast p decays as α approaches 2.

        There a p/y + |s| p^(1−β)/y = 1 is concave in p, so that a Newton step in p ends below the
        root, and log-convex in t with slopes between 1 − β and 1, so that one in t ends above.
        Taken by turns, they close in from both sides.
        """
        xp = namespace(s)
        rate = 1 - self.beta
        zero = xp.zeros_like(s)
        log_a = math.log((1 + self.beta) / self.beta) - log_y
        masked = s == -xp.inf
        log_depth = xp.log(xp.where((s < 0) & ~masked, -s, zero + 1)) - log_y
        t = xp.where(log_depth > rate * log_a, -log_depth / rate, -log_a)
        for _ in range(_DEEP_TURNS):
            first, second = xp.exp(log_a + t), xp.exp(log_depth + rate * t)
            step = (first + second - 1) / (first + rate * second)
            t = t + xp.log1p(-xp.where(step < 1, step, zero))
            first, second = xp.exp(log_a + t), xp.exp(log_depth + rate * t)
            total = first + second
            t = t - xp.log(total) * total / (first + rate * second)
        return xp.where(masked, s, t)


@dataclass(frozen=True)
class Tsallis(SeparableRegularizer):
    r"""Negative Tsallis entropy on the simplex, :math:`1 \le \alpha \le 2`.

    .. math:: \Omega(y) = \frac{1}{\alpha(\alpha - 1)} \sum_i (y_i^\alpha - y_i).

    The link is α-entmax: the soft argmax for α = 1 (where Ω is the negentropy), the sparse argmax
    for α = 2 (where Ω is half the squared norm, less the constant ½). Predictions are sparse for
    α > 1. α = 1.5 is in closed form up to τ; for other α the results lose about 1/(α − 1) ulp as α
    approaches 1.

    Args:
        alpha: the order α.

    Example:
        >>> import numpy as np
        >>> import fitzpatrick as fp
        >>> Tsallis(1.5).link(np.asarray([1.0, 0.5, -3.0])).round(4)
        array([0.674, 0.326, 0.   ])
        >>> y, theta = np.asarray([1.0, 0.0, 0.0]), np.asarray([0.0, 1.0, 0.0])
        >>> fp.FitzpatrickLoss(Tsallis(1.5)).value(y, theta).round(4)
        np.float64(0.5423)
    """

    alpha: float = 1.5

    def __post_init__(self) -> None:
        if not 1 <= self.alpha <= 2:
            raise ValueError(f"Tsallis needs 1 <= alpha <= 2, got {self.alpha}")

    @property
    def domain(self) -> ConvexSet:
        return Simplex()

    def potential(self, y: Array) -> Array:
        xp = namespace(y)
        if self.alpha == 1:
            return Negentropy().potential(y)
        return xp.sum(y**self.alpha - y, axis=-1) / (self.alpha * (self.alpha - 1))

    def potential_gradient(self, z: Array) -> Array:
        xp = namespace(z)
        beta = self.alpha - 1
        return xp.log(z) if beta == 0 else z**beta / beta

    def potential_curvature(self, z: Array, v: Array) -> Array:
        xp = namespace(z)
        curved = v * v * z ** (self.alpha - 2)
        return xp.sum(xp.where(v == 0, xp.zeros_like(v), curved), axis=-1)

    def fenchel_young_kernel(self, y: Array) -> Elementwise:
        if self.alpha == 1:
            return Negentropy().fenchel_young_kernel(y)
        if self.alpha == 2:
            return SquaredKernel(y, Orthant(), mix=0.0)
        return EntmaxKernel(y, self.alpha - 1)

    def fitzpatrick_kernel(self, y: Array) -> Elementwise:
        if self.alpha == 1:
            return Negentropy().fitzpatrick_kernel(y)
        if self.alpha == 2:
            return SquaredKernel(y, Orthant(), mix=0.5)
        return FitzpatrickEntmaxKernel(y, self.alpha - 1)
