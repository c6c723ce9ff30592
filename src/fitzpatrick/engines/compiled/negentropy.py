"""The negative Shannon entropy: on the orthant entry by entry, on the simplex by rows.

The formulas are those of ``regularizers/negentropy.py``.
"""

import math
from typing import NamedTuple

import numpy as np

from ...regularizers import Regularizer
from ..targets import Labels, TargetForm
from ._entries import EntryKernel
from ._jit import elementwise
from ._kernel import CompiledKernel
from ._labels import LabelKernel
from ._math import MIN_TARGET, entropy_entry, entropy_term, exp, log, near_omega, omega_step
from ._proportions import ProportionKernel

_HIGHEST = 709.0  # the exponential of more overflows
# Below this z, ω is too small to matter beside 1, and p = e^(s − c) whatever y is.
_LOWEST = -40.0
# One step of fourth order leaves 1/72 of the fourth power of the start's error.
_LAST_STEP = math.inf


@elementwise
def _overflowing_exp(x: float) -> float:
    p = exp(min(x, _HIGHEST))
    return p if x <= _HIGHEST else np.inf


class Exponentials(NamedTuple):
    """On the orthant for c = 0: p = e^s."""

    last_step: float

    def finish(self, u: float, known: float, s: float, y: float) -> tuple[float, float]:
        p = _overflowing_exp(s)
        return p, entropy_entry(y, s, p, 0.0)

    def slope(self, p: float, y: float) -> float:
        return p


class Counts(NamedTuple):
    """For c > 0: p = c y/ω = e^(s − c + ω), where ω + log ω = log(c y) + c − s.

    The numbers are u = ω and s − log y.
    """

    tightness: float
    log_tightness: float
    last_step: float

    def start(self, s: float, y: float) -> tuple[float, float]:
        distance = s - log(max(y, MIN_TARGET))
        return near_omega(max(self.log_tightness + self.tightness - distance, _LOWEST)), distance

    def refine(self, u: float, distance: float, y: float) -> tuple[float, float]:
        z = max(self.log_tightness + self.tightness - distance, _LOWEST)
        residual = z - u - log(u)
        return omega_step(u, residual), residual

    def finish(self, u: float, distance: float, s: float, y: float) -> tuple[float, float]:
        c = self.tightness
        # two forms of p and of log(p/y): the first has the digits for small ω, the second for large
        p = _overflowing_exp(s - c + u) if u < 0.5 else c * y / max(u, 0.5)
        ratio = u * (1 / c)
        rho = distance - c + u if u < 0.5 else -log(ratio)
        return p, entropy_term(y, rho, p, ratio, c)

    def slope(self, p: float, y: float) -> float:
        return p / (1 + self.tightness * y / max(p, MIN_TARGET))


def bind_poisson(omega: Regularizer, tightness: float, targets: TargetForm) -> EntryKernel:
    """Rows of counts."""
    c = tightness
    formula = Counts(c, math.log(c), _LAST_STEP) if c > 0 else Exponentials(0.0)
    return EntryKernel(omega, tightness, targets, formula)


def bind_logistic(omega: Regularizer, tightness: float, targets: TargetForm) -> CompiledKernel:
    """Rows on the simplex; the link is the maximizer of proportions that are nowhere positive."""
    kernel = LabelKernel if isinstance(targets, Labels) else ProportionKernel
    return kernel(omega, tightness, targets)
