r"""Tsallis entropies, the α-entmax family between the logistic and the sparsemax loss.

With β = α − 1, s = θ − τ and the tightness c, up to constants that τ absorbs, the maximizer p is
the root of

.. math:: (1/\beta + c)\, p^\beta - c\, y\, p^{\beta - 1} = s,

which is :math:`p = (\beta s)_+^{1/\beta}` where c y = 0, and for α = 1.5 a quadratic's:
:math:`\sqrt p = (s + \sqrt{s^2 + 4(2 + c)\,c\,y})/(4 + 2c)`. The loss is D + c (Q − D), with

.. math:: D = D_\psi(y, p) = \frac{y^\alpha + \beta p^\alpha - \alpha p^\beta y}{\alpha\beta},
          \qquad Q = p^{\beta - 1} (p - y)^2,

plus :math:`y\,(-s)_+` where p = 0.

Near α = 1, where 1/β is large, s is counted from where a prediction is one, that is, less by 1/β:
then :math:`p = (1 + \beta s)_+^{1/\beta}`, which tends to :math:`e^s`. With a = 1 there and a = 0
elsewhere, :math:`m = (p^\beta - a)/\beta` and :math:`m(y) = (y^\beta - a)/\beta`, both cases are

.. math:: m + c\,p^\beta - c\,y\,p^{\beta - 1} = s, \qquad
          \alpha D = y\,(m(y) - m) - p^\beta (y - p).

The link alone is also written for an array of orders, one for each row, up to and including α = 1.
Its derivative in α follows from Σ p = 1, with d = p^{1−β}:

.. math:: \frac{\partial p}{\partial\alpha}
          = r - d\,\frac{\langle r, 1\rangle}{\langle d, 1\rangle},
          \qquad r = -p\,\frac{p^{-\beta} - 1 + \beta \log p}{\beta^2}.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from .._array import Array, inner, namespace, positive_part, precision_bits, quiet, row_max, row_sum
from .._root import newton_steps, shift_to_root
from ..sets import Simplex
from ..special import expm1_minus_x, softplus
from ._base import Elementwise, SeparableRegularizer, Solution, family
from .chain import EntropyChain, TsallisChain, solve_chain
from .negentropy import Negentropy
from .squared_norm import SquaredNorm

# Below this β, s is counted from where a prediction is one: the rounding errors of s = θ − τ, which
# 1/β multiplies, would be too many.
_ANCHORED = 1 / 8
# Steps of Halley's method for the entries' own roots, by bits of precision, for α up to 1.97: one
# more than any score and target needed in a search.
_ENTRY_STEPS = {53: 4, 24: 3}
# Below this (e^t − 1 − t)/t² is 1/2 + t/6 to the last bit.
_TINY_EXPONENT = 1e-8


def anchor_of(beta: float) -> float:
    """The number a of the formulas above."""
    return 1.0 if beta < _ANCHORED else 0.0


def _deformed_log(y: Array, beta: float) -> Array:
    """(y^β − a)/β."""
    xp = namespace(y)
    return xp.expm1(beta * xp.log(y)) / beta if beta < _ANCHORED else y**beta / beta


def _level(p: Array, y: Array, beta: float, tightness: float) -> Array:
    """s where the maximizer is p."""
    level = _deformed_log(p, beta)
    return level + tightness * (p**beta - y * p ** (beta - 1)) if tightness > 0 else level


def _slope(p: Array, flat: Array, y: Array, beta: float, tightness: float) -> Array:
    """d = ∂p/∂s, from p and p^(1−β)."""
    if tightness == 0:
        return flat
    xp = namespace(p)
    w = y / xp.where(p == 0, 1.0, p)
    slope = flat / (1 + tightness * beta + tightness * (1 - beta) * w)
    return xp.where(p == 0, 0.0, slope)


def _distance(kappa: Array, b: Array, steps: int) -> Array:
    """v ≥ 0 with v + log((1 − e^(−κv))/κ) = b, a concave function of v.

    Without the exponential, or with κ → 0, there are two lower bounds, a number and a Wright omega
    function, which Iacono and Boyd approximate within two percent. From the larger one Halley's
    method triples the digits, once it has come around the corner that a large κ makes.
    """
    xp = namespace(b)
    log_kappa, start = xp.log(kappa), softplus(b)
    v = xp.maximum(start * (1 - xp.log1p(start) / (2 + start)), b + log_kappa)
    level, tiny = b + log_kappa, float(xp.finfo(b.dtype).smallest_normal)
    for _ in range(steps):
        x = kappa * v
        part = xp.clip(-xp.expm1(-x), tiny)
        excess = v + xp.log(part) - level
        share = x * (1 - part) / part  # the slope is 1 + share/v, the curvature share x/(part v²)
        slope = v + share
        bend = xp.clip(1 + excess / slope * (share * x / part) / (2 * slope), 0.25)
        step = excess / slope / bend
        # κv that underflows, which some libraries round to zero, moves nowhere
        v = v - v * xp.where(xp.isfinite(step) & (x > tiny), step, 0.0)
    return v


@dataclass(frozen=True, eq=False)
class EntmaxFormulas(Elementwise):
    """The formulas above in terms of t = log p, for any 1 < α < 2."""

    y: Array
    log_y: Array
    beta: float
    tightness: float

    @property
    def power(self) -> float:
        return self.beta

    def start(self, theta: Array) -> Array:
        # there the largest entry alone is one, or more
        return row_max(theta) - ((1 - anchor_of(self.beta)) / self.beta + self.tightness)

    def end(self, theta: Array) -> Array:
        # there p is at most y c/(1/β + c), which sums to less than one
        return row_max(theta) + anchor_of(self.beta) / self.beta

    def point(self, s: Array) -> tuple[Array, Array]:
        xp = namespace(s)
        t = self._logarithm(s)
        p = xp.exp(t)
        return p, _slope(p, xp.exp((1 - self.beta) * t), self.y, self.beta, self.tightness)

    def level(self, p: Array) -> Array:
        """s where the maximizer is p."""
        return _level(p, self.y, self.beta, self.tightness)

    def terms(self, s: Array) -> Array:
        xp, y, beta, c = namespace(s), self.y, self.beta, self.tightness
        a = anchor_of(beta)
        t = self._logarithm(s)
        p, q = xp.exp(t), xp.exp(beta * t)
        if c == 0:
            m = xp.where(s < -a / beta, -a / beta, s)
            return self._divergence(t, p, q, m) + xp.where(y > 0, y * (m - s), 0.0)
        m = (xp.expm1(beta * t) if a else q) / beta
        quadratic = self._quadratic_form(s, t, p, q, m)
        return quadratic if c == 1 else family(self._divergence(t, p, q, m), quadratic, c)

    def _quadratic_form(self, s: Array, t: Array, p: Array, q: Array, m: Array) -> Array:
        """c Q = c q (p − y)(1 − y/p), or (y − p)(m − s) by the equation of p.

        The terms of the latter have one sign where p decays like a power of s.
        """
        xp = namespace(s)
        is_below = s <= -anchor_of(self.beta) / self.beta
        w = xp.where(is_below, 0.0, xp.exp(self.log_y - t))
        falling = xp.where(self.y > 0, (self.y - p) * (m - s), 0.0)
        return xp.where(is_below, falling, self.tightness * q * (p - self.y) * (1 - w))

    def _divergence(self, t: Array, p: Array, q: Array, m: Array) -> Array:
        xp = namespace(p)
        y, beta = self.y, self.beta
        r = self.log_y - t
        near = xp.abs(r) < 0.5
        r = xp.where(near, r, 0.0)
        # e^r (e^(βr) − 1)/β − (e^r − 1), in two parts that do not cancel
        first = xp.exp(r) * expm1_minus_x(beta * r) / beta
        close = p * q * (first + (r * xp.expm1(r) - expm1_minus_x(r)))
        apart = y * (_deformed_log(y, beta) - m) - q * (y - p)
        return xp.where(near, close, apart) / (1 + beta)

    def _logarithm(self, s: Array) -> Array:
        """t = log p; −∞ where p = 0."""
        alone = self._alone(s)
        return alone if self.tightness == 0 else self._root(s, alone)

    def _alone(self, s: Array) -> Array:
        """log p where y = 0: p^β = a + β(s − a c)/(1 + c β)."""
        xp = namespace(s)
        a, growth = anchor_of(self.beta), 1 + self.tightness * self.beta
        z = self.beta / growth * (s - a * self.tightness)
        has_mass = ~(z <= -a)  # NaN has
        z = xp.where(has_mass, z, 1.0)
        t = (xp.log1p(z) if a else xp.log(z)) / self.beta
        return xp.where(has_mass, t, -xp.inf)

    def _root(self, s: Array, alone: Array) -> Array:
        """t where y may be positive, from the root ``alone`` that it has without y, or below.

        With R = 1/β + c the equation is c y/(R p) = 1 − (p₀/p)^β where ``alone`` is log p₀, and
        e^((1−β)ε) − e^(−βε) = |s|/(R p₁^β) where s < 0, with p₁ = c y/R and t = log p₁ − ε. In
        logarithms, with v = t − log p₀ or (1 − β) ε, both are of one form.
        """
        xp, beta, c = namespace(s), self.beta, self.tightness
        one = xp.ones_like(s)
        has_target, is_above = self.y > 0, ~(alone == -xp.inf)
        log_y = xp.where(has_target, self.log_y, 0.0)
        still = log_y + (math.log(c) + math.log(beta) - math.log1p(c * beta))  # log p₁
        is_masked = s == -xp.inf
        depth = xp.where(is_above | is_masked, 1.0, -s - anchor_of(beta) / beta)
        rise = still - math.log(beta) - xp.where(is_above, alone, 0.0)
        fall = (1 - beta) * still + xp.log(depth) - (log_y + math.log(c)) + math.log1p(-beta)
        kappa = xp.where(is_above, beta * one, one / (1 - beta))
        # one step more for each power of ten that 1/(1 − β) has
        more = math.ceil(max(0.0, -1.2 * math.log10(1 - beta) - 1.8))
        steps = _ENTRY_STEPS[precision_bits(s)] + more
        v = _distance(kappa, xp.where(is_above, rise, fall), steps)
        t = xp.where(is_above, alone + v, xp.where(is_masked, s, still - v / (1 - beta)))
        # a last step in t, which has more digits than v where p is much larger than p₀
        is_far = is_above & (t - alone > 1)
        part = -xp.expm1(-beta * xp.where(is_far, t - alone, 1.0))
        step = (t - still + xp.log(part)) / (1 + beta * (1 - part) / part)
        return xp.where(has_target, xp.where(is_far, t - step, t), alone)


class EntmaxZeroFormulas(EntmaxFormulas):
    """The formulas where y = 0 throughout: the terms are p q (1 + c β)/α."""

    def point(self, s: Array) -> tuple[Array, Array]:
        xp = namespace(s)
        t = self._alone(s)
        flat = xp.exp((1 - self.beta) * t)
        return xp.exp(t), flat / (1 + self.tightness * self.beta)

    def terms(self, s: Array) -> Array:
        xp, t = namespace(s), self._alone(s)
        growth = 1 + self.tightness * self.beta
        return xp.exp(t) * xp.exp(self.beta * t) * (growth / (1 + self.beta))


@dataclass(frozen=True, eq=False)
class Entmax15Formulas(Elementwise):
    """α = 1.5 in closed form, in terms of q = √p, which keeps its digits where p underflows."""

    y: Array
    tightness: float
    power = 0.5

    @property
    def _reach(self) -> float:
        """R = 2 + c: an entry that exceeds τ by so much is at least one."""
        return 2 + self.tightness

    def start(self, theta: Array) -> Array:
        return row_max(theta) - self._reach

    def end(self, theta: Array) -> Array:
        return row_max(theta)

    def point(self, s: Array) -> tuple[Array, Array]:
        q = self._root(s)
        p = q * q
        return p, _slope(p, q, self.y, 0.5, self.tightness)

    def level(self, p: Array) -> Array:
        """s where the maximizer is p."""
        return _level(p, self.y, 0.5, self.tightness)

    def terms(self, s: Array) -> Array:
        xp, y, c = namespace(s), self.y, self.tightness
        q, root = self._root(s), xp.sqrt(y)
        p, gap = q * q, root - q
        # c Q, by the equation of q where p may underflow: its terms have one sign for s < 0
        depth = xp.where(y > 0, (y - p) * (2 * q + positive_part(-s)), 0.0)
        if c == 0:
            divergence = gap * gap * (2 * root + q) * (2 / 3)
            return divergence + xp.where(s < 0, depth, 0.0)
        w = y / xp.where(p == 0, 1.0, p)
        rising = xp.where(p == 0, 0.0, c * q * (p - y) * (1 - w))
        quadratic = xp.where(s < 0, depth, rising)
        if c == 1:
            return quadratic
        mixed = family(gap * gap * (2 * root + q) * (2 / 3), quadratic, c)
        if c < 1:
            return mixed
        # q is near √y, and a step in the equation of their difference finds its digits
        slope = 2 * self._reach * root - s
        near = (xp.abs(gap) < root / 8) & (slope > self._reach * root)
        gap = (root * (2 * root - s) + self._reach * gap * gap) / slope
        close = gap * gap * (2 / 3 * (2 * root + q) + c / 3 * (q + 2 * root + 3 * y / q))
        return xp.where(near, close, mixed)

    def _root(self, s: Array) -> Array:
        """q = √p."""
        if self.tightness == 0:
            return positive_part(0.5 * s)
        xp = namespace(s)
        # √(s² + 4 (2 + c) c y) without overflow or underflow; s = −∞ masks the entry
        bend = math.sqrt(4 * self._reach * self.tightness) * xp.sqrt(self.y)
        twice = xp.abs(s) + xp.hypot(s, bend)
        larger = twice / (2 * self._reach)
        # by the product of the two roots, without cancellation
        share = bend / xp.where(twice == 0, 1.0, twice)
        smaller = share * bend / (2 * self._reach)
        return xp.where(s > 0, larger, xp.where(self.y > 0, smaller, positive_part(s)))


class Entmax15ZeroFormulas(Entmax15Formulas):
    """The formulas where y = 0 throughout."""

    def point(self, s: Array) -> tuple[Array, Array]:
        q = positive_part(s) / self._reach
        return q * q, q * (2 / self._reach)

    def terms(self, s: Array) -> Array:
        q = positive_part(s) / self._reach
        return q * q * q * (self._reach / 3)


def entmax_point(x: Array, beta: Array) -> tuple[Array, Array]:
    """p = (1 + βx)₊^(1/β), e^x for β = 0, and ∂p/∂x."""
    xp = namespace(x)
    is_masked = x == -xp.inf
    x = xp.where(is_masked, 0.0, x)
    z = beta * x
    is_inside = ~(is_masked | (z <= -1))  # NaN is
    z = xp.where(is_inside, z, 0.0)
    is_small = z == 0
    safe = xp.where(is_small, 1.0, z)
    # log1p(βx)/β, whose digits do not depend on β
    exponent = x * xp.where(is_small, 1.0, xp.log1p(safe) / safe)
    p = xp.where(is_inside, xp.exp(exponent), 0.0)
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
    x = shift_to_root(lambda x: entmax_point(x, beta), theta, start, beta, newton_steps(theta))
    return entmax_point(x, beta)[0]


@quiet
def entmax_slope(p: Array, alpha: Array) -> Array:
    """d = p^(2−α), 0 where p = 0, of predictions p."""
    xp = namespace(p)
    is_active = p > 0
    safe = xp.where(is_active, p, 1.0)
    d = xp.where(is_active, safe ** (2 - alpha), 0.0)
    return d + (p - p)  # NaN where p is


@quiet
def entmax_alpha_slope(p: Array, alpha: Array) -> Array:
    """∂p/∂α of predictions p, which sums to zero."""
    xp = namespace(p)
    beta = alpha - 1
    is_active = p > 0
    log_p = xp.log(xp.where(is_active, p, 1.0))
    t = -beta * log_p
    is_tiny = t < _TINY_EXPONENT
    safe = xp.where(is_tiny, 1.0, t)
    # (e^t − 1 − t)/t²
    ratio = xp.where(is_tiny, 0.5 + t / 6, expm1_minus_x(safe) / (safe * safe))
    r = xp.where(is_active, -p * log_p * log_p * ratio, 0.0)
    d = entmax_slope(p, alpha)
    return r - d * (row_sum(r) / row_sum(d))


@dataclass(frozen=True)
class Tsallis(SeparableRegularizer):
    r"""Negative Tsallis entropy on the simplex, :math:`1 \le \alpha \le 2`.

    .. math:: \Omega(y) = \frac{1}{\alpha(\alpha - 1)} \sum_i (y_i^\alpha - y_i).

    The link is α-entmax: the soft argmax for α = 1 (where Ω is the negentropy), the sparse argmax
    for α = 2 (where Ω is half the squared norm, less the constant ½). Predictions are sparse for
    α > 1. α = 1.5 is in closed form up to τ.

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
    domain = Simplex()

    def __post_init__(self) -> None:
        if not 1 <= self.alpha <= 2:
            raise ValueError(f"Tsallis needs 1 <= alpha <= 2, got {self.alpha}")

    @property
    def _limit(self) -> SeparableRegularizer | None:
        """The regularizer that this is at the ends of its range, up to a constant."""
        if self.alpha == 1:
            return Negentropy()
        return SquaredNorm(Simplex()) if self.alpha == 2 else None

    @property
    def entmax_alpha(self) -> float | None:
        return float(self.alpha) if type(self) is Tsallis else None

    @property
    def has_kinks(self) -> bool:
        return self.alpha > 1

    def potential(self, y: Array) -> Array:
        xp = namespace(y)
        if self.alpha == 1:
            return Negentropy().potential(y)
        beta = self.alpha - 1
        powers = xp.expm1(beta * xp.log(xp.where(y > 0, y, 1.0)))  # y^β − 1
        return xp.sum(y * powers, axis=-1) / (self.alpha * beta)

    def potential_gradient(self, z: Array) -> Array:
        return namespace(z).log(z) if self.alpha == 1 else _deformed_log(z, self.alpha - 1)

    def potential_curvature(self, z: Array, v: Array) -> Array:
        return inner(v, v * z ** (self.alpha - 2))

    def kernel(self, y: Array, tightness: float) -> Elementwise:
        if self._limit is not None:
            return self._limit.kernel(y, tightness)
        if self.alpha == 1.5:
            return Entmax15Formulas(y, tightness)
        return EntmaxFormulas(y, namespace(y).log(y), self.alpha - 1, tightness)

    def zero_kernel(self, zero: Array, tightness: float) -> Elementwise:
        if self._limit is not None:
            return self._limit.zero_kernel(zero, tightness)
        if self.alpha == 1.5:
            return Entmax15ZeroFormulas(zero, tightness)
        return EntmaxZeroFormulas(zero, zero, self.alpha - 1, tightness)

    def slope(self, p: Array, y: Array, tightness: float) -> Array:
        if self._limit is not None:
            return self._limit.slope(p, y, tightness)
        beta = self.alpha - 1
        return _slope(p, p ** (1 - beta), y, beta, tightness)

    @property
    def order_is_tightness(self) -> bool:
        return self.alpha == 2

    @property
    def chain(self) -> Callable[[Array, Array, int], Solution]:
        tsallis = partial(TsallisChain, beta=self.alpha - 1)
        return partial(solve_chain, EntropyChain if self.alpha == 1 else tsallis, self)

    def solve_probabilities(self, theta: Array, tightness: float) -> Array:
        if self._limit is not None:
            return self._limit.solve_probabilities(theta, tightness)
        return super().solve_probabilities(theta, tightness)
