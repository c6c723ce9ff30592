r"""Tsallis entropies, the α-entmax family between the logistic and the sparsemax loss.

With β = α − 1, s = θ − τ and the tightness c, up to constants that τ absorbs, the maximizer p is
the root of

.. math:: (1/\beta + c)\, p^\beta - c\, y\, p^{\beta - 1} = s,

which is :math:`p = (\beta s)_+^{1/\beta}` where c y = 0, and for α = 1.5 a quadratic's:
:math:`\sqrt p = (s + \sqrt{s^2 + 4(2 + c)\,c\,y})/(4 + 2c)`. The loss is D + c (Q − D), with

.. math:: D = D_\psi(y, p) = \frac{y^\alpha + \beta p^\alpha - \alpha p^\beta y}{\alpha\beta},
          \qquad Q = p^{\beta - 1} (p - y)^2,

plus :math:`y\,(-s)_+` where p = 0.

The link alone is also written for an array of orders, one for each row, up to and including α = 1:
with x = θ − λ and λ = τ + 1/β it is :math:`p = (1 + \beta x)_+^{1/\beta}`, which tends to
:math:`e^x`. Its derivative in α follows from Σ p = 1, with d = p^{1−β}:

.. math:: \frac{\partial p}{\partial\alpha}
          = r - d\,\frac{\langle r, 1\rangle}{\langle d, 1\rangle},
          \qquad r = -p\,\frac{p^{-\beta} - 1 + \beta \log p}{\beta^2}.
"""

import math
from dataclasses import dataclass

from .._array import Array, namespace, precision_bits, quiet, row_max, row_sum
from .._root import newton_steps, shift_to_root
from ..sets import ConvexSet, Simplex
from ..special import expm1_minus_x
from ._base import Elementwise, SeparableRegularizer
from .negentropy import Negentropy
from .squared_norm import SquaredNorm

# Newton steps for the entries' own roots where they have no closed form, by bits of precision.
_ENTRY_STEPS = {53: 10, 24: 8}
# Turns of two steps each that start them for s < 0.
_DEEP_TURNS = 2
# Below this (e^t − 1 − t)/t² is 1/2 + t/6 to the last bit.
_TINY_EXPONENT = 1e-8


def _relu(x: Array) -> Array:
    xp = namespace(x)
    return xp.where(x < 0, xp.zeros_like(x), x)


def _power(q: Array, beta: float) -> Array:
    """p = q^(1/β)."""
    return q * q if beta == 0.5 else q ** (1 / beta)


def _slope(p: Array, q: Array, y: Array, beta: float, tightness: float) -> Array:
    """d = ∂p/∂s, from p and q = p^β, so that it is smooth where p = 0 too."""
    xp = namespace(p)
    flat = q if beta == 0.5 else q ** ((1 - beta) / beta)  # p^(1 − β)
    if tightness == 0:
        return flat
    w = y / xp.where(p == 0, xp.ones_like(p), p)
    slope = flat / (1 + tightness * beta + tightness * (1 - beta) * w)
    return xp.where(p == 0, xp.zeros_like(p), slope)


@dataclass(frozen=True, eq=False)
class EntmaxKernel(Elementwise):
    """The formulas above, in terms of q = p^β, which keeps its digits where p underflows."""

    y: Array
    beta: float
    tightness: float

    @property
    def power(self) -> float:
        return self.beta

    @property
    def _reach(self) -> float:
        """1/β + c: an entry that exceeds τ by so much is at least one."""
        return 1 / self.beta + self.tightness

    def start(self, theta: Array) -> Array:
        return row_max(theta) - self._reach

    def end(self, theta: Array) -> Array:
        # there p is at most y c/(1/β + c), which sums to less than one
        return row_max(theta)

    def point(self, s: Array) -> tuple[Array, Array]:
        q = self._root(s)
        p = _power(q, self.beta)
        return p, _slope(p, q, self.y, self.beta, self.tightness)

    def terms(self, s: Array) -> Array:
        xp, c = namespace(s), self.tightness
        q = self._root(s)
        p = _power(q, self.beta)
        if c == 0:
            depth = xp.where(self.y > 0, self.y * _relu(-s), xp.zeros_like(s))
            return self._divergence(q, p) + depth
        quadratic = self._quadratic_form(s, q, p)
        if c == 1:
            return quadratic
        divergence = self._divergence(q, p)
        if c < 1:
            return (1 - c) * divergence + quadratic
        excess = quadratic - c * divergence
        # both may be infinite, where a class with a target is masked
        return divergence + xp.where(excess > 0, excess, xp.zeros_like(excess))

    def _quadratic_form(self, s: Array, q: Array, p: Array) -> Array:
        """c Q = c (p − y)² p^(β−1), in two forms that stay exact where p underflows.

        They are c q (p − y)(1 − y/p), and (y − p)(q/β − s) by the equation of p, whose terms have
        one sign for s < 0.
        """
        xp = namespace(s)
        zero = xp.zeros_like(p)
        w = self.y / xp.where(p == 0, xp.ones_like(p), p)
        rising = xp.where(p == 0, zero, self.tightness * q * (p - self.y) * (1 - w))
        falling = xp.where(self.y > 0, (self.y - p) * (q / self.beta + _relu(-s)), zero)
        return xp.where(s < 0, falling, rising)

    def _divergence(self, q: Array, p: Array) -> Array:
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

    def _root(self, s: Array) -> Array:
        """q = p^β."""
        if self.tightness == 0:
            return _relu(self.beta * s)
        return self._quadratic_root(s) if self.beta == 0.5 else self._newton_root(s)

    def _quadratic_root(self, s: Array) -> Array:
        xp = namespace(s)
        # √(s² + 4 (2 + c) c y) without overflow; s = −∞ masks the entry
        length = xp.hypot(s, xp.sqrt(4 * self._reach * self.tightness * self.y))
        larger = (xp.abs(s) + length) / (2 * self._reach)
        # by the product of the two roots, without cancellation
        smaller = self.tightness * self.y / (self._reach * larger)
        return xp.where(s > 0, larger, xp.where(self.y > 0, smaller, _relu(s)))

    def _newton_root(self, s: Array) -> Array:
        """Newton's method on q, in which the equation a q − c y q^(−e) = s is concave.

        It increases to the root from any lower bound. For s ≥ 0 the roots with y = 0 and with
        s = 0 are lower bounds, within a factor of two of the root.
        """
        xp = namespace(s)
        beta, a = self.beta, self._reach
        e = (1 - beta) / beta
        positive = self.y > 0
        log_cy = xp.log(xp.where(positive, self.y, xp.ones_like(s))) + math.log(self.tightness)
        alone = _relu(s) / a
        still = xp.exp(beta * (log_cy - math.log(a)))
        q = xp.where(alone > still, alone, still)
        q = xp.where(s < 0, xp.exp(beta * self._deep_root(s, log_cy)), q)
        q = xp.where(positive, q, alone)
        for _ in range(_ENTRY_STEPS[precision_bits(s)]):
            safe = xp.where(positive & (q > 0), q, xp.ones_like(q))
            pull = xp.exp(log_cy - e * xp.log(safe))
            step = (s + pull - a * safe) / (a + e * pull / safe)
            q = xp.where(positive & (q > 0), safe + step, q)
        return q

    def _deep_root(self, s: Array, log_cy: Array) -> Array:
        """t = log p within a few percent for s < 0, however fast p decays as α approaches 2.

        There a p/(c y) + |s| p^(1−β)/(c y) = 1 is concave in p, so that a Newton step in p ends
        below the root, and log-convex in t with slopes between 1 − β and 1, so that one in t ends
        above. Taken by turns, they close in from both sides.
        """
        xp = namespace(s)
        rate = 1 - self.beta
        zero = xp.zeros_like(s)
        log_a = math.log(self._reach) - log_cy
        masked = s == -xp.inf
        log_depth = xp.log(xp.where((s < 0) & ~masked, -s, zero + 1)) - log_cy
        t = xp.where(log_depth > rate * log_a, -log_depth / rate, -log_a)
        for _ in range(_DEEP_TURNS):
            first, second = xp.exp(log_a + t), xp.exp(log_depth + rate * t)
            step = (first + second - 1) / (first + rate * second)
            t = t + xp.log1p(-xp.where(step < 1, step, zero))
            first, second = xp.exp(log_a + t), xp.exp(log_depth + rate * t)
            total = first + second
            t = t - xp.log(total) * total / (first + rate * second)
        return xp.where(masked, s, t)


class EntmaxZeroKernel(EntmaxKernel):
    """The same where y = 0 throughout: q = (s)₊/(1/β + c), and the terms p q (1 + c β)/α."""

    def point(self, s: Array) -> tuple[Array, Array]:
        q = _relu(s) / self._reach
        flat = q if self.beta == 0.5 else q ** ((1 - self.beta) / self.beta)
        return _power(q, self.beta), flat / (1 + self.tightness * self.beta)

    def terms(self, s: Array) -> Array:
        q = _relu(s) / self._reach
        return q * _power(q, self.beta) * ((1 + self.tightness * self.beta) / (1 + self.beta))


def _entmax_point(x: Array, beta: Array) -> tuple[Array, Array]:
    """p = (1 + βx)₊^(1/β), e^x for β = 0, and ∂p/∂x."""
    xp = namespace(x)
    zero = xp.zeros_like(x)
    is_masked = x == -xp.inf
    x = xp.where(is_masked, zero, x)
    z = beta * x
    is_inside = ~(is_masked | (z <= -1))  # NaN is
    z = xp.where(is_inside, z, zero)
    is_small = z == 0
    safe = xp.where(is_small, xp.ones_like(z), z)
    # log1p(βx)/β, whose digits do not depend on β
    exponent = x * xp.where(is_small, xp.ones_like(z), xp.log1p(safe) / safe)
    p = xp.where(is_inside, xp.exp(exponent), zero)
    return p, p / (1 + z)


@quiet
def entmax_link(theta: Array, alpha: Array) -> Array:
    """α-entmax of each row, for an array of orders, 1 ≤ α ≤ 2, that broadcasts to (…, 1).

    Example:
        >>> import numpy as np
        >>> theta, alpha = np.asarray([[1.0, 0.5, -3.0]] * 3), np.asarray([[1.0], [1.5], [2.0]])
        >>> entmax_link(theta, alpha).round(4)
        array([[0.6154, 0.3733, 0.0113],
               [0.674 , 0.326 , 0.    ],
               [0.75  , 0.25  , 0.    ]])
    """
    beta = alpha - 1
    theta = theta - row_max(theta)
    start = namespace(theta).zeros_like(row_max(theta + 0 * beta))
    x = shift_to_root(lambda x: _entmax_point(x, beta), theta, start, beta, newton_steps(theta))
    return _entmax_point(x, beta)[0]


@quiet
def entmax_slope(p: Array, alpha: Array) -> Array:
    """d = p^(2−α), 0 where p = 0, of predictions p."""
    xp = namespace(p)
    is_active = p > 0
    safe = xp.where(is_active, p, xp.ones_like(p))
    d = xp.where(is_active, safe ** (2 - alpha), xp.zeros_like(p))
    return d + (p - p)  # NaN where p is


@quiet
def entmax_alpha_slope(p: Array, alpha: Array) -> Array:
    """∂p/∂α of predictions p, which sums to zero."""
    xp = namespace(p)
    beta = alpha - 1
    is_active = p > 0
    log_p = xp.log(xp.where(is_active, p, xp.ones_like(p)))
    t = -beta * log_p
    is_tiny = t < _TINY_EXPONENT
    safe = xp.where(is_tiny, xp.ones_like(t), t)
    # (e^t − 1 − t)/t²
    ratio = xp.where(is_tiny, 0.5 + t / 6, expm1_minus_x(safe) / (safe * safe))
    r = xp.where(is_active, -p * log_p * log_p * ratio, xp.zeros_like(p))
    d = entmax_slope(p, alpha)
    return r - d * (row_sum(r) / row_sum(d))


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

    @property
    def _limit(self) -> SeparableRegularizer | None:
        """What this is at the ends of its range, but for a constant."""
        if self.alpha == 1:
            return Negentropy()
        return SquaredNorm(Simplex()) if self.alpha == 2 else None

    @property
    def has_kinks(self) -> bool:
        return self.alpha > 1

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

    def kernel(self, y: Array, tightness: float) -> Elementwise:
        if self._limit is not None:
            return self._limit.kernel(y, tightness)
        return EntmaxKernel(y, self.alpha - 1, tightness)

    def zero_kernel(self, zero: Array, tightness: float) -> Elementwise:
        if self._limit is not None:
            return self._limit.zero_kernel(zero, tightness)
        return EntmaxZeroKernel(zero, self.alpha - 1, tightness)

    def slope(self, p: Array, y: Array, tightness: float) -> Array:
        if self._limit is not None:
            return self._limit.slope(p, y, tightness)
        beta = self.alpha - 1
        return _slope(p, p**beta, y, beta, tightness)
