"""A separable regularizer that the package does not know, as a user would write it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import array_api_compat

from fitzpatrick.regularizers import Elementwise, SeparableRegularizer
from fitzpatrick.sets import ConvexSet, Simplex


@dataclass(frozen=True, eq=False)
class DistanceKernel(Elementwise):
    """p = ((s + w a + c w y)/(w (1 + c)))₊, without the positive part on all of ℝ."""

    y: Any
    omega: ScaledDistance
    tightness: float

    @property
    def power(self) -> float:
        return 1.0

    def _unclipped(self, s: Any) -> Any:
        weight, c = self.omega.weight, self.tightness
        return (s / weight + self.omega.anchor + c * self.y) / (1 + c)

    def start(self, theta: Any) -> Any:
        xp = array_api_compat.array_namespace(theta)
        top = xp.max(self._unclipped(theta), axis=-1, keepdims=True)
        return (top - 1) * self.omega.weight * (1 + self.tightness)

    def steps(self, theta: Any) -> int:
        return int(theta.shape[-1]) + 1  # Σ p is piecewise linear in τ

    def point(self, s: Any) -> tuple[Any, Any]:
        p = self.omega.clip(self._unclipped(s))
        return p, self.omega.slope(p, self.y, self.tightness)

    def terms(self, s: Any) -> Any:
        m = self._unclipped(s)
        p = self.omega.clip(m)
        scale = self.omega.weight * (1 + self.tightness)
        return scale * ((self.y - p) ** 2 / 2 + (p - self.y) * (m - p))


@dataclass(frozen=True)
class ScaledDistance(SeparableRegularizer):
    """Ψ(y) = w/2 ‖y − a‖², on the simplex or on all of ℝᵏ."""

    weight: float = 1.0
    anchor: float = 0.0
    domain: ConvexSet = Simplex()

    def clip(self, x: Any) -> Any:
        xp = array_api_compat.array_namespace(x)
        return x if self.is_entrywise else xp.where(x > 0, x, xp.zeros_like(x))

    def potential(self, y: Any) -> Any:
        xp = array_api_compat.array_namespace(y)
        return self.weight / 2 * xp.sum((y - self.anchor) ** 2, axis=-1)

    def potential_gradient(self, z: Any) -> Any:
        return self.weight * (z - self.anchor)

    def potential_curvature(self, z: Any, v: Any) -> Any:
        xp = array_api_compat.array_namespace(v)
        return self.weight * xp.sum(v * v, axis=-1)

    def kernel(self, y: Any, tightness: float) -> Elementwise:
        return DistanceKernel(y, self, tightness)

    def slope(self, p: Any, y: Any, tightness: float) -> Any:
        xp = array_api_compat.array_namespace(p)
        slope = xp.ones_like(p) / (self.weight * (1 + tightness))
        return slope if self.is_entrywise else xp.where(p > 0, slope, xp.zeros_like(p))
