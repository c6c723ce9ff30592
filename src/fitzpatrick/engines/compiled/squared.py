"""Half the squared norm, with the formulas of ``regularizers/squared_norm.py``."""

from typing import NamedTuple

from ...regularizers import Regularizer
from ..targets import TargetForm
from ._entries import EntryKernel
from ._simplex import SimplexKernel


class Sparsemax(NamedTuple):
    """On the simplex p = (θ + c y − τ)₊/(1 + c)."""

    tightness: float
    reach: float
    cost: float
    power: float
    shifts: bool
    bends: bool

    def equal(self, k: int) -> float:
        return self.reach / k

    def shift(self, y: float) -> float:
        return self.tightness * y

    def part(self, s: float) -> tuple[float, float]:
        return (s if s > 0 else 0.0), (1.0 if s > 0 else 0.0)

    def own_part(self, s: float, y: float) -> tuple[float, float]:  # y is in s
        return (s if s > 0 else 0.0), (1.0 if s > 0 else 0.0)

    def step(self, total: float, slope: float) -> float:
        return (total - self.reach) / slope

    def others(self, s: float) -> tuple[float, float]:
        p = (s if s > 0 else 0.0) / self.reach
        return p, p * p

    def own(self, s: float, y: float) -> tuple[float, float]:
        p = (s if s > 0 else 0.0) / self.reach
        return p, self.reach / 2 * (y - p) * (y - p) - y * (s if s < 0 else 0.0)

    def slope(self, p: float, y: float) -> float:
        return (1.0 if p > 0 else 0.0) / self.reach


class ClippedSquare(NamedTuple):
    """On intervals p is the mixture (θ + c y)/(1 + c), clipped."""

    tightness: float
    lower: float
    upper: float
    last_step: float

    def finish(self, u: float, known: float, s: float, y: float) -> tuple[float, float]:
        scale = 1 + self.tightness
        u = (self.tightness * y + s) / scale
        p = self.lower if u < self.lower else u
        p = self.upper if p > self.upper else p
        # in the interior y − p is a multiple of y − s, without the rounding of their mixture
        distance = (y - s) / scale if u == p else y - p
        gap = 0.0 if (u == p) | (y == p) else (p - y) * (u - p)
        return p, scale * (distance * distance / 2 + gap)

    def slope(self, p: float, y: float) -> float:
        return (1.0 if (p > self.lower) & (p < self.upper) else 0.0) / (1 + self.tightness)


def bind_sparsemax(omega: Regularizer, tightness: float, targets: TargetForm) -> SimplexKernel:
    """Rows on the simplex."""
    c = tightness
    formula = Sparsemax(c, 1 + c, cost=(1 + c) / 2, power=1.0, shifts=c > 0, bends=False)
    return SimplexKernel(omega, tightness, targets, formula)


def bind_clipped(omega: Regularizer, tightness: float, targets: TargetForm) -> EntryKernel:
    """Rows on a product of intervals."""
    lower, upper = omega.domain.bounds  # type: ignore[attr-defined]
    formula = ClippedSquare(tightness, lower, upper, last_step=0.0)
    return EntryKernel(omega, tightness, targets, formula)
