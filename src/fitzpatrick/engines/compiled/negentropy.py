"""The negative Shannon entropy: on the orthant entry by entry, on the simplex by rows.

The formulas are those of ``regularizers/negentropy.py`` and ``negentropy_labels.py``.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._targets import Labels, TargetForm
from ._entries import EntryKernel
from ._jit import elementwise
from ._kernel import CompiledKernel
from ._labels import LabelKernel
from ._math import MIN_TARGET, entropy_entry, entropy_term, exp, log, near_omega, omega_step
from ._proportions import ProportionKernel

if TYPE_CHECKING:
    from ...losses import Loss

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
    """For c > 0: p = c y/ω = e^(s − c + ω), where ω + log ω = z = log(c y) + c − s; u is ω."""

    tightness: float
    log_tightness: float
    last_step: float

    def start(self, s: float, y: float) -> tuple[float, float]:
        z = self.log_tightness + self.tightness + log(max(y, MIN_TARGET)) - s
        z = max(z, _LOWEST)
        return near_omega(z), z

    def refine(self, u: float, z: float, y: float) -> tuple[float, float]:
        residual = z - u - log(u)
        return omega_step(u, residual), residual

    def finish(self, u: float, z: float, s: float, y: float) -> tuple[float, float]:
        c = self.tightness
        # two forms of one number: the first keeps its digits for small ω, the second for large
        p = _overflowing_exp(s - c + u) if u < 0.5 else c * y / max(u, 0.5)
        ratio = u * (1 / c)
        return p, entropy_term(y, -log(ratio), p, ratio, c)

    def slope(self, p: float, y: float) -> float:
        return p / (1 + self.tightness * y / max(p, MIN_TARGET))


def bind_poisson(loss: "Loss", targets: TargetForm) -> EntryKernel:
    """Rows of counts."""
    c = loss.tightness
    formula = Counts(c, math.log(c), _LAST_STEP) if c > 0 else Exponentials(0.0)
    return EntryKernel(loss, targets, formula)


def bind_logistic(loss: "Loss", targets: TargetForm) -> CompiledKernel:
    """Rows on the simplex."""
    return (LabelKernel if isinstance(targets, Labels) else ProportionKernel)(loss, targets)
