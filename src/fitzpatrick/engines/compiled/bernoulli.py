"""The negative entropy of independent coins, with the formulas of ``regularizers/bernoulli.py``."""

import math
from typing import NamedTuple

from ...regularizers import Regularizer
from ..targets import TargetForm
from ._entries import EntryKernel
from ._jit import elementwise
from ._math import MIN_TARGET, entropy_entry, exp, log1p, rough_log

# The exponential of more than this is as good as infinite.
_HIGHEST = 700.0
# A step of Halley's method leaves some multiple of its third power.
_LAST_STEP = {"float32": 3e-4, "float64": 1e-6}


@elementwise
def _coin(u: float, y: float, c: float) -> tuple[float, float]:
    """p = σ(u), and its term of the loss."""
    size = abs(u)
    tail = exp(-size)
    larger = 1 / (1 + tail)
    smaller = tail * larger
    p, q = (larger if u > 0 else smaller), (smaller if u > 0 else larger)
    log_larger = -log1p(tail)
    log_smaller = log_larger - size
    heads = entropy_entry(y, log_larger if u > 0 else log_smaller, p, c)
    tails = entropy_entry(1 - y, log_smaller if u > 0 else log_larger, q, c)
    return p, heads + tails


class Sigmoids(NamedTuple):
    """p = σ(s), for c = 0."""

    last_step: float

    def finish(self, u: float, known: float, s: float, y: float) -> tuple[float, float]:
        return _coin(s, y, 0.0)

    def slope(self, p: float, y: float) -> float:
        return p * (1 - p)


class Coins(NamedTuple):
    """p = σ(u), where u + a e^u − b e^−u + a − b = s with a = c (1 − y) and b = c y."""

    tightness: float
    log_tightness: float
    last_step: float

    def start(self, s: float, y: float) -> tuple[float, float]:
        c = self.tightness
        # With δ = ½ log(a/b), the left-hand side is v + 2 √(ab) sinh v at v = u + δ, up to a
        # constant: an odd function, which is reflected to where it is positive. There sinh v >= v,
        # leaving out v, and leaving out u, unless it is negative, give upper bounds.
        log_heads, log_tails = rough_log(max(y, MIN_TARGET)), rough_log(max(1 - y, MIN_TARGET))
        level = s - c * (1 - 2 * y)
        height = level + (log_tails - log_heads) / 2
        reflect = height < 0
        shift = (height - level) * (-1.0 if reflect else 1.0)
        height = abs(height)
        log_a = self.log_tightness + (log_heads if reflect else log_tails)
        square = 4 * c * c * y * (1 - y)
        bound = (height + math.sqrt(height * height + square)) / 2
        linear = height / (1 + math.sqrt(square)) - shift
        mixed = (-level if reflect else level) + c * (1 - y if reflect else y)
        u = min(
            min(linear, rough_log(max(bound, MIN_TARGET)) - log_a),
            max(rough_log(max(mixed, MIN_TARGET)) - log_a, 0.0),
        )
        return (-u if reflect else u), level

    def refine(self, u: float, level: float, y: float) -> tuple[float, float]:
        near = min(max(u, -_HIGHEST), _HIGHEST)
        odds = exp(near)
        rise = self.tightness * (1 - y) * odds
        fall = self.tightness * y / odds
        excess = u + rise - fall - level
        slope = 1 + rise + fall
        square = slope * slope
        step = excess * slope / max(square - excess * (rise - fall) / 2, square / 4)
        return u - step, step / (1 + abs(u))

    def finish(self, u: float, level: float, s: float, y: float) -> tuple[float, float]:
        return _coin(u, y, self.tightness)

    def slope(self, p: float, y: float) -> float:
        c, q = self.tightness, 1 - p
        inside = (p > 0) & (q > 0)
        odds = p / (q if inside else 1.0)
        odds = odds if inside else 1.0
        return (p * q if inside else 0.0) / (1 + c * (1 - y) * odds + c * y / odds)


def bind_bernoulli(omega: Regularizer, tightness: float, targets: TargetForm) -> EntryKernel:
    """Rows of coins."""
    c = tightness
    formula = Coins(c, math.log(c), _LAST_STEP[targets.dtype.name]) if c > 0 else Sigmoids(0.0)
    return EntryKernel(omega, tightness, targets, formula)
