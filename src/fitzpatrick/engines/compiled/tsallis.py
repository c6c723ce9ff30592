r"""Tsallis entropies on the simplex, with the formulas of ``regularizers/tsallis.py``.

Entries with c y = 0 have a closed form, the others are roots, which are a quadratic's for α = 1.5.
"""

import math
from typing import NamedTuple

from ...regularizers import Regularizer
from ...regularizers.tsallis import anchor_of
from ..targets import TargetForm
from ._jit import elementwise
from ._math import exp, log, rough_omega
from ._simplex import SimplexKernel

# Steps of Halley's method for one entry, of which a few are needed.
_MAX_STEPS = 20
# A step of Halley's method leaves some multiple of its third power.
_LAST_STEP = 1e-6
# Below this b the distance is e^b, which is as good as nothing.
_MAX_ROUGH = 600.0
# Below this |log(y/p)| a divergence is a series.
_NEAR = 0.25


@elementwise
def _family(tightness: float, divergence: float, quadratic: float) -> float:
    """D + c (Q − D), from D and c Q."""
    excess = quadratic - tightness * divergence
    above = divergence + (excess if excess > 0 else 0.0)
    return (1 - tightness) * divergence + quadratic if tightness <= 1 else above


@elementwise
def _divergence_series(r: float, alpha: float) -> float:
    """D/(p q) for small r = log(y/p): the sum of (αⁿ⁻¹ − 1)/β rⁿ/n!, of positive coefficients."""
    total, factor, coefficient, power = 0.0, r, 1.0, alpha
    for n in range(2, 18):
        factor *= r / n
        total += coefficient * factor
        coefficient += power
        power *= alpha
    return total


@elementwise
def _entry_slope(p: float, q: float, y: float, tightness: float, beta: float) -> float:
    """∂p/∂s, from p and q = p^β."""
    if p == 0:
        return 0.0
    return p / q / (1 + tightness * beta + tightness * (1 - beta) * y / p)


@elementwise
def _distance(kappa: float, b: float) -> float:
    """v ≥ 0 with v + log((1 − e^(−κv))/κ) = b, by Halley's method as in the core."""
    v = max(rough_omega(max(b, -_MAX_ROUGH)), b + math.log(kappa))
    for _ in range(_MAX_STEPS):
        x = kappa * v
        part = -math.expm1(-x)
        excess = v + math.log(part / kappa) - b
        share = x * (1 - part) / part
        slope = v + share
        bend = 1 + excess * (share * x / part) / (2 * slope * slope)
        step = excess / slope / max(bend, 0.25)
        v -= v * step
        if not abs(step) > _LAST_STEP:
            break
    return v


class Entmax15(NamedTuple):
    """α = 1.5, with sums of a² for a = R q."""

    tightness: float
    reach: float
    cost: float
    power: float
    shifts: bool
    bends: bool
    bend: float  # R c

    def equal(self, k: int) -> float:
        return self.reach / math.sqrt(k)

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


@elementwise
def _log_alone(z: float, q: float, anchor: float) -> float:
    """log q, for q = a + z > 0, with the digits of a small z."""
    rounded = q - anchor
    exact = z / (rounded if rounded != 0 else 1.0)
    return log(q) * exact if rounded != 0 else z


@elementwise
def _alone(s: float, c: float, beta: float, anchor: float, rate: float) -> tuple[float, float]:
    """p where y = 0, and q = p^β; both are 0 below the threshold."""
    z = rate * (s - anchor * c)
    q = anchor + z
    inside = q > 0
    p = exp(_log_alone(z if inside else 1 - anchor, q if inside else 1.0, anchor) / beta)
    return (p if inside else 0.0), (q if inside else 0.0)


@elementwise
def _log_point(s: float, y: float, c: float, beta: float, anchor: float) -> float:
    """t = log p where y > 0: the equations of the core, or −∞."""
    growth = 1 + c * beta
    z = beta / growth * (s - anchor * c)
    is_above = anchor + z > 0
    alone = _log_alone(z, anchor + z, anchor) / beta if is_above else -math.inf
    if c == 0:
        return alone
    still = math.log(y) + (math.log(c) + math.log(beta) - math.log(growth))
    if is_above:
        t = alone + _distance(beta, still - math.log(beta) - alone)
        if t - alone > 1:  # a last step in t, which has more digits
            part = -math.expm1(-beta * (t - alone))
            t -= (t - still + math.log(part)) / (1 + beta * (1 - part) / part)
        return t
    depth = -s - anchor / beta
    if not depth > 0:
        return still + 0 * depth
    level = math.log(depth) - (math.log(c) + math.log(y)) + math.log1p(-beta)
    return still - _distance(1 / (1 - beta), (1 - beta) * still + level) / (1 - beta)


class Entmax(NamedTuple):
    """Any 1 < α < 2, in terms of t = log p; s is less by a/β, as in the core."""

    tightness: float
    reach: float
    cost: float
    power: float
    shifts: bool
    bends: bool
    anchor: float  # a
    rate: float  # β/(1 + c β)

    def equal(self, k: int) -> float:
        beta = self.power
        q: float = float(k) ** -beta
        raised: float = math.expm1(-beta * math.log(k)) if self.anchor > 0 else q
        return raised / beta + self.tightness * q

    def part(self, s: float) -> tuple[float, float]:
        p, q = _alone(s, self.tightness, self.power, self.anchor, self.rate)
        return p, (p * self.rate / (q * self.power) if q > 0 else 0.0)

    def own_part(self, s: float, y: float) -> tuple[float, float]:
        t = _log_point(s, y, self.tightness, self.power, self.anchor)
        p = math.exp(t)
        return p, _entry_slope(p, math.exp(self.power * t), y, self.tightness, self.power)

    def step(self, total: float, slope: float) -> float:
        return -total * math.expm1(-self.power * math.log(total)) / (self.power * slope)

    def others(self, s: float) -> tuple[float, float]:
        p, q = _alone(s, self.tightness, self.power, self.anchor, self.rate)
        return p, p * q

    def own(self, s: float, y: float) -> tuple[float, float]:
        c, beta, alpha, a = self.tightness, self.power, 1 + self.power, self.anchor
        log_y = math.log(y)
        t = _log_point(s, y, c, beta, a)
        p = math.exp(t)
        if c == 0:
            m = max(s, -a / beta)
        else:
            m = (math.expm1(beta * t) if a > 0 else math.exp(beta * t)) / beta
        q = a + beta * m
        if abs(log_y - t) < _NEAR:
            divergence = p * q * _divergence_series(log_y - t, alpha)
        else:
            own_m = (math.expm1(beta * log_y) if a > 0 else y**beta) / beta
            divergence = (y * (own_m - m) - q * (y - p)) / alpha
        below = -a / beta - s
        if c == 0:
            return p, divergence + (y * below if below > 0 else 0.0)
        rising = c * q * (p - y) * (1 - math.exp(log_y - t))
        quadratic = (y - p) * (m - s) if below >= 0 else rising
        return p, _family(c, divergence, quadratic)

    def slope(self, p: float, y: float) -> float:
        return _entry_slope(p, p**self.power, y, self.tightness, self.power)


def bind_tsallis(omega: Regularizer, tightness: float, targets: TargetForm) -> SimplexKernel:
    """Rows for 1 < α < 2."""
    c, beta = tightness, omega.alpha - 1  # type: ignore[attr-defined]
    anchor, growth = anchor_of(beta), 1 + c * beta
    reach, cost = (1 - anchor) / beta + c, growth / (1 + beta)
    common = {"reach": reach, "cost": cost, "power": beta, "shifts": False, "bends": c > 0}
    formula = (
        Entmax15(c, bend=reach * c, **common)
        if beta == 0.5
        else Entmax(c, anchor=anchor, rate=beta / growth, **common)
    )
    return SimplexKernel(omega, tightness, targets, formula)
