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
from ._lists import drop, put, support_lists, take
from ._reduce import highest
from ._rows import CompiledRows
from ._what import CURVATURE, GRADIENT


@loop
def threshold(x: Any, top: float, total: float) -> float:
    """τ such that Σ (x − τ)₊ = T, for x whose largest entry is ``top``; NaN where one is NaN.

    Newton's method increases to τ from any lower bound, and drops entries as it goes; once it
    drops none it is there.
    """
    k = len(x)
    sum_of_all = 0.0
    for j in range(k):
        sum_of_all += x[j]
    if np.isnan(sum_of_all):
        return np.nan
    tau = max(top - total, (sum_of_all - total) / k)
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
    own: Any,
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
        own: buffer of k.
    """
    n, k = theta.shape
    shift = 1.0 if total == 2.0 else 0.0
    for i in range(n):
        at, y = columns[starts[i] : starts[i + 1]], targets[starts[i] : starts[i + 1]]
        own_x = own[: len(y)]
        top = highest(theta[i])
        for j in range(k):
            x[j] = theta[i, j] - top
        take(x, at, own_x)
        for m in range(len(y)):
            own_x[m] += shift * y[m]  # after the highest is taken off, which may be huge
        put(x, at, own_x)
        tau = threshold(x, max(highest(own_x), 0.0), total)
        loss = total / 2 * _write_others(drop(x, at), tau, total, what, out[i])
        loss += _write_support(own_x, y, tau, total, what)
        value[i] = loss if tau == tau else np.nan
        put(out[i], at, own_x)


@loop
def _write_others(x: Any, tau: float, total: float, what: int, out: Any) -> float:
    """Write what is asked for at the entries with y = 0, and return Σ p²."""
    squares = 0.0
    for j in range(len(x)):
        gap = x[j] - tau
        p = (gap if gap > 0 else 0.0) / total
        squares += p * p
        out[j] = p
    if what == CURVATURE:
        for j in range(len(x)):
            out[j] = (1.0 if x[j] > tau else 0.0) / total
    return squares


@loop
def _write_support(x: Any, y: Any, tau: float, total: float, what: int) -> float:
    """The same at the entries with y > 0, in place of x: their loss."""
    loss = 0.0
    for m in range(len(x)):
        gap = x[m] - tau
        p = (gap if gap > 0 else 0.0) / total
        loss += total / 2 * (y[m] - p) * (y[m] - p) - y[m] * (gap if gap < 0 else 0.0)
        curvature = (1.0 if gap > 0 else 0.0) / total
        x[m] = p - y[m] if what == GRADIENT else (curvature if what == CURVATURE else p)
    return loss


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
        buffers = scratch.stack("rows", 2, theta.shape[1:], np.float64)
        sparsemax(theta, *lists, total, what, value, out, *buffers)
