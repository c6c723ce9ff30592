"""The negative Shannon entropy: on the orthant entry by entry, on the simplex by rows.

The formulas are those of ``regularizers/negentropy.py`` and ``negentropy_labels.py``.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._targets import Labels, TargetForm
from ._entries import EntryKernel
from ._kernel import CompiledKernel
from ._labels import LabelKernel
from ._math import MIN_TARGET, entropy_entry, exp, log, wright_omega
from ._proportions import ProportionKernel

if TYPE_CHECKING:
    from ...losses import Loss

_HIGHEST = 709.0  # the exponential of more overflows


class Counts(NamedTuple):
    """On the orthant p = c y/ω = e^(s − c + ω); u is log p."""

    tightness: float
    log_tightness: float
    needs_refinement: bool

    def start(self, s: float, y: float) -> float:
        if self.tightness == 0:
            return s
        s -= self.tightness
        log_cy = self.log_tightness + log(y if y > MIN_TARGET else MIN_TARGET)
        omega = wright_omega(log_cy - s)
        # two forms of one number: the first keeps its digits for small ω, the second for large
        large = log_cy - log(omega if omega > 0.5 else 0.5)
        u = s + omega if omega < 0.5 else large
        return u if y > 0 else s

    def refine(self, u: float, s: float, y: float) -> tuple[float, float]:
        return u, 0.0

    def finish(self, u: float, s: float, y: float) -> tuple[float, float]:
        p = exp(min(u, _HIGHEST))
        p = p if u <= _HIGHEST else np.inf
        return p, entropy_entry(y, u, p, self.tightness)

    def slope(self, p: float, y: float) -> float:
        return p / (1 + self.tightness * y / max(p, MIN_TARGET))


def bind_poisson(loss: "Loss", targets: TargetForm) -> EntryKernel:
    """Rows of counts."""
    c = loss.tightness
    formula = Counts(c, math.log(c) if c > 0 else 0.0, needs_refinement=False)
    return EntryKernel(loss, targets, formula)


def bind_logistic(loss: "Loss", targets: TargetForm) -> CompiledKernel:
    """Rows on the simplex."""
    return (LabelKernel if isinstance(targets, Labels) else ProportionKernel)(loss, targets)
