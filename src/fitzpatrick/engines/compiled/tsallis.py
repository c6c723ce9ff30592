r"""Tsallis entropies on the simplex, with the formulas of ``regularizers/tsallis.py``.

With q = p^β, entries with c y = 0 have q = (s)₊/R, the others are the root of
:math:`R q - c\,y\,q^{1 - 1/\beta} = s`, which is a quadratic's for α = 1.5.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

from .._targets import TargetForm
from ._jit import elementwise
from ._math import exp, log
from ._simplex import SimplexKernel

if TYPE_CHECKING:
    from ...losses import Loss

# Steps of Newton's method for one entry, of which a few are needed.
_MAX_STEPS = 100
# Below this |log(y/p)| a divergence is a series.
_NEAR = 0.25


@elementwise
def _family(tightness: float, divergence: float, quadratic: float) -> float:
    """D + c (Q − D), from D and c Q."""
    excess = quadratic - tightness * divergence
    above = divergence + (excess if excess > 0 else 0.0)
    return (1 - tightness) * divergence + quadratic if tightness <= 1 else above


@elementwise
def _difference(x: float, alpha: float) -> float:
    """E(αx) − α E(x) for small x, E(x) = exp(x) − 1 − x: the sum of (αⁿ − α) xⁿ/n!."""
    total, factor, power = 0.0, x, alpha
    for n in range(2, 18):
        factor *= x / n
        power *= alpha
        total += (power - alpha) * factor
    return total


@elementwise
def _entry_slope(p: float, q: float, y: float, tightness: float, beta: float) -> float:
    """∂p/∂s, from p and q = p^β."""
    if p == 0:
        return 0.0
    return p / q / (1 + tightness * beta + tightness * (1 - beta) * y / p)


@elementwise
def _entry_root(s: float, y: float, tightness: float, reach: float, beta: float) -> float:
    """q = p^β where y > 0: Newton's method, which increases to the root from a lower bound."""
    if tightness == 0:
        return (s if s > 0 else 0.0) / reach
    e = (1 - beta) / beta
    log_cy = math.log(y) + math.log(tightness)
    if s < 0:
        q = math.exp(beta * _deep_root(s, log_cy, reach, beta))
    else:
        q = max(s / reach, math.exp(beta * (log_cy - math.log(reach))))
    for _ in range(_MAX_STEPS):
        if not q > 0:
            break
        pull = math.exp(log_cy - e * math.log(q))
        step = (s + pull - reach * q) / (reach + e * pull / q)
        q += step
        if not abs(step) > 1e-9 * q:
            break
    return q


@elementwise
def _deep_root(s: float, log_cy: float, reach: float, beta: float) -> float:
    """log p within a few percent for s < 0, from both sides by turns, as in the core."""
    rate = 1 - beta
    log_a, log_depth = math.log(reach) - log_cy, math.log(-s) - log_cy
    t = -log_depth / rate if log_depth > rate * log_a else -log_a
    for _ in range(2):
        first, second = math.exp(log_a + t), math.exp(log_depth + rate * t)
        step = (first + second - 1) / (first + rate * second)
        t += math.log1p(-step) if step < 1 else 0.0
        first, second = math.exp(log_a + t), math.exp(log_depth + rate * t)
        t -= math.log(first + second) * (first + second) / (first + rate * second)
    return t


class Entmax15(NamedTuple):
    """α = 1.5, with sums of a² for a = R q."""

    tightness: float
    reach: float
    power: float
    shifts: bool
    bends: bool
    bend: float  # R c

    def part(self, s: float) -> tuple[float, float]:
        a = s if s > 0 else 0.0
        return a * a, a

    def own_part(self, s: float, y: float) -> tuple[float, float]:
        bend = self.bend * y
        root = math.sqrt(s * s + 4 * bend)
        larger = (abs(s) + root) / 2
        inverse = 1 / (larger * root)
        a = larger if s > 0 else bend * root * inverse  # without cancellation
        return a * a, a * a * larger * inverse

    def shift(self, y: float) -> float:
        return 0.0

    def step(self, total: float, slope: float) -> float:
        norm = math.sqrt(total)
        excess = (total - self.reach * self.reach) / (norm + self.reach)  # with its digits
        return excess * norm / slope

    def others(self, s: float) -> tuple[float, float]:
        q = (s if s > 0 else 0.0) * (1 / self.reach)
        return q * q, q * q * q

    def own(self, s: float, y: float) -> tuple[float, float]:
        c, reach = self.tightness, self.reach
        if c == 0:
            q = (s if s > 0 else 0.0) / 2
            gap = math.sqrt(y) - q
            divergence = gap * gap * (2 * math.sqrt(y) + q) * (2 / 3)
            return q * q, divergence - y * (s if s < 0 else 0.0)
        larger = (abs(s) + math.sqrt(s * s + 4 * self.bend * y)) / (2 * reach)
        q = larger if s > 0 else c * y / (reach * larger)
        p = q * q
        # c (p − y)²/q, for s < 0 by the equation of q
        quadratic = (y - p) * (2 * q - s) if s < 0 else c * (p - y) * (p - y) / q
        if c == 1:
            return p, quadratic
        gap = math.sqrt(y) - q
        divergence = gap * gap * (2 * math.sqrt(y) + q) * (2 / 3)
        return p, _family(c, divergence, quadratic)

    def slope(self, p: float, y: float) -> float:
        scale = self.reach * p + self.tightness * y
        return 2 * math.sqrt(p) * p / (scale if p > 0 else 1.0)


class Entmax(NamedTuple):
    """Any 1 < α < 2."""

    tightness: float
    reach: float
    power: float
    shifts: bool
    bends: bool

    def part(self, s: float) -> tuple[float, float]:
        q = s / self.reach
        p = exp(log(q if s > 0 else 1.0) / self.power)
        return (p if s > 0 else 0.0), (p / (q * self.reach * self.power) if s > 0 else 0.0)

    def own_part(self, s: float, y: float) -> tuple[float, float]:
        q = _entry_root(s, y, self.tightness, self.reach, self.power)
        p = q ** (1 / self.power)
        return p, _entry_slope(p, q, y, self.tightness, self.power)

    def shift(self, y: float) -> float:
        return 0.0

    def step(self, total: float, slope: float) -> float:
        return -total * math.expm1(-self.power * math.log(total)) / (self.power * slope)

    def others(self, s: float) -> tuple[float, float]:
        q = s / self.reach
        p = exp(log(q if s > 0 else 1.0) / self.power)
        return (p if s > 0 else 0.0), (p * q if s > 0 else 0.0)

    def own(self, s: float, y: float) -> tuple[float, float]:
        c, beta, alpha = self.tightness, self.power, 1 + self.power
        below = -s if s < 0 else 0.0
        q = _entry_root(s, y, c, self.reach, beta)
        p = q ** (1 / beta)
        x = math.log(y / p) if p > 0 else math.inf
        if abs(x) < _NEAR:
            divergence = p * q * _difference(x, alpha)
        else:
            divergence = y**alpha + beta * p * q - alpha * q * y
        divergence /= alpha * beta
        if c == 0:
            return p, divergence + y * below
        quadratic = (y - p) * (q / beta + below) if s < 0 else c * q * (p - y) * (1 - y / p)
        return p, _family(c, divergence, quadratic)

    def slope(self, p: float, y: float) -> float:
        return _entry_slope(p, p**self.power, y, self.tightness, self.power)


def bind_tsallis(loss: "Loss", targets: TargetForm) -> SimplexKernel:
    """Rows for 1 < α < 2."""
    c, beta = loss.tightness, loss.regularizer.alpha - 1  # type: ignore[attr-defined]
    reach, bends = 1 / beta + c, c > 0
    if beta == 0.5:
        formula = Entmax15(c, reach, beta, shifts=False, bends=bends, bend=reach * c)
        return SimplexKernel(loss, targets, formula)
    return SimplexKernel(loss, targets, Entmax(c, reach, beta, shifts=False, bends=bends))
