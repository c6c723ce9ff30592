"""The negative entropy of independent coins, with the formulas of ``regularizers/bernoulli.py``."""

import math
from typing import TYPE_CHECKING, NamedTuple

from .._targets import TargetForm
from ._entries import EntryKernel
from ._math import MIN_TARGET, entropy_entry, exp, log, log1p, wright_omega

if TYPE_CHECKING:
    from ...losses import Loss

# The exponential of more than this is as good as infinite.
_HIGHEST = 700.0


class Coins(NamedTuple):
    """p = σ(u), where u + a e^u − b e^−u + a − b = s with a = c (1 − y) and b = c y."""

    tightness: float
    log_tightness: float
    needs_refinement: bool

    def start(self, s: float, y: float) -> float:
        c = self.tightness
        if c == 0:
            return s
        # reflected where the left-hand side is negative, less the constant that makes it odd
        log_heads, log_tails = log(max(y, MIN_TARGET)), log(max(1 - y, MIN_TARGET))
        shift = (log_tails - log_heads) / 2
        reflect = (y == 1) | ((y > 0) & (s - c * (1 - 2 * y) + shift < 0))
        a = c * (y if reflect else 1 - y)
        b = c - a
        level = (-s if reflect else s) - (a - b)
        shift = -shift if reflect else shift
        log_a = self.log_tightness + (log_heads if reflect else log_tails)
        # b e^−u <= m gives one upper bound, u = log(ω/a), and sinh v >= v the other
        m = math.sqrt(a * b)
        z = level + m + log_a
        omega = wright_omega(z)
        u = level + m - omega if z < 0 else log(omega if z > 0 else 1.0) - log_a
        linear = (level + shift) / (1 + 2 * m) - shift
        u = linear if (b > 0) & (linear < u) else u
        return -u if reflect else u

    def refine(self, u: float, s: float, y: float) -> tuple[float, float]:
        a, b = self.tightness * (1 - y), self.tightness * y
        near = min(max(u, -_HIGHEST), _HIGHEST)
        rise = a * exp(near)
        fall = b * exp(-near)
        step = (u + rise - fall + (a - b) - s) / (1 + rise + fall)
        return u - step, step / (1 + abs(u))

    def finish(self, u: float, s: float, y: float) -> tuple[float, float]:
        size = abs(u)
        tail = exp(-size)
        larger = 1 / (1 + tail)
        smaller = tail * larger
        p, q = (larger if u > 0 else smaller), (smaller if u > 0 else larger)
        # of the larger of the two, and of the smaller
        log_larger = -log1p(tail)
        log_smaller = log_larger - size
        heads = entropy_entry(y, log_larger if u > 0 else log_smaller, p, self.tightness)
        tails = entropy_entry(1 - y, log_smaller if u > 0 else log_larger, q, self.tightness)
        return p, heads + tails

    def slope(self, p: float, y: float) -> float:
        c, q = self.tightness, 1 - p
        inside = (p > 0) & (q > 0)
        odds = p / (q if inside else 1.0)
        odds = odds if inside else 1.0
        return (p * q if inside else 0.0) / (1 + c * (1 - y) * odds + c * y / odds)


def bind_bernoulli(loss: "Loss", targets: TargetForm) -> EntryKernel:
    """Rows of coins."""
    c = loss.tightness
    formula = Coins(c, math.log(c) if c > 0 else 0.0, needs_refinement=c > 0)
    return EntryKernel(loss, targets, formula)
