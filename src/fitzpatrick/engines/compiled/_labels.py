r"""The losses of the negentropy at hard labels, in closed form.

With r = Σ e^{θ_i} over the classes i ≠ j and d = log r − θ_j, the formulas are those of
``regularizers/negentropy.py``. The other classes share the rest as exp(θ) does.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ..rows import BlockTask
from ..targets import Labels
from ._jit import loop
from ._kernel import GRADIENT, NO_STATS, SLOPE, CompiledKernel, usable
from ._math import exp, log, log1p, wright_omega
from ._rows import are_classes, divided_sum, exponentials
from ._stats import finish_row

# Scores that are treated at once: they stay in the second-level cache.
_CHUNK = 1 << 14


@loop
def _fenchel_young(lead, rest, miss, hit, loss):
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
def _family(c, lead, rest, miss, hit, loss):
    """The loss and the two probabilities for any c > 0, with w = c r = ω(d − c + log c)."""
    log_c = math.log(c)
    for i in range(len(loss)):
        total = hit[i] + rest[i]
        d = log(rest[i]) - lead[i] - c
        w = wright_omega(d + log_c)
        log_r = d - w if w < 1 else log(max(w, 1.0)) - log_c
        miss[i] = w if total < np.inf else np.nan
        lead[i] = log_r
    for i in range(len(loss)):
        w, log_r = miss[i], lead[i]
        tail = exp(-abs(log_r))
        larger = 1 / (1 + tail)
        hit[i] = larger * (tail if log_r > 0 else 1.0)
        miss[i] = larger * (1.0 if log_r > 0 else tail)
        logarithm = (log_r if log_r > 0 else 0.0) + log1p(tail)
        excess = w - c * logarithm
        above = logarithm + (0.0 if excess < 0 else excess)
        loss[i] = (1 - c) * logarithm + w if c < 1 else above


@loop
def logistic_labels(theta, labels, tightness, output, divisor, value, out, e, numbers, stats):
    """Write the loss of each row, and what is asked for; NaN where a row needs the core.

    Returns the sum of the losses, divided; NaN, with nothing written, where a label is no class.
    The buffers are e, flat, for some rows of k, and six of one number for each of these rows.
    The array of by-products is empty, or has a row for each.
    """
    n, k = theta.shape
    if not are_classes(labels, k):
        return np.nan
    top, lead, rest, miss, hit, losses = numbers
    step = len(top)
    for first in range(0, n, step):
        rows = min(step, n - first)
        exponentials(theta[first : first + rows], top, e)
        for i in range(rows):
            label, row = labels[first + i], e[i * k : (i + 1) * k]
            if len(stats):
                own = theta[first + i, label]
                finish_row(theta[first + i], top[i], row, own, own, stats[first + i])
            lead[i] = theta[first + i, label] - top[i]
            hit[i] = row[label]
            row[label] = 0.0
            total = 0.0
            for j in range(k):
                total += row[j]
            rest[i] = total
        loss = losses[:rows]
        if tightness == 0:
            _fenchel_young(lead, rest, miss, hit, loss)
        else:
            _family(tightness, lead, rest, miss, hit, loss)
        for i in range(rows):
            value[first + i] = loss[i]
            label, row = labels[first + i], e[i * k : (i + 1) * k]
            factor = miss[i] / rest[i] if rest[i] > 0 else 0.0
            for j in range(k):
                out[first + i, j] = row[j] * factor
            if output == GRADIENT:
                out[first + i, label] = -miss[i]
            elif output == SLOPE and tightness > 0:
                out[first + i, label] = hit[i] * hit[i] / (hit[i] + tightness)
            else:
                out[first + i, label] = hit[i]
    return divided_sum(value, divisor, out)


class Softmax(NamedTuple):
    """At c = 0 the probabilities are their own slopes."""

    tightness: float

    def slope(self, p: float, y: float) -> float:
        return p


@dataclass(frozen=True, eq=False)
class LabelKernel(CompiledKernel):
    """Integer labels."""

    link_formula: ClassVar[Softmax] = Softmax(0.0)
    knows_stats: ClassVar[bool] = True

    def run(self, task: BlockTask, divisor: float = 1.0) -> float:
        """As in :class:`~fitzpatrick.engines.compiled._simplex.SimplexKernel`."""
        output, rows, theta, value, out, scratch, stats = task
        assert isinstance(self.targets, Labels)
        k = theta.shape[1]
        step = max(1, _CHUNK // k)
        e = scratch.array("e", (step * k,), np.float64)
        numbers = tuple(scratch.stack("numbers", 6, (step,), np.float64))
        labels = usable(self.targets.labels[rows], np.intp)
        outputs = int(output), divisor, value, out
        buffers = e, numbers, NO_STATS if stats is None else stats
        return float(logistic_labels(theta, labels, self.tightness, *outputs, *buffers))
