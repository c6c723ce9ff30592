r"""The sparsemax pair, row by row: Newton's method on a row that stays in cache.

With x = θ (sparsemax) or x = θ + y (its Fitzpatrick twin) and T = 1 or 2, both maximisers are
:math:`p = (x - \tau)_+ / T` with :math:`\sum_i (x_i - \tau)_+ = T`, and both losses are
:math:`\sum_i \tfrac{T}{2} (y_i - p_i)^2 + y_i (\tau - x_i)_+`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._blocks import FloatArray, Scratch
from ._jit import loop
from ._lists import support_lists
from ._reduce import highest
from ._rows import CompiledRows
from ._what import CURVATURE, GRADIENT


@loop
def threshold(x: Any, total: float) -> float:
    """τ such that Σ (x − τ)₊ = T, for x whose largest entry is 0; NaN where an entry is NaN.

    Newton's method increases to τ from any lower bound, and drops entries as it goes; once it
    drops none it is there.
    """
    k = len(x)
    sum_of_all = 0.0
    for j in range(k):
        sum_of_all += x[j]
    if np.isnan(sum_of_all):
        return np.nan
    tau = max(-total, (sum_of_all - total) / k)
    count_before = k + 1.0
    while True:
        excess, count = -total, 0.0
        for j in range(k):
            above = x[j] - tau
            excess += above if above > 0 else 0.0
            count += 1.0 if above > 0 else 0.0
        if count == 0.0:
            return tau
        tau += excess / count
        if count >= count_before:
            return tau
        count_before = count


@loop
def sparsemax(
    theta: Any,
    starts: Any,
    columns: Any,
    targets: Any,
    total: float,
    what: int,
    value: Any,
    out: Any,
    x: Any,
) -> None:
    """Write the loss of each row, and what is asked for; NaN where a row needs the core.

    Args:
        theta: scores, (n, k).
        starts: where the support of each row begins, n + 1 numbers.
        columns: the entries with y > 0.
        targets: y there.
        total: T.
        what: which array to write.
        value: (n,).
        out: (n, k).
        x: buffer of k.
    """
    n, k = theta.shape
    shift = 1.0 if total == 2.0 else 0.0
    for i in range(n):
        begin, end = starts[i], starts[i + 1]
        top = highest(theta[i])
        for e in range(begin, end):
            top = max(top, theta[i, columns[e]] + shift * targets[e])
        for j in range(k):
            x[j] = theta[i, j] - top
        for e in range(begin, end):
            x[columns[e]] += shift * targets[e]
        tau = threshold(x, total)
        for e in range(begin, end):
            x[columns[e]] = -np.inf  # the others on their own
        squares = 0.0
        for j in range(k):
            gap = x[j] - tau
            p = (gap if gap > 0 else 0.0) / total
            squares += p * p
            out[i, j] = p
        loss = total / 2 * squares
        for e in range(begin, end):
            y = targets[e]
            gap = (theta[i, columns[e]] - top + shift * y) - tau
            p = max(gap, 0.0) / total
            loss += total / 2 * (y - p) ** 2 - y * min(gap, 0.0)
            out[i, columns[e]] = p - y if what == GRADIENT else p
        value[i] = loss
        if what == CURVATURE:
            for j in range(k):
                out[i, j] = (1.0 if out[i, j] > 0 else 0.0) / total


@dataclass(frozen=True)
class SparsemaxRows(CompiledRows):
    """Targets of any form."""

    def _call(
        self,
        rows: slice,
        theta: FloatArray,
        what: int,
        value: FloatArray,
        out: FloatArray,
        scratch: Scratch,
    ) -> None:
        lists = support_lists(self.targets, rows, scratch)
        total = 2.0 if self.loss.is_fitzpatrick else 1.0
        x = scratch.array("x", theta.shape[1:], np.float64)
        sparsemax(theta, *lists, total, what, value, out, x)
