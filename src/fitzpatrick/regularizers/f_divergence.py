r"""f-divergences from a reference measure: :math:`\Omega(p) = \sum_j q_j f(p_j/q_j)`.

With r = p/q and ρ = y/q, entry by entry, s = θ − τ and the tightness c, the maximizer solves

.. math:: f'(r) + c\,f''(r)\,(r - \rho) = s,

up to constants that τ absorbs: the equation of the potential f by itself, at the target ρ. So the
formulas of Ω are q times the formulas of f. The Kullback-Leibler, the χ² and the α-divergences with
1 ≤ α ≤ 2 borrow them from the negentropy, the squared norm and the Tsallis entropies. Two remain:

- 0 ≤ α < 1, with b = 1 − α: :math:`(1/b - c)\,r^{-b} + c\,\rho\,r^{-1-b} = -s`. α = 0 is the
  reverse Kullback-Leibler divergence, α = ½ is twice the squared Hellinger distance. With
  :math:`\eta = \log(r/\rho)` and :math:`E(x) = e^x - 1 - x \ge 0`,
  :math:`D = \rho^\alpha (E(\alpha\eta)/\alpha + E(-b\eta)/b)` and
  :math:`Q = r^\alpha (1 - \rho/r)^2`.
- Jensen-Shannon, with t = log(1 + 1/r):
  :math:`(1 - c)\,t + c\,E(-t) + c\,\rho/(r + r^2) = -s`, and
  :math:`D = \rho\,E(\eta) - (1 + \rho)\,E(\log\tfrac{1 + r}{1 + \rho})`.

The left-hand sides are sums of decreasing terms, whose root is unique as long as no factor is
negative: c ≤ 2 for Hellinger, c ≤ 1 for Jensen-Shannon, and c < 1 for the reverse divergence, where
the factor 1/b − c must be positive.
"""

import difflib
import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._array import Array, as_library, inner, namespace, precision_bits, row_max
from .._root import newton_steps
from ..sets import Simplex
from ..special import expm1_minus_x, sigmoid, softplus
from ._base import Elementwise, SeparableRegularizer, Solution
from .negentropy import Negentropy, entropy_terms
from .tsallis import Tsallis

# Newton steps for an entry's own root, in logarithms, by bits of precision: one more than any
# score, target and tightness needed in a search.
_ENTRY_STEPS = {53: 6, 24: 5}
_MIN_REST = 2.0**-30

# α and the factor of each kind that is an α-divergence.
_ORDERS = {"kl": (1.0, 1.0), "chi2": (2.0, 1.0), "reverse_kl": (0.0, 1.0), "hellinger": (0.5, 0.5)}
KINDS = (*_ORDERS, "jensen_shannon", "alpha")


def _finite(x: Array) -> Array:
    """x, and 0 where it is infinite or NaN: no step for masked entries."""
    xp = namespace(x)
    return xp.where(xp.isfinite(x), x, 0.0)


def _add_exponents(one: Array, other: Array) -> tuple[Array, Array]:
    """log(eᵃ + eᵇ), and the share of eᵇ."""
    xp = namespace(one)
    top = xp.maximum(one, other)
    safe = xp.where(xp.isfinite(top), top, 0.0)
    left, right = xp.exp(one - safe), xp.exp(other - safe)
    return safe + xp.log(left + right), _finite(right / (left + right))


@dataclass(frozen=True, eq=False)
class RatioFormulas(Elementwise):
    """The formulas of q f without zeros in p, at the target ρ, in terms of x = log r."""

    rho: Array
    log_rho: Array
    tightness: float
    q: Array | float

    @abstractmethod
    def level(self, r: Array) -> Array:
        """s where the maximizer is r."""

    @abstractmethod
    def _root(self, s: Array) -> Array:
        """x of the maximizer."""

    @abstractmethod
    def _growth(self, s: Array, x: Array) -> Array:
        """∂s/∂x."""

    @abstractmethod
    def _weights(self, x: Array, eta: Array) -> tuple[Array, Array, Array]:
        """D at ρ > 0 where r = ρ e^η, D at ρ = 0, and r² f''(r)."""

    def point(self, s: Array) -> tuple[Array, Array]:
        x = self._root(s)
        p = self.q * namespace(s).exp(x)
        return p, p / self._growth(s, x)  # where r over its growth may overflow

    def terms(self, s: Array) -> Array:
        xp, c = namespace(s), self.tightness
        x = self._root(s)
        has_target = self.rho > 0
        is_masked = has_target & (x == -xp.inf)
        eta = xp.where(has_target & ~is_masked, x - self.log_rho, 0.0)
        near, at_zero, curvature = self._weights(x, eta)
        divergence = xp.where(has_target, xp.where(is_masked, xp.inf, near), at_zero)
        if c == 0:
            return self.q * divergence
        fall = xp.where(has_target, xp.expm1(-eta), 1.0)
        quadratic = xp.where(is_masked, xp.inf, curvature * fall * fall)
        # D(ρ, ·) need not be convex here, so that Q may be less than D
        both = (1 - c) * divergence + c * quadratic
        return self.q * xp.where(quadratic == xp.inf, quadratic, both)


@dataclass(frozen=True, eq=False)
class FlatFormulas(RatioFormulas):
    """α-divergences with 0 ≤ α < 1, times a factor: f' ends at a finite number."""

    alpha: float
    factor: float

    def level(self, r: Array) -> Array:
        height = self._rest
        if self.tightness > 0:
            height = height + self.tightness * self.rho / r
        return -self.factor * height * r ** (self.alpha - 1)

    @property
    def _rest(self) -> float:
        """1/b − c; at its zero entries without a target have a root in the limit only."""
        return max(1 / (1 - self.alpha) - self.tightness, _MIN_REST)

    def _root(self, s: Array) -> Array:
        """From the sum of two exponentials that is −s."""
        xp, b, c = namespace(s), 1 - self.alpha, self.tightness
        log_m = xp.log(-s / self.factor)
        log_rest: Array | float = math.log(self._rest)
        if self._rest == _MIN_REST:  # entries with a target need none of it
            absent = xp.full_like(self.log_rho, -xp.inf)
            log_rest = xp.where(self.rho > 0, absent, xp.full_like(absent, log_rest))
        x = (log_rest - log_m) / b
        if c == 0:
            return x
        log_pull = math.log(c) + self.log_rho
        # either of the two alone is a lower bound
        x = xp.maximum(x, (log_pull - log_m) / (1 + b))
        for _ in range(_ENTRY_STEPS[precision_bits(s)]):
            total, share = _add_exponents(log_rest - b * x, log_pull - (1 + b) * x)
            x = x + _finite((total - log_m) / (b + share))
        return x

    def _growth(self, s: Array, x: Array) -> Array:
        xp, b = namespace(s), 1 - self.alpha
        if self.tightness == 0:
            return -s * b
        pull = self.factor * self.tightness * xp.exp(self.log_rho - (1 + b) * x)
        return -s * b + xp.where(self.rho > 0, pull, 0.0)

    def _weights(self, x: Array, eta: Array) -> tuple[Array, Array, Array]:
        xp, alpha, b = namespace(x), self.alpha, 1 - self.alpha
        height = self.factor * xp.exp(alpha * x)  # r^α
        has_target = self.rho > 0
        power = self.factor * xp.exp(alpha * xp.where(has_target, self.log_rho, 0.0))
        divergence = power * expm1_minus_x(-b * eta) / b
        if alpha == 0:
            return divergence, xp.full_like(x, xp.inf), height
        # ρ^α E(αη), where e^(αη) may overflow
        is_near = xp.abs(alpha * eta) < 0.5
        close = power * expm1_minus_x(xp.where(is_near, alpha * eta, 0.0))
        far = height - power - power * alpha * eta
        return divergence + xp.where(is_near, close, far) / alpha, height / alpha, height


@dataclass(frozen=True, eq=False)
class JensenShannonFormulas(RatioFormulas):
    """The Jensen-Shannon divergence."""

    more_steps: int  # where ratios to the reference are small

    def _height(self, z: Array) -> tuple[Array, Array]:
        """−s and its derivative in z = −x."""
        xp, c = namespace(z), self.tightness
        t, sigma = softplus(z), sigmoid(z)
        if c == 0:
            return t, sigma
        pull = xp.where(self.rho > 0, c * sigma * xp.exp(self.log_rho + z), 0.0)
        height = (1 - c) * t + c * expm1_minus_x(-t) + pull
        return height, (1 - c) * sigma + c * sigma * sigma + pull * (2 - sigma)

    def level(self, r: Array) -> Array:
        return -self._height(-namespace(r).log(r))[0]

    def _root(self, s: Array) -> Array:
        """By Newton's method for the logarithm of −s, from the least of three upper bounds of z."""
        xp, c, m = namespace(s), self.tightness, -s
        part = m / (1 - c) if c < 1 else xp.full_like(m, xp.inf)
        z = part + xp.log(-xp.expm1(-part))
        if c == 0:
            return -z
        part = m / c  # E(−t) >= t²/(2 + t)
        t = (part + xp.sqrt(part) * xp.sqrt(part + 8)) / 2
        z = xp.minimum(z, t + xp.log(-xp.expm1(-t)))
        log_part = xp.log(part) - self.log_rho
        root = xp.sqrt(1 + 4 * xp.exp(-log_part))
        z = xp.minimum(z, xp.where(self.rho > 0, log_part + xp.log((1 + root) / 2), z))
        for _ in range(_ENTRY_STEPS[precision_bits(s)] + self.more_steps):
            height, slope = self._height(z)
            z = z - _finite(xp.log(height / m) * height / slope)
        return -z

    def _growth(self, s: Array, x: Array) -> Array:
        return self._height(-x)[1]

    def _weights(self, x: Array, eta: Array) -> tuple[Array, Array, Array]:
        xp, rho, r = namespace(x), self.rho, namespace(x).exp(x)
        is_near = xp.abs(eta) < 0.5
        rise = rho * xp.expm1(xp.where(is_near, eta, 0.0))
        lift = xp.log1p(xp.where(is_near, rise, r - rho) / (1 + rho))
        divergence = entropy_terms(rho, eta, r, 0.0) - entropy_terms(1 + rho, lift, 1 + r, 0.0)
        return divergence, xp.log1p(r), r / (1 + r)


@dataclass(frozen=True, eq=False)
class ScaledFormulas(Elementwise):
    """p = q r: the formulas of f at ρ = y/q, times what of q they do not have."""

    base: Elementwise
    q: Array | float
    level: Array  # s where an entry is one
    spread: float  # log₂ of the largest q over the least
    bend: float = 1.0  # how near an entry of one may be to the end of f', but 1 at most

    @property
    def power(self) -> float:
        return self.base.power

    def start(self, theta: Array) -> Array:
        # there the largest entry alone is one
        return row_max(theta - self.level)

    def steps(self, theta: Array) -> int:
        return newton_steps(theta) + math.ceil(self.spread)

    def point(self, s: Array) -> tuple[Array, Array]:
        r, d = self.base.point(s)
        return self.q * r, self.q * d

    def terms(self, s: Array) -> Array:
        return self.q * self.base.terms(s)


@dataclass(frozen=True, eq=False)
class FDivergence(SeparableRegularizer):
    r"""The f-divergence of a point of the simplex from a reference measure q.

    .. math:: \Omega(p) = \sum_j q_j\, f(p_j / q_j), \qquad f(1) = f'(1) = 0.

    ================== ============================================ ============ ==============
    kind               f(u)                                         zeros in p   tightness
    ================== ============================================ ============ ==============
    ``kl``             u log u − u + 1                              no           any
    ``chi2``           (u − 1)²/2                                   yes          any
    ``alpha``          (u^α − 1 − α(u − 1))/(α(α − 1)), 0 < α ≤ 2   for α > 1    α < 1: ≤ 1/(1−α)
    ``hellinger``      (√u − 1)²                                    no           ≤ 2
    ``jensen_shannon`` u log u − (u + 1) log((u + 1)/2)             no           ≤ 1
    ``reverse_kl``     u − 1 − log u                                no           < 1
    ================== ============================================ ============ ==============

    With every q_j = 1, the default, the losses of ``kl``, ``chi2`` and ``alpha`` with α = 1.5 are
    the logistic, the sparsemax and the entmax15 loss. With class frequencies as q the predictions
    at equal scores are these frequencies (Roulet et al., ICML 2025). Beyond its tightness a kind
    has losses with more than one maximizer, and raises. ``reverse_kl`` is infinite at targets with
    a zero, and refuses class labels; smoothed targets are what it is made for.

    Args:
        kind: which f.
        reference: q, positive: one number for every class, an array (k,) by class, or (n, k) by
            row, for batches of exactly n rows. A class that should have no mass is masked by a
            score of −∞, not by a zero here.
        alpha: the order of ``kind="alpha"``.

    Example:
        >>> import numpy as np
        >>> import fitzpatrick as fp
        >>> omega = FDivergence("hellinger", reference=[0.5, 0.3, 0.2])
        >>> omega.link(np.zeros(3))
        array([0.5, 0.3, 0.2])
        >>> fp.FitzpatrickLoss(omega).value(np.asarray([1.0, 0.0, 0.0]), np.zeros(3)).round(4)
        np.float64(0.1596)
    """

    kind: str
    reference: Any = 1.0
    alpha: float | None = None
    _range: tuple[float, float] = field(default=(1.0, 1.0), init=False, repr=False)
    domain = Simplex()
    is_coupled = True

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            near = difflib.get_close_matches(str(self.kind), KINDS, n=1)
            hint = f"did you mean {near[0]!r}? The" if near else "the"
            raise ValueError(f"unknown kind {self.kind!r}; {hint} kinds are {', '.join(KINDS)}")
        if (self.alpha is not None) != (self.kind == "alpha"):
            raise ValueError(
                "alpha is the order of kind='alpha', which needs it; no other takes it"
            )
        if self.alpha is not None and not 0 < self.alpha <= 2:
            raise ValueError(f"FDivergence needs 0 < alpha <= 2, got {self.alpha}")
        q = np.array(self.reference, dtype=float)
        if q.ndim > 2 or q.size == 0:
            raise ValueError(
                f"reference must be a number or have shape (k,) or (n, k), got {q.shape}"
            )
        if not (np.isfinite(q) & (q > 0)).all():
            raise ValueError(
                "reference must be positive and finite; to leave a class out, give it the score −∞"
            )
        if q.min() < 1e-30 or q.max() > 1e30 or q.max() / q.min() > 1e12:
            raise ValueError(
                "reference must be between 1e-30 and 1e30, with entries that differ by 1e12 at most"
            )
        q.flags.writeable = False
        object.__setattr__(self, "reference", float(q) if q.ndim == 0 else q)
        object.__setattr__(self, "_range", (float(q.min()), float(q.max())))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FDivergence):
            return NotImplemented
        same = (self.kind, self.alpha) == (other.kind, other.alpha)
        return same and np.array_equal(self.reference, other.reference)

    def __hash__(self) -> int:
        return hash((self.kind, self.alpha, np.asarray(self.reference).tobytes()))

    @property
    def _order(self) -> tuple[float, float] | None:
        """α and the factor of an α-divergence; None for Jensen-Shannon."""
        return (self.alpha, 1.0) if self.alpha is not None else _ORDERS.get(self.kind)

    @property
    def max_tightness(self) -> float:
        if self._order is None:
            return 1.0
        alpha = self._order[0]
        if alpha >= 1:
            return math.inf
        return math.nextafter(1.0, 0.0) if alpha == 0 else 1 / (1 - alpha)

    @property
    def is_row_wise(self) -> bool:
        return np.ndim(self.reference) < 2

    @property
    def has_kinks(self) -> bool:
        return self._order is not None and self._order[0] > 1

    def _q(self, like: Array) -> Array | float:
        """The reference for an array of rows."""
        if isinstance(self.reference, float):
            return self.reference
        rows, classes = (like.shape[0] if like.ndim == 2 else 1), like.shape[-1]
        by_row = (rows, classes) if like.ndim <= 2 else None
        if self.reference.shape not in ((classes,), by_row):
            raise ValueError(
                f"reference has shape {self.reference.shape}, but the scores have shape "
                f"{tuple(like.shape)}: it needs one number for each class, or for each entry"
            )
        q = namespace(like).astype(as_library(self.reference, like), like.dtype)
        return q.reshape(like.shape) if q.ndim > like.ndim else q

    def potential(self, y: Array) -> Array:
        # D(y, q) of the measure itself, whose scores f'(1) are zero
        return self.potential_divergence(y, self._q(y) * namespace(y).ones_like(y))

    def potential_gradient(self, z: Array) -> Array:
        r = z / self._q(z)
        return self._base(0 * r, 0.0)[0].level(r)

    def potential_curvature(self, z: Array, v: Array) -> Array:
        q = self._q(z)
        r = z / q
        if self._order is None:
            second = 1 / (r * (1 + r))
        else:
            alpha, factor = self._order
            second = factor * r ** (alpha - 2)
        return inner(v, second / q * v)

    def _base(self, rho: Array, tightness: float, q: Array | float = 1.0) -> tuple[Any, Any]:
        """The formulas of f at ρ, which have the method ``level``, and what to multiply them by."""
        if self._order is None:
            more = 2 if self._range[1] > 1e3 else 0
            return JensenShannonFormulas(rho, namespace(rho).log(rho), tightness, q, more), 1.0
        alpha, factor = self._order
        if alpha < 1:
            return FlatFormulas(rho, namespace(rho).log(rho), tightness, q, alpha, factor), 1.0
        return Tsallis(alpha).kernel(rho, tightness), q

    def kernel(self, y: Array, tightness: float) -> Elementwise:
        q, (least, most) = self._q(y), self._range
        base, rest = self._base(y / q, tightness, q)
        level = base.level(namespace(y).ones_like(y) / q)
        return ScaledFormulas(base, rest, level, math.log2(most / least), self._bend(tightness))

    def _bend(self, tightness: float) -> float:
        """The length over which an entry bends: how near to one it may be to the end of f'."""
        least = self._range[0]
        if self._order is None:
            t = math.log1p(least)
            return min(1.0, (1 - tightness) * t + tightness * (math.expm1(-t) + t))
        alpha, factor = self._order
        if alpha >= 1:
            return 1.0
        rest = max(1 / (1 - alpha) - tightness, _MIN_REST)
        return min(1.0, factor * rest * math.pow(least, 1 - alpha))

    def slope(self, p: Array, y: Array, tightness: float) -> Array:
        xp, c = namespace(p), tightness
        q = self._q(p)
        is_positive = p > 0
        r = xp.where(is_positive, p, 1.0) / q
        w = xp.where(is_positive, y / q / r, 0.0)  # ρ/r
        if self._order is None:
            second, third = 1 / (1 + r), (1 + 2 * r) / (1 + r) ** 2  # f'' r and −f''' r²
        else:
            alpha, factor = self._order
            second = factor * r ** (alpha - 1)
            third = (2 - alpha) * second
        d = q * r / ((1 + c) * second - c * third * (1 - w))
        return xp.where(is_positive, d, 0.0)

    @property
    def has_equal_classes(self) -> bool:
        return isinstance(self.reference, float)

    @property
    def keeps_order(self) -> bool:
        return self.has_equal_classes

    def solve_probabilities(self, theta: Array, tightness: float) -> Array:
        if self.kind == "kl" and tightness > 0 and not self.has_equal_classes:
            # the reference shifts the scores
            shift = namespace(theta).log(self._q(theta))
            return Negentropy().solve_probabilities(theta + shift, tightness)
        if self.is_row_wise or tightness == 0:
            return super().solve_probabilities(theta, tightness)
        self._q(theta)  # checks its shape
        each = [FDivergence(self.kind, q, self.alpha) for q in self.reference]
        rows = namespace(theta).reshape(theta, (len(each), -1))
        found = [
            omega.solve_probabilities(rows[i : i + 1], tightness) for i, omega in enumerate(each)
        ]
        return namespace(theta).reshape(namespace(theta).concat(found, axis=0), theta.shape)

    def solve_labels(self, labels: Array, theta: Array, tightness: float) -> Solution:
        if self._order is not None and self._order[0] == 0:
            raise ValueError(
                "the reverse Kullback-Leibler divergence is infinite at class labels; give targets "
                "without zeros, such as smoothed ones"
            )
        return super().solve_labels(labels, theta, tightness)
