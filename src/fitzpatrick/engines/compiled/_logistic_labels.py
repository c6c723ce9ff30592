r"""The logistic pair at hard labels, in closed form.

With r = Σ e^{θ_i} over the classes i ≠ j and d = log r − θ_j, the logistic loss is softplus(d) and
the Fitzpatrick logistic loss is w = ω(d − 1), where :math:`y^\star_j = 1/(1 + w)`. The others share
the rest as exp(θ) does.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._blocks import FloatArray, Scratch
from .._output import Output
from .._targets import Labels
from ._jit import loop
from ._lists import usable
from ._math import log, log1p, wright_omega
from ._rows import CompiledKernel
from ._softmax import exponentials

GRADIENT, CURVATURE = int(Output.GRADIENT), int(Output.SLOPE)
# Scores that are treated at once: they stay in the second-level cache.
_CHUNK = 1 << 14


@loop
def _logistic(lead: Any, rest: Any, miss: Any, hit: Any, loss: Any) -> None:
    """From the label's own exponential in ``hit``: softplus(d), and the two probabilities."""
    for i in range(len(loss)):
        own, others = hit[i], rest[i]
        total = own + others
        d = log(others) - lead[i]
        ratio = own / others if own < others else others / own
        loss[i] = (d if d > 0 else 0.0) + log1p(ratio)
        hit[i] = own / total
        miss[i] = others / total


@loop
def _fitzpatrick(lead: Any, rest: Any, miss: Any, hit: Any, loss: Any) -> None:
    """The same with w = ω(d − 1)."""
    for i in range(len(loss)):
        total = hit[i] + rest[i]
        w = wright_omega(log(rest[i]) - lead[i] - 1)
        miss[i] = w if total < np.inf else np.nan
    for i in range(len(loss)):
        w = miss[i]
        loss[i] = w
        hit[i] = 1 / (1 + w)
        miss[i] = w * hit[i] if w < 1 else 1 - hit[i]


@loop
def logistic_labels(
    theta: Any,
    labels: Any,
    is_fitzpatrick: bool,
    what: int,
    value: Any,
    out: Any,
    e: Any,
    numbers: Any,
) -> None:
    """Write the loss of each row, and what is asked for; NaN where a row needs the core.

    Args:
        theta: scores, (n, k).
        labels: (n,).
        is_fitzpatrick: which of the two losses.
        what: which array to write.
        value: (n,).
        out: (n, k).
        e: flat buffer of some rows of k.
        numbers: five buffers of one number for each of these rows.
    """
    n, k = theta.shape
    top, lead, rest, miss, hit = numbers
    step = len(top)
    for first in range(0, n, step):
        rows = min(step, n - first)
        exponentials(theta[first : first + rows], top, e)
        for i in range(rows):
            label, row = labels[first + i], e[i * k : (i + 1) * k]
            lead[i] = theta[first + i, label] - top[i]
            hit[i] = row[label]
            row[label] = 0.0
            total = 0.0
            for j in range(k):
                total += row[j]
            rest[i] = total
        loss = value[first : first + rows]
        if is_fitzpatrick:
            _fitzpatrick(lead, rest, miss, hit, loss)
        else:
            _logistic(lead, rest, miss, hit, loss)
        for i in range(rows):
            label, row = labels[first + i], e[i * k : (i + 1) * k]
            factor = miss[i] / rest[i] if rest[i] > 0 else 0.0
            for j in range(k):
                out[first + i, j] = row[j] * factor
            if what == GRADIENT:
                out[first + i, label] = -miss[i]
            elif what == CURVATURE and is_fitzpatrick:
                out[first + i, label] = hit[i] * hit[i] / (1 + hit[i])
            else:
                out[first + i, label] = hit[i]


@dataclass(frozen=True, eq=False)
class LogisticLabelRows(CompiledKernel):
    """Integer labels."""

    def _call(
        self,
        rows: slice,
        theta: FloatArray,
        what: int,
        value: FloatArray,
        out: FloatArray,
        scratch: Scratch,
    ) -> None:
        assert isinstance(self.targets, Labels)
        k = theta.shape[1]
        step = max(1, _CHUNK // k)
        e = scratch.array("e", (step * k,), np.float64)
        numbers = tuple(scratch.stack("numbers", 5, (step,), np.float64))
        labels = usable(self.targets.labels[rows], np.intp)
        is_fitzpatrick = self.loss.tightness == 1
        logistic_labels(theta, labels, is_fitzpatrick, what, value, out, e, numbers)
